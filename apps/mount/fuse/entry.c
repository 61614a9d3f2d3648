/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations on names: lookup, creation, renaming and removal. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/local.h"
#include "apps/mount/fuse/ops.h"
#include "apps/mount/sealed/sealed.h"

void entry_fill(struct inode *inode, struct fuse_entry_param *entry, unsigned int phase)
{
	*entry = (struct fuse_entry_param){
		.ino = inode->ino,
		.attr_timeout = inode_cache_seconds(inode, phase),
		.entry_timeout = sharing_cache_seconds(&inode->mount->share, phase),
	};
	inode_stat(inode, &entry->attr);
}

static void forget_lookups(struct mount *m, uint64_t ino, uint64_t lookups)
{
	struct inode *inode = inode_get(m, ino);

	if (inode)
		inode_put(inode, lookups + 1);
}

void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	forget_lookups(mount_of(req), ino, lookups);
	fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget_lookups(mount_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* @inode: with a lookup by the kernel; NULL: no memory. @is_new: just made here. */
static void reply_inode(fuse_req_t req, struct inode *inode, unsigned int phase, bool is_new)
{
	struct fuse_entry_param entry;

	if (!inode) {
		op_reply(req, -ENOMEM);
		return;
	}
	if (is_new && S_ISDIR(inode->attr.mode))
		names_begin_empty(inode, phase);
	entry_fill(inode, &entry, phase);
	if (fuse_reply_entry(req, &entry))
		inode_put(inode, 1);
}

static void reply_entry(fuse_req_t req, int rc, const struct wire_fs_attr *attr,
			unsigned int phase, bool is_new)
{
	struct inode *inode = rc ? NULL : inode_add(mount_of(req), attr, phase);

	if (rc)
		op_reply(req, rc);
	else
		reply_inode(req, inode, phase, is_new);
}

/* The absence of a name, seen in @phase, may be cached, too. */
static void reply_absent(fuse_req_t req, unsigned int phase)
{
	const double seconds = sharing_cache_seconds(&mount_of(req)->share, phase);
	const struct fuse_entry_param none = { .entry_timeout = seconds };

	if (seconds > 0)
		fuse_reply_entry(req, &none);
	else
		op_reply(req, -ENOENT);
}

/* Replies from what is known. Return: false if the donor must be asked. */
static bool lookup_here(fuse_req_t req, struct inode *dir, const char *name)
{
	const unsigned int phase = atomic_load(&dir->mount->share.phase);
	struct fuse_entry_param entry;
	struct inode *inode;
	uint64_t ino;

	switch (names_find(dir, name, &ino)) {
	case NAMES_ABSENT:
		reply_absent(req, phase);
		return true;
	case NAMES_PRESENT:
		inode = inode_get(mount_of(req), ino);
		break;
	default:
		inode = NULL;
	}
	if (!inode || !inode_is_current(inode)) {
		if (inode)
			inode_put(inode, 1);
		return false;
	}
	entry_fill(inode, &entry, phase); /* the reference is the kernel's from now on */
	if (fuse_reply_entry(req, &entry))
		inode_put(inode, 1);
	return true;
}

static void lookup_there(fuse_req_t req, struct inode *dir, const char *name)
{
	struct mount *m = mount_of(req);
	const struct names_ticket ticket = names_note_question(dir);
	struct donor_message q;
	struct wire_fs_attr attr, of_dir;
	int rc;

	call_begin(&q, FS_LOOKUP, dir->ino, sizeof(struct wire_fs_head), req);
	rc = call_add_name(&q, name);
	if (!rc)
		rc = call_attr(m, &q, &attr);
	if (!rc)
		names_learn(dir, ticket, q.phase, name, attr.ino);
	if (rc != -ENOENT) {
		reply_entry(req, rc, &attr, q.phase, false);
		return;
	}
	reply_absent(req, q.phase);
	inode_attr(dir, &of_dir);
	if (sharing_knows(&m->share, q.phase) && names_count_miss(dir, of_dir.size))
		dir_list_names(m, dir->ino);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct inode *dir = op_inode(req, parent);

	if (!dir)
		return;
	if (!lookup_here(req, dir, name))
		lookup_there(req, dir, name);
	inode_put(dir, 1);
}

int entry_change(struct mount *m, struct donor_message *q, struct donor_reply *reply,
		 struct wire_fs_attr *attrs, unsigned int nr)
{
	int rc = call_change(m, q, reply, nr * sizeof(*attrs));

	if (rc)
		return rc;
	memcpy(attrs, call_reply_body(reply), nr * sizeof(*attrs));
	for (unsigned int i = 0; i < nr; i++)
		inode_learn_changed(m, &attrs[i], q->phase);
	return 0;
}

void entry_added(struct inode *dir, int rc, unsigned int phase, const char *name, uint64_t ino)
{
	if (!rc)
		names_add(dir, phase, name, ino);
	else
		names_drop(dir); /* it may have the name */
	names_end_change(dir);
}

static void make(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev,
		 const char *target)
{
	struct inode *dir = op_inode(req, parent);
	size_t target_length = strlen(target);
	struct donor_message q;
	struct wire_fs_make *make = call_begin(&q, FS_MAKE, parent, sizeof(*make), req);
	struct donor_reply reply;
	struct wire_fs_attr attrs[2]; /* the new inode's, the directory's */
	int rc;

	if (!dir)
		return;
	make->mode = mode;
	make->rdev = (uint32_t)rdev;
	make->make = FS_MAKE_EXCLUSIVE;
	make->target_length = (uint32_t)target_length;
	rc = target_length > FS_TARGET_MAX ? -ENAMETOOLONG : call_add_name(&q, name);
	if (!rc)
		rc = call_add_bytes(&q, target, target_length);
	names_begin_change(dir);
	if (!rc)
		rc = entry_change(dir->mount, &q, &reply, attrs, 2);
	entry_added(dir, rc, q.phase, name, attrs[0].ino);
	if (!rc && S_ISREG(mode))
		sealed_was_made(dir->mount, attrs[0].ino);
	reply_entry(req, rc, &attrs[0], q.phase, true);
	inode_put(dir, 1);
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	make(req, parent, name, mode, rdev, "");
}

static bool make_here(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      const char *target)
{
	struct inode *dir = inode_get(mount_of(req), parent), *inode;
	unsigned int phase;
	bool made;

	if (!dir)
		return false;
	made = local_make(req, (struct local_side){ dir, name }, mode, target, &inode, &phase);
	if (made)
		reply_inode(req, inode, phase, true);
	inode_put(dir, 1);
	return made;
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	mode = (mode & ~(mode_t)S_IFMT) | S_IFDIR;
	if (!make_here(req, parent, name, mode, ""))
		make(req, parent, name, mode, 0, "");
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	if (!make_here(req, parent, name, S_IFLNK | 0777, target))
		make(req, parent, name, S_IFLNK | 0777, 0, target);
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct inode *inode = op_inode(req, ino);
	struct inode *dir = inode ? op_inode(req, parent) : NULL;
	struct donor_message q;
	struct wire_fs_link *link = call_begin(&q, FS_LINK, ino, sizeof(*link), req);
	struct donor_reply reply;
	struct wire_fs_attr attrs[2]; /* the inode's, the directory's */
	int rc = call_add_name(&q, name);

	link->parent = parent;
	if (dir) {
		inode_commit_ahead(inode); /* because the reply contains the inode's attributes */
		names_begin_change(dir);
		if (!rc)
			rc = entry_change(dir->mount, &q, &reply, attrs, 2);
		inode_doubt_links(inode);
		entry_added(dir, rc, q.phase, name, ino);
		reply_entry(req, rc, &attrs[0], q.phase, false);
		inode_put(dir, 1);
	}
	if (inode)
		inode_put(inode, 1);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct donor_message q;
	struct donor_reply reply;
	char target[FS_TARGET_MAX + 1];
	size_t length;
	int rc;

	call_begin(&q, FS_READLINK, ino, sizeof(struct wire_fs_head), req);
	rc = call(mount_of(req), &q, &reply, 0);
	length = reply.length - sizeof(reply.head);
	if (!rc && length > FS_TARGET_MAX)
		rc = -EIO;
	if (rc) {
		op_reply(req, rc);
		return;
	}
	memcpy(target, call_reply_body(&reply), length);
	target[length] = '\0';
	fuse_reply_readlink(req, target);
}

static void remove_name(fuse_req_t req, enum wire_fs_op op, fuse_ino_t parent, const char *name)
{
	struct inode *dir = op_inode(req, parent);
	struct donor_message q;
	struct donor_reply reply;
	struct wire_fs_attr attrs[2]; /* the directory's, the inode's */
	int rc;

	if (!dir)
		return;
	if (op == FS_UNLINK ? local_unlink((struct local_side){ dir, name }) :
			      local_rmdir((struct local_side){ dir, name })) {
		op_reply(req, 0);
		inode_put(dir, 1);
		return;
	}
	call_begin(&q, op, parent, sizeof(struct wire_fs_head), req);
	rc = call_add_name(&q, name);
	names_begin_change(dir);
	if (!rc)
		rc = entry_change(dir->mount, &q, &reply, attrs, 2);
	if (!rc || rc == -ENOENT)
		names_remove(dir, name);
	names_end_change(dir);
	op_reply(req, rc);
	inode_put(dir, 1);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, FS_UNLINK, parent, name);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, FS_RMDIR, parent, name);
}

