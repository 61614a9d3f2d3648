/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/privilege.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include "apps/mount/donor/call.h"

/*
 * Patches only the first reply, libfuse's reply to FUSE_INIT. Kernels before 5.11 ignore the flag
 * and continue to read capabilities.
 */
static ssize_t send_reply(int fd, struct iovec *iov, int count, void *userdata)
{
	struct mount *m = userdata;

	if (!m->greeted) {
		struct fuse_init_out *out = count > 1 ? iov[1].iov_base : NULL;

		m->greeted = true;
		if (out && iov[1].iov_len >= sizeof(*out))
			out->flags |= FUSE_HANDLE_KILLPRIV_V2;
	}
	return writev(fd, iov, count);
}

static ssize_t receive_request(int fd, void *buffer, size_t size, void *userdata)
{
	(void)userdata;
	return read(fd, buffer, size);
}

int privilege_hook(struct mount *m)
{
	static const struct fuse_custom_io io = { .writev = send_reply, .read = receive_request };

	return fuse_session_custom_io(m->fuse, &io, fuse_session_fd(m->fuse));
}

uint32_t privilege_drop(uint32_t mode)
{
	if (!S_ISREG(mode))
		return mode;
	/* Without the group's execute bit, set-group-ID once meant mandatory locking. */
	return mode & ~(uint32_t)(S_ISUID | (mode & S_IXGRP ? S_ISGID : 0));
}

void privilege_check(fuse_req_t req, struct inode *inode)
{
	struct donor_message q;
	struct wire_fs_setattr *set;
	uint32_t mode;

	if (fuse_req_ctx(req)->uid == 0)
		return;
	pthread_mutex_lock(&inode->lock);
	mode = inode->attr.mode;
	pthread_mutex_unlock(&inode->lock);
	if (mode == privilege_drop(mode))
		return;
	set = call_begin(&q, FS_SETATTR, inode->ino, sizeof(*set), NULL);
	set->mask = FS_SET_MODE;
	set->mode = privilege_drop(mode);
	(void)inode_set(inode, &q);
}
