/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/privilege.h"
#include "apps/mount/sealed/sealed.h"

/* @phase: in which the attributes were true */
static void reply_attr(fuse_req_t req, struct inode *inode, int rc, unsigned int phase)
{
	struct stat st;

	if (rc) {
		op_reply(req, rc);
		return;
	}
	inode_stat(inode, &st);
	fuse_reply_attr(req, &st, inode_cache_seconds(inode, phase));
}

/*
 * The donor keeps no removed directories, but a program may still stand in this one or have it
 * open. Return: 0 if @inode is a directory, which then has no links; else -ESTALE.
 */
static int removed_directory(struct inode *inode)
{
	bool is_dir;

	pthread_mutex_lock(&inode->lock);
	is_dir = S_ISDIR(inode->attr.mode);
	if (is_dir)
		inode->attr.nlink = 0;
	pthread_mutex_unlock(&inode->lock);
	return is_dir ? 0 : -ESTALE;
}

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct inode *inode = op_inode(req, ino);
	struct donor_message q;
	struct wire_fs_attr attr;
	unsigned int phase = atomic_load(&m->share.phase);
	int rc = 0;

	(void)fi;
	if (!inode)
		return;
	if (!inode_is_current(inode)) {
		inode_commit_ahead(inode);
		call_begin(&q, FS_GETATTR, ino, sizeof(struct wire_fs_head), req);
		rc = call_attr(m, &q, &attr);
		phase = q.phase;
		if (!rc)
			inode_learn(inode, &attr, q.phase);
		else if (rc == -ESTALE)
			rc = removed_directory(inode);
	}
	reply_attr(req, inode, rc, phase);
	inode_put(inode, 1);
}

static const struct {
	int fuse;
	uint32_t wire;
} sets[] = {
	{ FUSE_SET_ATTR_MODE, FS_SET_MODE },
	{ FUSE_SET_ATTR_UID, FS_SET_UID },
	{ FUSE_SET_ATTR_GID, FS_SET_GID },
	{ FUSE_SET_ATTR_SIZE, FS_SET_SIZE },
	{ FUSE_SET_ATTR_ATIME, FS_SET_ATIME },
	{ FUSE_SET_ATTR_MTIME, FS_SET_MTIME },
	{ FUSE_SET_ATTR_ATIME_NOW, FS_SET_ATIME_NOW },
	{ FUSE_SET_ATTR_MTIME_NOW, FS_SET_MTIME_NOW },
};

static struct wire_fs_time wire_time(const struct timespec *time)
{
	return (struct wire_fs_time){ .sec = time->tv_sec, .nsec = (uint32_t)time->tv_nsec };
}

static void fill_setattr(struct wire_fs_setattr *set, const struct stat *st, int to_set)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (to_set & sets[i].fuse)
			set->mask |= sets[i].wire;
	set->mode = st->st_mode;
	set->uid = st->st_uid;
	set->gid = st->st_gid;
	set->size = (uint64_t)st->st_size;
	set->atime = wire_time(&st->st_atim);
	set->mtime = wire_time(&st->st_mtim);
}

/* Clears the privilege bits on a change of owner by any user. */
static void drop_privilege(fuse_req_t req, struct inode *inode, struct wire_fs_setattr *set)
{
	struct wire_fs_attr attr;

	inode_attr(inode, &attr);
	set->mode = privilege_drop(req, &attr);
	if (set->mode != attr.mode)
		set->mask |= FS_SET_MODE;
}

/* The gate is entered alone. */
static int set_sealed_size(struct inode *inode, struct donor_message *q,
			   struct wire_fs_setattr *set)
{
	const uint64_t size = set->size;
	int rc = size > SEALED_FILE_MAX ? -EFBIG : sealed_cut(inode, size);

	if (rc)
		return rc;
	set->size = sealed_stored_size(size);
	rc = inode_set(inode, q);
	if (!rc)
		sealed_was_cut(inode, size);
	return rc;
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		struct fuse_file_info *fi)
{
	struct inode *inode = op_inode(req, ino);
	struct donor_message q;
	struct wire_fs_setattr *set = call_begin(&q, FS_SETATTR, ino, sizeof(*set), req);
	bool cuts = to_set & FUSE_SET_ATTR_SIZE, sealed = mount_of(req)->sealed;
	int rc;

	(void)fi;
	if (!inode)
		return;
	fill_setattr(set, st, to_set);
	/* The kernel leaves nothing to set of a chown() that names neither owner nor group. */
	if (!set->mask || (set->mask & (FS_SET_UID | FS_SET_GID) && !(set->mask & FS_SET_MODE)))
		drop_privilege(req, inode, set);
	if (cuts) {
		set->mask |= mount_of(req)->is_pool ? 0 : FS_SET_TRIM;
		privilege_check(req, inode);
		inode_enter_alone(inode);
	}
	rc = cuts && sealed ? set_sealed_size(inode, &q, set) : inode_set(inode, &q);
	if (cuts)
		inode_leave(inode);
	reply_attr(req, inode, rc, q.phase);
	inode_put(inode, 1);
}