/* @attrs: of an FS_RENAME. Two names of the same file stay as they are. */
static void renamed(const struct local_side *from, const struct local_side *to,
		    unsigned int flags, unsigned int phase, const struct wire_fs_attr *attrs)
{
	const uint64_t moved = attrs[2].ino, replaced = attrs[3].ino;

	if (moved == replaced)
		return;
	if (flags & RENAME_EXCHANGE)
		names_add(from->dir, phase, from->name, replaced);
	else
		names_remove(from->dir, from->name);
	names_add(to->dir, phase, to->name, moved);
}

static void rename_name(fuse_req_t req, const struct local_side *from,
			const struct local_side *to, unsigned int flags)
{
	struct mount *m = mount_of(req);
	struct donor_message q;
	struct wire_fs_rename *rename =
		call_begin(&q, FS_RENAME, from->dir->ino, sizeof(*rename), req);
	struct donor_reply reply;
	struct wire_fs_attr attrs[4]; /* both directories', the inode's, that of the one replaced */
	size_t new_length = strlen(to->name);
	int rc = call_add_name(&q, from->name);

	rename->parent = to->dir->ino;
	rename->flags = flags;
	rename->new_length = (uint32_t)new_length;
	if (!rc)
		rc = new_length > FS_NAME_MAX ? -ENAMETOOLONG :
						call_add_bytes(&q, to->name, new_length);
	if (!rc && flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		rc = -EINVAL;
	names_begin_change(from->dir);
	names_begin_change(to->dir);
	if (!rc)
		rc = entry_change(m, &q, &reply, attrs, 4);
	if (!rc) {
		renamed(from, to, flags, q.phase, attrs);
	} else {
		names_drop(from->dir);
		names_drop(to->dir);
	}
	names_end_change(from->dir);
	names_end_change(to->dir);
	op_reply(req, rc);
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	       const char *new_name, unsigned int flags)
{
	const struct local_side from = { op_inode(req, parent), name };
	const struct local_side to = { from.dir ? op_inode(req, new_parent) : NULL, new_name };

	if (to.dir) {
		if (!flags && local_rename(from, to))
			op_reply(req, 0);
		else
			rename_name(req, &from, &to, flags);
		inode_put(to.dir, 1);
	}
	if (from.dir)
		inode_put(from.dir, 1);
}
