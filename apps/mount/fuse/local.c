/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/local.h"

#include <stdlib.h>
#include <string.h>

#include "fsd/inherit.h"

#define LINKS_MAX 30000u /* of a directory: fewer than the donor allows */
#define TARGET_MAX 255u /* the donor keeps memory for such targets */

/* ---- attributes, as fsd/dir.c changes them ---- */

static void stamp(struct inode *inode, const struct wire_fs_time *now)
{
	pthread_mutex_lock(&inode->lock);
	fsd_advance_ctime(&inode->attr.ctime, now);
	pthread_mutex_unlock(&inode->lock);
}

/* A directory has @names more names, and @links more directories. */
static void dir_changed(struct inode *dir, const struct wire_fs_time *now, int names, int links)
{
	struct wire_fs_attr *attr = &dir->attr;

	pthread_mutex_lock(&dir->lock);
	attr->change++;
	attr->mtime = *now;
	fsd_advance_ctime(&attr->ctime, now);
	attr->size += (uint64_t)names;
	dir->size = attr->size;
	attr->nlink += (uint32_t)links;
	pthread_mutex_unlock(&dir->lock);
}

static void unlinked(struct inode *inode, const struct wire_fs_time *now)
{
	pthread_mutex_lock(&inode->lock);
	fsd_advance_ctime(&inode->attr.ctime, now);
	inode->attr.nlink = S_ISDIR(inode->attr.mode) ? 0 : inode->attr.nlink - 1;
	pthread_mutex_unlock(&inode->lock);
}

/* ---- making ---- */

struct making {
	fuse_req_t req;
	struct local_side at;
	struct wire_fs_attr attr; /* of the new inode */
	struct names_edit edit;
	struct change *change;
	uint64_t number; /* of the change */
};

static struct change *naming(const struct making *making, const char *target)
{
	const size_t target_length = strlen(target);
	struct donor_message q;
	struct wire_fs_name *name =
		call_begin(&q, FS_NAME, making->at.dir->ino, sizeof(*name), making->req);

	name->head.uid = making->attr.uid;
	name->head.gid = making->attr.gid;
	name->ino = making->attr.ino;
	name->mode = making->attr.mode;
	name->target_length = (uint32_t)target_length;
	if (call_add_name(&q, making->at.name) || call_add_bytes(&q, target, target_length))
		return NULL;
	return change_new(q.bytes, q.length);
}

/* Under the lock of all names. */
static bool complete_making(void *arg)
{
	struct making *making = arg;
	struct wire_fs_name *name = (struct wire_fs_name *)making->change->message;
	struct mount *m = making->at.dir->mount;
	const bool is_dir = S_ISDIR(making->attr.mode);

	if (!name->ino)
		making->attr.ino = name->ino = reserve_take_number(m);
	if (!name->ino)
		return false;
	making->edit.after = name->ino;
	dir_changed(making->at.dir, &making->change->head.time, 1, is_dir);
	making->number = change_log_add(m, making->change);
	atomic_fetch_add(&m->changes, 1);
	return true;
}

/* @attr.ino: 0 for a reserved number. */
static bool make(struct making *making, mode_t mode, const char *target, struct inode **inode,
		 unsigned int *phase)
{
	struct mount *m = making->at.dir->mount;
	struct wire_fs_attr *attr = &making->attr, dir;

	inode_attr(making->at.dir, &dir);
	if (!dir.nlink || dir.nlink > LINKS_MAX)
		return false;
	attr->mode = mode;
	attr->nlink = S_ISDIR(mode) ? 2 : 1;
	attr->size = strlen(target);
	attr->uid = fuse_req_ctx(making->req)->uid;
	attr->gid = fuse_req_ctx(making->req)->gid;
	fsd_inherit(dir.mode, dir.gid, &attr->mode, &attr->gid);
	making->change = naming(making, target);
	if (!making->change)
		return false;
	attr->atime = attr->mtime = attr->ctime = making->change->head.time;
	fsd_advance_ctime(&attr->ctime, &making->change->head.time);
	making->edit = (struct names_edit){ .dir = making->at.dir, .name = making->at.name };
	if (!names_edit(&making->edit, 1, NULL, complete_making, making, phase)) {
		free(making->change);
		return false;
	}
	change_log_full(m);
	*inode = inode_add(m, attr, *phase);
	if (*inode)
		(*inode)->named = making->number;
	return true;
}

static bool is_free(struct local_side at)
{
	uint64_t ino;

	reserve_note_change(at.dir->mount);
	return change_log_takes_names(at.dir->mount) &&
	       names_find(at.dir, at.name, &ino) == NAMES_ABSENT;
}

bool local_create(fuse_req_t req, struct local_side at, mode_t mode, struct reserved_file *file,
		  struct inode **inode, unsigned int *phase)
{
	struct mount *m = at.dir->mount;
	struct making making = { .req = req, .at = at };

	if (!is_free(at) || !reserve_take_file(m, file))
		return false;
	making.attr = file->attr;
	if (make(&making, (mode & ~(mode_t)S_IFMT) | S_IFREG, "", inode, phase))
		return true;
	reserve_return_file(m, file);
	return false;
}

bool local_make(fuse_req_t req, struct local_side at, mode_t mode, const char *target,
		struct inode **inode, unsigned int *phase)
{
	struct making making = {
		.req = req,
		.at = at,
		.attr = { .change = 1, .flags = FS_ATTR_PLAIN },
	};

