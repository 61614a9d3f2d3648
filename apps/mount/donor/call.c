/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/call.h"

#include <errno.h>
#include <string.h>

#define ERRNO_MAX 4095

void *message_begin(struct message *q, enum fs_op op, uint64_t ino, size_t fixed, fuse_req_t req)
{
	memset(q->bytes, 0, fixed);
	q->length = fixed;
	q->head.op = (uint16_t)op;
	q->head.ino = ino;
	if (req) {
		q->head.uid = fuse_req_ctx(req)->uid;
		q->head.gid = fuse_req_ctx(req)->gid;
	}
	return q->bytes;
}

int message_add(struct message *q, const void *bytes, size_t length)
{
	if (length > sizeof(q->bytes) - q->length)
		return -EMSGSIZE;
	memcpy(q->bytes + q->length, bytes, length);
	q->length += length;
	return 0;
}

int message_name(struct message *q, const char *name)
{
	size_t length = strlen(name);

	if (length > FS_NAME_MAX)
		return -ENAMETOOLONG;
	q->head.name_length = (uint32_t)length;
	return message_add(q, name, length);
}

int call_status(int status, const void *reply, size_t length, size_t body_min)
{
	struct fs_reply head;

	if (status || length < sizeof(head))
		return -EIO;
	memcpy(&head, reply, sizeof(head));
	if (head.status > 0 || head.status < -ERRNO_MAX)
		return -EIO;
	if (!head.status && length < sizeof(head) + body_min)
		return -EIO;
	return head.status;
}

int call(struct mount *m, const struct message *q, struct reply *reply, size_t body_min)
{
	unsigned int phase = share_phase(&m->share);
	int err = weir_call(m->session, q->bytes, q->length, reply->bytes, sizeof(reply->bytes),
			    &reply->length);

	if (!err && reply->length >= sizeof(reply->head))
		share_note(&m->share, phase, reply->head.shared);
	return call_status(err, reply->bytes, reply->length, body_min);
}

int call_plain(struct mount *m, const struct message *q)
{
	struct reply reply;

	return call(m, q, &reply, 0);
}

int call_attr(struct mount *m, const struct message *q, struct fs_attr *attr)
{
	struct reply reply;
	int err = call(m, q, &reply, sizeof(*attr));

	if (!err)
		memcpy(attr, reply_body(&reply), sizeof(*attr));
	return err;
}

int call_later(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
	       weir_reply_fn *fn, void *arg)
{
	return weir_call_async(m->session, message, length, timeout_ns, fn, arg) ? -EIO : 0;
}

static void forgotten(void *arg, int status, const void *reply, size_t length)
{
	(void)status;
	(void)reply;
	(void)length;
	mount_end(arg);
}

int call_and_forget(struct mount *m, const void *message, size_t length)
{
	int err;

	mount_begin(m);
	err = call_later(m, message, length, 0, forgotten, m);
	if (err)
		mount_end(m);
	return err;
}
