/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/privilege.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include "apps/mount/donor/call.h"

#define GROUPS_MAX 1024 /* supplementary groups looked at */

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

static bool is_in_group(fuse_req_t req, gid_t group)
{
	gid_t groups[GROUPS_MAX];
	int nr = fuse_req_getgroups(req, GROUPS_MAX, groups);

	if (fuse_req_ctx(req)->uid == 0 || fuse_req_ctx(req)->gid == group)
		return true;
	while (nr > 0)
		if (nr-- <= GROUPS_MAX && groups[nr] == group)
			return true;
	return false;
}

uint32_t privilege_drop(fuse_req_t req, const struct wire_fs_attr *attr)
{
	uint32_t mode = attr->mode;

	if (!S_ISREG(mode) || !(mode & (S_ISUID | S_ISGID)))
		return mode;
	/*
	 * Without the group's execute bit, set-group-ID once meant mandatory locking: as in the
	 * kernel, members of the group leave the bit.
	 */
	if (mode & S_ISGID && (mode & S_IXGRP || !is_in_group(req, attr->gid)))
		mode &= ~(uint32_t)S_ISGID;
	return mode & ~(uint32_t)S_ISUID;
}

void privilege_check(fuse_req_t req, struct inode *inode)
{
	struct donor_message q;
	struct wire_fs_setattr *set;
	struct wire_fs_attr attr;
	uint32_t mode;

	if (fuse_req_ctx(req)->uid == 0)
		return;
	inode_attr(inode, &attr);
	mode = privilege_drop(req, &attr);
	if (mode == attr.mode)
		return;
	set = call_begin(&q, FS_SETATTR, inode->ino, sizeof(*set), NULL);
	set->mask = FS_SET_MODE;
	set->mode = mode;
	(void)inode_set(inode, &q);
}
