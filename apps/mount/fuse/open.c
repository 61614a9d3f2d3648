/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Open files. What one client wrote is known to all once it has closed the file. */
#include <errno.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/privilege.h"

/* The donor counts one more open already: only now may maps be held until the last release. */
static void note_open(struct inode *inode, uint64_t change, struct fuse_file_info *fi)
{
	pthread_mutex_lock(&inode->lock);
	inode->opens++;
	fi->fh = (uintptr_t)inode;
	/* The kernel may keep the pages of a file that nobody else has changed. */
	fi->keep_cache = change == inode->pages;
	inode->pages = change;
	pthread_mutex_unlock(&inode->lock);
}

/* The kernel has one handle less, or never got it. */
static void close_file(struct inode *inode)
{
	struct fs_head head = { .op = FS_RELEASE, .ino = inode->ino };

	pthread_mutex_lock(&inode->lock);
	if (!--inode->opens) {
		map_forget(&inode->map);
		inode->posix_locks = false;
	}
	pthread_mutex_unlock(&inode->lock);
	call_and_forget(inode->mount, &head, sizeof(head));
}

/* FS_MAKE may have found a file that another client made just now: it is not empty then. */
static int truncate_found(struct inode *inode)
{
	struct message q;
	struct fs_setattr *set = message_begin(&q, FS_SETATTR, inode->ino, sizeof(*set), NULL);
	int err;

	set->mask = FS_SET_SIZE;
	inode_enter_alone(inode);
	err = inode_set(inode, &q);
	inode_leave(inode);
	return err;
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct message q;
	struct fs_make *make = message_begin(&q, FS_MAKE, parent, sizeof(*make), req);
	struct fuse_entry_param entry = { 0 };
	struct inode *inode;
	struct fs_attr attr;
	int err = message_name(&q, name);

	make->mode = (mode & ~(mode_t)S_IFMT) | S_IFREG;
	make->make = FS_MAKE_OPEN | (fi->flags & O_EXCL ? FS_MAKE_EXCLUSIVE : 0);
	if (!err)
		err = call_attr(m, &q, &attr);
	atomic_fetch_add(&m->changes, 1);
	if (err || !(inode = inode_add(m, &attr))) {
		/* Without memory the donor's count stays one too high until this client leaves. */
		op_reply(req, err ? err : -ENOMEM);
		return;
	}
	note_open(inode, attr.change, fi);
	if (attr.size && fi->flags & O_TRUNC)
		err = truncate_found(inode);
	entry_fill(inode, &entry);
	if (err)
		op_reply(req, err);
	else
		err = fuse_reply_create(req, &entry, fi);
	if (err) {
		close_file(inode);
		inode_put(inode, 1);
	}
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct inode *inode = op_inode(req, ino);
	struct message q;
	struct fs_open *open = message_begin(&q, FS_OPEN, ino, sizeof(*open), req);
	bool cuts = fi->flags & O_TRUNC;
	struct fs_attr attr;
	int err;

	if (!inode)
		return;
	open->flags = (uint32_t)fi->flags;
	if (cuts) {
		privilege_check(req, inode);
		inode_enter_alone(inode);
	}
	inode_commit_ahead(inode);
	err = call_attr(m, &q, &attr);
	if (!err && cuts)
		inode_learn_size(inode, &attr);
	else if (!err)
		inode_learn(inode, &attr);
	if (cuts)
		inode_leave(inode);
	if (!err)
		note_open(inode, attr.change, fi);
	if (err)
		op_reply(req, err);
	else if (fuse_reply_open(req, fi))
		close_file(inode);
	inode_put(inode, 1);
}

void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	int err = inode_flush(inode);
	bool locks;

	(void)ino;
	pthread_mutex_lock(&inode->lock);
	locks = inode->posix_locks;
	pthread_mutex_unlock(&inode->lock);
	if (locks)
		lock_drop(inode, fi->lock_owner, false);
	op_reply(req, err);
}

/* A write has replied when the donor had the data: the size and time are all that is left. */
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	op_reply(req, inode_commit(file_inode(fi)));
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
