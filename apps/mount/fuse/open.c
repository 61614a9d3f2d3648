/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Open files, with close-to-open consistency: a close makes a client's writes visible to all. */
#include <errno.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/privilege.h"

/* The donor has counted the open: from now until the last release, this client may hold maps. */
static void note_open(struct inode *inode, uint64_t change, struct fuse_file_info *fi)
{
	pthread_mutex_lock(&inode->lock);
	inode->opens++;
	fi->fh = (uintptr_t)inode;
	/* The kernel may keep its pages if no other client has changed the file. */
	fi->keep_cache = change == inode->pages;
	inode->pages = change;
	pthread_mutex_unlock(&inode->lock);
}

/* The kernel has released a handle, or did not get it. */
static void close_file(struct inode *inode)
{
	struct wire_fs_head head = { .op = FS_RELEASE, .ino = inode->ino };

	pthread_mutex_lock(&inode->lock);
	if (!--inode->opens) {
		map_forget(&inode->map);
		inode->posix_locks = false;
	}
	pthread_mutex_unlock(&inode->lock);
	call_without_reply(inode->mount, &head, sizeof(head));
}

/* FS_MAKE may have found a file that another client has just created, with contents. */
static int truncate_found(struct inode *inode)
{
	struct donor_message q;
	struct wire_fs_setattr *set = call_begin(&q, FS_SETATTR, inode->ino, sizeof(*set), NULL);
	int rc;

	set->mask = FS_SET_SIZE;
	inode_enter_alone(inode);
	rc = inode_set(inode, &q);
	inode_leave(inode);
	return rc;
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct donor_message q;
	struct wire_fs_make *make = call_begin(&q, FS_MAKE, parent, sizeof(*make), req);
	struct fuse_entry_param entry = { 0 };
	struct inode *inode;
	struct wire_fs_attr attr;
	int rc = call_add_name(&q, name);

	make->mode = (mode & ~(mode_t)S_IFMT) | S_IFREG;
	make->make = FS_MAKE_OPEN | (fi->flags & O_EXCL ? FS_MAKE_EXCLUSIVE : 0);
	if (!rc)
		rc = call_attr(m, &q, &attr);
	atomic_fetch_add(&m->changes, 1);
	if (rc || !(inode = inode_add(m, &attr))) {
		/*
		 * Out of memory: the donor's count of opens stays one too high until this client
		 * leaves.
		 */
		op_reply(req, rc ? rc : -ENOMEM);
		return;
	}
	note_open(inode, attr.change, fi);
	if (attr.size && fi->flags & O_TRUNC)
		rc = truncate_found(inode);
	entry_fill(inode, &entry);
	if (rc)
		op_reply(req, rc);
	else
		rc = fuse_reply_create(req, &entry, fi);
	if (rc) {
		close_file(inode);
		inode_put(inode, 1);
	}
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct inode *inode = op_inode(req, ino);
	struct donor_message q;
	struct wire_fs_open *open = call_begin(&q, FS_OPEN, ino, sizeof(*open), req);
	bool cuts = fi->flags & O_TRUNC;
	struct wire_fs_attr attr;
	int rc;

	if (!inode)
		return;
	open->flags = (uint32_t)fi->flags;
	if (cuts) {
		privilege_check(req, inode);
		inode_enter_alone(inode);
	}
	inode_commit_ahead(inode);
	rc = call_attr(m, &q, &attr);
	if (!rc && cuts)
		inode_learn_size(inode, &attr);
	else if (!rc)
		inode_learn(inode, &attr);
	if (cuts)
		inode_leave(inode);
	if (!rc)
		note_open(inode, attr.change, fi);
	if (rc)
		op_reply(req, rc);
	else if (fuse_reply_open(req, fi))
		close_file(inode);
	inode_put(inode, 1);
}

void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	int rc = inode_flush(inode);
	bool locks;

	(void)ino;
	pthread_mutex_lock(&inode->lock);
	locks = inode->posix_locks;
	pthread_mutex_unlock(&inode->lock);
	if (locks)
		lock_drop(inode, fi->lock_owner, false);
	op_reply(req, rc);
}

/* A write replies after the donor has the data, so only size and times are left to commit. */
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	op_reply(req, inode_commit(file_inode(fi), req));
}

void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);

	(void)ino;
	inode_commit_ahead(inode); /* a shared mapping may outlive the last close */
	if (fi->flock_release)
		lock_drop(inode, fi->lock_owner, true);
	close_file(inode);
	fuse_reply_err(req, 0);
}
