/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations requested by the kernel: libfuse's low-level operations. See fuse_lowlevel.h for their
 * contracts. Each ends with a single reply.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_OPS_H
#define WEIR_APPS_MOUNT_FUSE_OPS_H

#include <fcntl.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/mount.h"

extern const struct fuse_lowlevel_ops mount_ops;

/*
 * A file handle is the address of the inode, and in its lowest bits the access mode, which the
 * kernel does not tell with an ioctl().
 */
#define FILE_HANDLE_ACCESS ((uint64_t)O_ACCMODE)
_Static_assert(_Alignof(struct inode) > O_ACCMODE, "the lowest bits are free");

static inline uint64_t file_handle(struct inode *inode, int flags)
{
	return (uintptr_t)inode | ((uint64_t)flags & FILE_HANDLE_ACCESS);
}

static inline struct inode *file_inode(const struct fuse_file_info *fi)
{
	return (struct inode *)(uintptr_t)(fi->fh & ~FILE_HANDLE_ACCESS);
}

/* The inode of an operation; the caller owes an inode_put(). NULL: replied ESTALE. */
struct inode *op_inode(fuse_req_t req, fuse_ino_t ino);
/* Replies 0 or an error. */
void op_reply(fuse_req_t req, int rc);

/*
 * entry.c. Fills in what the kernel learns about an inode; counts as a lookup. @phase: in which the
 * name and the attributes were true.
 */
void entry_fill(struct inode *inode, struct fuse_entry_param *entry, unsigned int phase);
/*
 * Sends a change of names and learns the attributes of the @nr inodes that it changed. Return: 0 or
 * an errno for the program.
 */
int entry_change(struct mount *m, struct donor_message *q, struct donor_reply *reply,
		 struct wire_fs_attr *attrs, unsigned int nr);
/* Ends a change of @dir, which has added a name if @rc is 0. */
void entry_added(struct inode *dir, int rc, unsigned int phase, const char *name, uint64_t ino);
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void op_readlink(fuse_req_t req, fuse_ino_t ino);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	       const char *new_name, unsigned int flags);

/* dir.c */
void dirs_init(struct open_dirs *dirs);
/* Frees directories that the kernel has not closed: an unmount does not wait for that. */
void dirs_fini(struct open_dirs *dirs);
/* Learns all names of a directory, if nothing changes meanwhile. Calls the donor many times. */
void dir_list_names(struct mount *m, fuse_ino_t ino);
void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* attr.c */
void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		struct fuse_file_info *fi);

/* open.c */
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi);
void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* io.c */
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
	      struct fuse_file_info *fi);

/* ioctl.c */
void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
	      struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_length,
	      size_t out_length);

/* space.c */
void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
		  struct fuse_file_info *fi);
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi);
void op_statfs(fuse_req_t req, fuse_ino_t ino);

/* lock.c */
void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock);
void op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
	      int sleep);
void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op);
/* Drops an owner's record locks, or its flock, when a descriptor is closed. */
void lock_drop(struct inode *inode, uint64_t owner, bool flock);

/* xattr.c */
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		 int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

#endif
