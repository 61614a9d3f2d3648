/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/call.h"

#include <errno.h>
#include <string.h>

#include "wire/status.h"

void *call_begin(struct donor_message *q, enum wire_fs_op op, uint64_t ino, size_t fixed,
		 fuse_req_t req)
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

int call_add_bytes(struct donor_message *q, const void *bytes, size_t length)
{
	if (length > sizeof(q->bytes) - q->length)
		return -EMSGSIZE;
	memcpy(q->bytes + q->length, bytes, length);
	q->length += length;
	return 0;
}

int call_add_name(struct donor_message *q, const char *name)
{
	size_t length = strlen(name);

	if (length > FS_NAME_MAX)
		return -ENAMETOOLONG;
	q->head.name_length = (uint32_t)length;
	return call_add_bytes(q, name, length);
}

int call_status(int status, const void *reply, size_t length, size_t body_min)
{
	struct wire_fs_reply head;

	if (status || length < sizeof(head))
		return -EIO;
	memcpy(&head, reply, sizeof(head));
	head.status = wire_status_fs(head.status);
	if (!head.status && length < sizeof(head) + body_min)
		return -EIO;
	return head.status;
}

int call(struct mount *m, const struct donor_message *q, struct donor_reply *reply, size_t body_min)
{
	const struct sharing_request request = sharing_note_request(&m->share);
	int rc = weir_call(m->session, q->bytes, q->length, reply->bytes, sizeof(reply->bytes),
			   &reply->length);

	if (!rc && reply->length >= sizeof(reply->head))
		sharing_note_reply(&m->share, request, reply->head.shared);
	return call_status(rc, reply->bytes, reply->length, body_min);
}

int call_plain(struct mount *m, const struct donor_message *q)
{
	struct donor_reply reply;

	return call(m, q, &reply, 0);
}

int call_attr(struct mount *m, const struct donor_message *q, struct wire_fs_attr *attr)
{
	struct donor_reply reply;
	int rc = call(m, q, &reply, sizeof(*attr));

	if (!rc)
		memcpy(attr, call_reply_body(&reply), sizeof(*attr));
	return rc;
}

int call_later(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
	       weir_reply_fn *fn, void *arg)
{
	return weir_call_async(m->session, message, length, timeout_ns, fn, arg) ? -EIO : 0;
}

static void reply_ignored(void *arg, int status, const void *reply, size_t length)
{
	(void)status;
	(void)reply;
	(void)length;
	mount_end(arg);
}

int call_without_reply(struct mount *m, const void *message, size_t length)
{
	int rc;

	mount_begin(m);
	rc = call_later(m, message, length, 0, reply_ignored, m);
	if (rc)
		mount_end(m);
	return rc;
}
