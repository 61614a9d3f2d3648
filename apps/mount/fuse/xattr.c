/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extended attributes. The kernel asks for security.capability before each write, and ls and cp
 * ask for more of each file: a file that is known to have none costs no call.
 */
#include <errno.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/ops.h"

#define CAPABILITY "security.capability"

/*
 * Another client may give a file its first attribute at any time, so in company that is believed
 * for the capabilities only, of which the kernel wants to know whether the write at hand must
 * take them away.
 */
static bool has_none(struct mount *m, fuse_ino_t ino, bool before_write)
{
	struct inode *inode;
	bool none;

	if (atomic_load(&m->share.shared) && !before_write)
		return false;
	inode = inode_get(m, ino);
	if (!inode)
		return false;
	pthread_mutex_lock(&inode->lock);
	none = inode->attr.flags & FS_ATTR_PLAIN && !inode->xattrs;
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode, 1);
	return none;
}

static void note_set(struct mount *m, fuse_ino_t ino)
{
	struct inode *inode = inode_get(m, ino);

	if (!inode)
		return;
	pthread_mutex_lock(&inode->lock);
	inode->xattrs = true;
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode, 1);
}

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		 int flags)
{
	struct message q;
	struct fs_xattr *set = message_begin(&q, FS_SETXATTR, ino, sizeof(*set), req);
	int err = message_name(&q, name);

	set->flags = (uint32_t)flags;
	set->value_length = (uint32_t)size;
	if (!err)
		err = size > FS_XATTR_MAX ? -E2BIG : message_add(&q, value, size);
	note_set(mount_of(req), ino);
	if (!err)
		err = call_plain(mount_of(req), &q);
	atomic_fetch_add(&mount_of(req)->changes, 1);
	op_reply(req, err);
}

/* A value, or the list of names; @size 0 asks how long it is. */
static void reply_value(fuse_req_t req, const struct message *q, size_t size)
{
	struct reply reply;
	int err = call(mount_of(req), q, &reply, 0);
	size_t length;

	if (err) {
		op_reply(req, err);
		return;
	}
	length = reply.length - sizeof(reply.head);
	if (!size)
		fuse_reply_xattr(req, length);
	else if (length > size)
		op_reply(req, -ERANGE);
	else
		fuse_reply_buf(req, reply_body(&reply), length);
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct message q;
	int err;

	if (has_none(mount_of(req), ino, !strcmp(name, CAPABILITY))) {
		op_reply(req, -ENODATA);
		return;
	}
	message_begin(&q, FS_GETXATTR, ino, sizeof(struct fs_head), req);
	err = message_name(&q, name);
	if (err)
		op_reply(req, err);
	else
		reply_value(req, &q, size);
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct message q;

	if (has_none(mount_of(req), ino, false)) {
		if (size)
			fuse_reply_buf(req, NULL, 0);
		else
			fuse_reply_xattr(req, 0);
		return;
	}
	message_begin(&q, FS_LISTXATTR, ino, sizeof(struct fs_head), req);
	reply_value(req, &q, size);
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct message q;
	int err;

	message_begin(&q, FS_REMOVEXATTR, ino, sizeof(struct fs_head), req);
	err = message_name(&q, name);
	if (!err)
		err = call_plain(mount_of(req), &q);
	atomic_fetch_add(&mount_of(req)->changes, 1);
	op_reply(req, err);
}
