/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extended attributes. The kernel reads security.capability before each write, and ls and cp read
 * further attributes of each file. For a file known to have none, no call to the donor is needed.
 */
#include <errno.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/ops.h"
#include "apps/mount/sealed/sealed.h"

#define CAPABILITY "security.capability"
#define TRUSTED "trusted."

/*
 * Another client may add a file's first attribute at any time. Knowledge that may be old serves
 * only for capabilities, which the kernel reads before a write in order to clear capabilities.
 */
static bool has_none(struct mount *m, fuse_ino_t ino, bool before_write)
{
	struct inode *inode;
	bool none;

	inode = inode_get(m, ino);
	if (!inode)
		return false;
	pthread_mutex_lock(&inode->lock);
	none = inode->attr.flags & FS_ATTR_PLAIN && !inode->xattrs &&
	       (before_write || sharing_knows(&m->share, inode->known));
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode, 1);
	return none;
}

/* Without its mark, a sealed tree is lost: programs that copy attributes shall not reach it. */
static bool has_mark(struct mount *m, fuse_ino_t ino)
{
	return m->sealed && ino == FS_ROOT;
}

static bool is_mark(struct mount *m, fuse_ino_t ino, const char *name)
{
	return has_mark(m, ino) && !strcmp(name, SEALED_MARK);
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

/* @rc: an error so far */
static void change(fuse_req_t req, int rc, struct donor_message *q)
{
	struct donor_reply reply;
	struct wire_fs_attr attr;

	if (!rc)
		rc = call_change(mount_of(req), q, &reply, sizeof(attr));
	if (!rc) {
		memcpy(&attr, call_reply_body(&reply), sizeof(attr));
		inode_learn_changed(mount_of(req), &attr, q->phase);
	}
	op_reply(req, rc);
}

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		 int flags)
{
	struct donor_message q;
	struct wire_fs_xattr *set = call_begin(&q, FS_SETXATTR, ino, sizeof(*set), req);
	int rc = call_add_name(&q, name);

	if (is_mark(mount_of(req), ino, name)) {
		op_reply(req, -EPERM);
		return;
	}
	set->flags = (uint32_t)flags;
	set->value_length = (uint32_t)size;
	if (!rc)
		rc = size > FS_XATTR_MAX ? -E2BIG : call_add_bytes(&q, value, size);
	note_set(mount_of(req), ino);
	change(req, rc, &q);
}

/* Replies a value or the list of names; @size 0 asks for the length. */
static void reply_bytes(fuse_req_t req, const char *bytes, size_t length, size_t size)
{
	if (!size)
		fuse_reply_xattr(req, length);
	else if (length > size)
		op_reply(req, -ERANGE);
	else
		fuse_reply_buf(req, bytes, length);
}

/*
 * Removes names from a list: those that begin with the @begin_length bytes at @begin. With the NUL
 * as the last byte, @begin is a whole name. Returns the length left.
 */
static size_t hide(char *names, size_t length, const char *begin, size_t begin_length)
{
	size_t left = 0;

	for (size_t at = 0, name; at < length; at += name) {
		name = strnlen(names + at, length - at - 1) + 1;
		if (name >= begin_length && !memcmp(names + at, begin, begin_length))
			continue;
		memmove(names + left, names + at, name);
		left += name;
	}
	return left;
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct donor_message q;
	struct donor_reply reply;
	int rc;

	if (is_mark(mount_of(req), ino, name) ||
	    has_none(mount_of(req), ino, !strcmp(name, CAPABILITY))) {
		op_reply(req, -ENODATA);
		return;
	}
	call_begin(&q, FS_GETXATTR, ino, sizeof(struct wire_fs_head), req);
	rc = call_add_name(&q, name);
	if (!rc)
		rc = call(mount_of(req), &q, &reply, 0);
	if (rc)
		op_reply(req, rc);
	else
		reply_bytes(req, call_reply_body(&reply), reply.length - sizeof(reply.head), size);
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct donor_message q;
	struct donor_reply reply;
	char *names = reply.bytes + sizeof(reply.head);
	size_t length;
	int rc;

	if (has_none(mount_of(req), ino, false)) {
		reply_bytes(req, NULL, 0, size);
		return;
	}
	call_begin(&q, FS_LISTXATTR, ino, sizeof(struct wire_fs_head), req);
	rc = call(mount_of(req), &q, &reply, 0);
	if (rc) {
		op_reply(req, rc);
		return;
	}
	length = reply.length - sizeof(reply.head);
	if (fuse_req_ctx(req)->uid) /* only root sees these */
		length = hide(names, length, TRUSTED, strlen(TRUSTED));
	else if (has_mark(mount_of(req), ino))
		length = hide(names, length, SEALED_MARK, sizeof(SEALED_MARK));
	reply_bytes(req, names, length, size);
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct donor_message q;
	int rc;

	if (is_mark(mount_of(req), ino, name)) {
		op_reply(req, -EPERM);
		return;
	}
	call_begin(&q, FS_REMOVEXATTR, ino, sizeof(struct wire_fs_head), req);
	rc = call_add_name(&q, name);
	change(req, rc, &q);
}
