/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/ops.h"

#include <errno.h>

#include "apps/mount/fuse/operation_span.h"

#define BACKGROUND_MAX 64 /* reads and direct writes that the kernel keeps in flight */

/*
 * Capabilities that libfuse enables by default, and weir disables: - splicing: data goes to and
 * from registered buffers; - AUTO_INVAL_DATA: drops a file's pages whenever its times change, even
 * by this client's own writes. weir
 *   checks pages at open and when a lock is granted;
 * - HANDLE_KILLPRIV: see privilege.h; - WRITEBACK_CACHE: other clients could not see pages cached
 * in this kernel, and a crash would lose them
 *   after write() has returned.
 */
#define UNWANTED                                                               \
	(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | \
	 FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_WRITEBACK_CACHE)
/* The target of a symbolic link never changes, and inode numbers are never reused. */
#define WANTED                                                                        \
	(FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |        \
	 FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ATOMIC_O_TRUNC | \
	 FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_CACHE_SYMLINKS)

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->want &= ~(unsigned int)UNWANTED;
	conn->want |= conn->capable & WANTED;
	conn->max_write = MOUNT_TRANSFER_MAX;
	conn->max_background = BACKGROUND_MAX;
	conn->congestion_threshold = BACKGROUND_MAX * 3 / 4;
	conn->time_gran = 1;
}

struct inode *op_inode(fuse_req_t req, fuse_ino_t ino)
{
	struct inode *inode = inode_get(mount_of(req), ino);

	if (!inode)
		op_reply(req, -ESTALE);
	return inode;
}

void op_reply(fuse_req_t req, int rc)
{
	operation_span_failed(rc);
	fuse_reply_err(req, -rc);
}

const struct fuse_lowlevel_ops mount_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.create = op_create,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.fsyncdir = op_fsyncdir,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.getlk = op_getlk,
	.setlk = op_setlk,
	.flock = op_flock,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.ioctl = op_ioctl,
};
