/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/call.h"

#include <errno.h>
#include <string.h>

#include "apps/mount/fuse/operation_span.h"
#include "lib/base/clock.h"
#include "wire/status.h"

#define MOUNT_NS 10000000000ull /* for FS_MOUNT, which may wait for a silent client */

void *call_begin(struct donor_message *q, enum wire_fs_op op, uint64_t ino, size_t fixed,
		 fuse_req_t req)
{
	memset(q->bytes, 0, fixed);
	q->length = fixed;
	q->req = req;
	q->phase = SHARING_NO_PHASE;
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

bool call_is_in_doubt(int status)
{
	return status == -ETIMEDOUT || status == -ECONNRESET;
}

int call_status(int status, const void *reply, size_t length, size_t body_min)
{
	struct wire_fs_reply head;

	if (status == -ECANCELED)
		return -EINTR;
	if (status || length < sizeof(head))
		return -EIO;
	memcpy(&head, reply, sizeof(head));
	head.status = wire_status_fs(head.status);
	if (!head.status && length < sizeof(head) + body_min)
		return -EIO;
	return head.status;
}

struct patience {
	struct mount *mount;
	fuse_req_t req;
	uint64_t mount_ns; /* when FS_MOUNT ends */
	bool waits; /* the timeout has passed */
};

/* Of this thread's calls, or 0. */
static _Thread_local uint64_t calls_until_ns;

void call_end_at(uint64_t ns)
{
	calls_until_ns = ns;
}

bool call_is_late(void)
{
	return calls_until_ns && weir_now_ns() >= calls_until_ns;
}

static bool goes_on(void *arg)
{
	struct patience *patience = arg;
	struct mount *m = patience->mount;

	if (call_is_late())
		return false;

	if (!m->fuse)
		return weir_now_ns() < patience->mount_ns;
	if (fuse_session_exited(m->fuse))
		return false;
	if (!patience->waits)
		loop_wait_begin(m);
	patience->waits = true;
	return !patience->req || !fuse_req_interrupted(patience->req);
}

int call_wait(struct mount *m, fuse_req_t req, const void *message, size_t length,
	      struct donor_reply *reply)
{
	struct patience patience = { .mount = m, .req = req };
	int rc;

	if (!m->fuse)
		patience.mount_ns = weir_now_ns() + MOUNT_NS;
	if (m->is_pool) {
		rc = link_call_wait(&m->link, message, length, reply->bytes, sizeof(reply->bytes),
				    &reply->length, goes_on, &patience);
		if (patience.waits)
			loop_wait_end(m);
		return rc;
	}
	if (m->fuse && !m->options->hard)
		return weir_call(m->session, message, length, reply->bytes, sizeof(reply->bytes),
				 &reply->length);
	rc = weir_call_while(m->session, message, length, reply->bytes, sizeof(reply->bytes),
			     &reply->length, goes_on, &patience);
	if (patience.waits)
		loop_wait_end(m);
	return rc;
}

static int call_now(struct mount *m, struct donor_message *q, struct donor_reply *reply,
		    size_t body_min)
{
	const struct sharing_request request = sharing_note_request(&m->share);
	struct weir_span *span = operation_span_call(m, operation_span(), q->head.op);
	int rc = call_wait(m, q->req, q->bytes, q->length, reply), status;

	q->phase = SHARING_NO_PHASE;
	q->is_in_doubt = call_is_in_doubt(rc);
	if (!rc && reply->length >= sizeof(reply->head)) {
		sharing_note_reply(&m->share, request, reply->head.shared);
		if (sharing_allows(reply->head.shared) && request.phase % 2 == 0)
			q->phase = request.phase;
	}
	status = call_status(rc, reply->bytes, reply->length, body_min);
	weir_span_end(span, status);
	return status;
}

int call(struct mount *m, struct donor_message *q, struct donor_reply *reply, size_t body_min)
{
	int rc = change_log_settle(m, q->req);

	if (!rc)
		return call_now(m, q, reply, body_min);
	q->phase = SHARING_NO_PHASE;
	q->is_in_doubt = true; /* as after a call without an answer */
	return rc;
}

int call_attr(struct mount *m, struct donor_message *q, struct wire_fs_attr *attr)
{
	return call_attrs(m, q, attr, 1);
}

int call_attrs(struct mount *m, struct donor_message *q, struct wire_fs_attr *attrs,
	       unsigned int nr)
{
	struct donor_reply reply;
	int rc = call(m, q, &reply, nr * sizeof(*attrs));

	if (!rc)
		memcpy(attrs, call_reply_body(&reply), nr * sizeof(*attrs));
	return rc;
}

int call_change(struct mount *m, struct donor_message *q, struct donor_reply *reply,
		size_t body_min)
{
	int rc = call(m, q, reply, body_min);

	atomic_fetch_add(&m->changes, 1);
	if (rc == -EIO || rc == -EINTR)
		sharing_forget(&m->share);
	return rc;
}

int call_later(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
	       weir_reply_fn *fn, void *arg)
{
	if (m->is_pool)
		return link_call(&m->link, message, length, NULL, fn, arg) ? -EIO : 0;
	return weir_call_async(m->session, message, length, timeout_ns, fn, arg) ? -EIO : 0;
}

void call_ignore_reply(void *arg, int status, const void *reply, size_t length)
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
	rc = call_later(m, message, length, 0, call_ignore_reply, m);
	if (rc)
		mount_end(m);
	return rc;
}