	return strlen(target) <= TARGET_MAX && is_free(at) &&
	       make(&making, mode, target, inode, phase);
}

/* ---- removing ---- */

struct removing {
	struct local_side at;
	struct inode *inode;
	struct change *change;
	bool is_dir;
};

static bool complete_removing(void *arg)
{
	struct removing *removing = arg;
	struct inode *dir = removing->at.dir;

	dir_changed(dir, &removing->change->head.time, -1, removing->is_dir ? -1 : 0);
	unlinked(removing->inode, &removing->change->head.time);
	change_log_add(dir->mount, removing->change);
	atomic_fetch_add(&dir->mount->changes, 1);
	return true;
}

/* The inode of a name, whose attributes are current; the caller owes an inode_put(). */
static struct inode *known_inode(struct local_side at, struct wire_fs_attr *attr)
{
	struct inode *inode;
	uint64_t ino;

	reserve_note_change(at.dir->mount);
	if (!change_log_takes_names(at.dir->mount) ||
	    names_find(at.dir, at.name, &ino) != NAMES_PRESENT)
		return NULL;
	inode = inode_get(at.dir->mount, ino);
	if (!inode)
		return NULL;
	inode_attr(inode, attr);
	if (inode_is_current(inode))
		return inode;
	inode_put(inode, 1);
	return NULL;
}

static bool remove_name(enum wire_fs_op op, struct local_side at)
{
	struct removing removing = { .at = at, .is_dir = op == FS_RMDIR };
	struct wire_fs_attr attr;
	struct donor_message q;
	struct names_edit edit = { .dir = at.dir, .name = at.name };
	unsigned int phase;
	bool done = false;

	removing.inode = known_inode(at, &attr);
	if (!removing.inode)
		return false;
	edit.before = removing.inode->ino;
	call_begin(&q, op, at.dir->ino, sizeof(struct wire_fs_head), NULL);
	/* Other names of a file may change at the same time. */
	if (removing.is_dir == S_ISDIR(attr.mode) && (removing.is_dir || attr.nlink == 1) &&
	    !call_add_name(&q, at.name))
		removing.change = change_new(q.bytes, q.length);
	if (removing.change)
		done = names_edit(&edit, 1, removing.is_dir ? removing.inode : NULL,
				  complete_removing, &removing, &phase);
	if (!done)
		free(removing.change);
	inode_put(removing.inode, 1);
	if (done)
		change_log_full(at.dir->mount);
	return done;
}

bool local_unlink(struct local_side at)
{
	return remove_name(FS_UNLINK, at);
}

bool local_rmdir(struct local_side at)
{
	return remove_name(FS_RMDIR, at);
}

/* ---- renaming ---- */

struct renaming {
	struct local_side from, to;
	struct inode *moved, *replaced; /* @replaced: or NULL */
	struct change *change;
};

static bool complete_renaming(void *arg)
{
	struct renaming *renaming = arg;
	const struct wire_fs_time *now = &renaming->change->head.time;
	struct mount *m = renaming->moved->mount;

	dir_changed(renaming->from.dir, now, -1, 0);
	dir_changed(renaming->to.dir, now, renaming->replaced ? 0 : 1, 0);
	stamp(renaming->moved, now);
	if (renaming->replaced)
		unlinked(renaming->replaced, now);
	change_log_add(m, renaming->change);
	atomic_fetch_add(&m->changes, 1);
	return true;
}

static struct change *renaming_change(struct local_side from, struct local_side to)
{
	struct donor_message q;
	struct wire_fs_rename *rename =
		call_begin(&q, FS_RENAME, from.dir->ino, sizeof(*rename), NULL);
	const size_t length = strlen(to.name);

	rename->parent = to.dir->ino;
	rename->new_length = (uint32_t)length;
	if (call_add_name(&q, from.name) || call_add_bytes(&q, to.name, length))
		return NULL;
	return change_new(q.bytes, q.length);
}

static bool is_movable(const struct inode *inode, const struct wire_fs_attr *attr)
{
	return inode && !S_ISDIR(attr->mode) && attr->nlink == 1;
}

bool local_rename(struct local_side from, struct local_side to)
{
	struct renaming renaming = { .from = from, .to = to };
	struct names_edit edit[2] = { { .dir = from.dir, .name = from.name },
				      { .dir = to.dir, .name = to.name } };
	struct wire_fs_attr moved, replaced, dir;
	unsigned int phase;
	bool done = false;

	inode_attr(to.dir, &dir);
	renaming.moved = known_inode(from, &moved);
	if (is_movable(renaming.moved, &moved) && dir.nlink) {
		renaming.replaced = known_inode(to, &replaced);
		if (!renaming.replaced || is_movable(renaming.replaced, &replaced))
			renaming.change = renaming_change(from, to);
	}
	if (renaming.change && renaming.moved != renaming.replaced) {
		edit[0].before = edit[1].after = renaming.moved->ino;
		edit[1].before = renaming.replaced ? renaming.replaced->ino : 0;
		done = names_edit(edit, 2, NULL, complete_renaming, &renaming, &phase);
	}
	if (!done)
		free(renaming.change);
	if (renaming.replaced)
		inode_put(renaming.replaced, 1);
	if (renaming.moved)
		inode_put(renaming.moved, 1);
	if (done)
		change_log_full(from.dir->mount);
	return done;
}
