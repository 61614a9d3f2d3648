/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor answers a mount's reservations and batches with arbitrary bytes. Each change ends once,
 * no reserved file has a map beyond the reply, and the log is empty in the end.
 *
 * The input is a list of replies: bytes for the operation, repairs and length, then the reply.
 * Stubs replace the rest of the mount.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/operation_span.h"

#define CHANGES 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct mount_options options = { .timeout = 0 };
static struct mount m;
static struct donor_reply next;
static int outcome; /* of the session, for the next call */
static unsigned int added, ended;

/* ---- what the files under test call ---- */

int call_wait(struct mount *mount, fuse_req_t req, const void *message, size_t length,
	      struct donor_reply *reply)
{
	int rc = outcome;

	(void)mount;
	(void)req;
	(void)message;
	assert(length <= WEIR_MESSAGE_MAX);
	memcpy(reply->bytes, next.bytes, next.length);
	reply->length = next.length;
	outcome = 0;
	return rc;
}

int call(struct mount *mount, struct donor_message *q, struct donor_reply *reply, size_t body_min)
{
	int rc = call_wait(mount, NULL, q->bytes, q->length, reply);

	return call_status(rc, reply->bytes, reply->length, body_min);
}

void *call_begin(struct donor_message *q, enum wire_fs_op op, uint64_t ino, size_t fixed,
		 fuse_req_t req)
{
	(void)req;
	memset(q->bytes, 0, fixed);
	q->length = fixed;
	q->head.op = (uint16_t)op;
	q->head.ino = ino;
	return q->bytes;
}

bool call_is_late(void)
{
	return false;
}

bool call_is_in_doubt(int status)
{
	return status == -ETIMEDOUT || status == -ECONNRESET;
}

int call_status(int status, const void *reply, size_t length, size_t body_min)
{
	struct wire_fs_reply head;

	if (status || length < sizeof(head))
		return -EIO;
	memcpy(&head, reply, sizeof(head));
	return head.status || length >= sizeof(head) + body_min ? head.status : -EIO;
}

int call_later(struct mount *mount, const void *message, size_t length, uint64_t timeout_ns,
	       weir_reply_fn *fn, void *arg)
{
	(void)mount;
	(void)message;
	(void)length;
	(void)timeout_ns;
	fn(arg, 0, NULL, 0);
	return 0;
}

void call_ignore_reply(void *arg, int status, const void *reply, size_t length)
{
	(void)status;
	(void)reply;
	(void)length;
	mount_end(arg);
}

int call_without_reply(struct mount *mount, const void *message, size_t length)
{
	(void)mount;
	(void)message;
	(void)length;
	return 0;
}

int weir_call_async(struct weir_session *session, const void *message, size_t length,
		    uint64_t timeout_ns, weir_reply_fn *fn, void *arg)
{
	struct donor_reply reply = { 0 };
	int rc = call_wait(&m, NULL, message, length, &reply);

	(void)session;
	(void)timeout_ns;
	fn(arg, rc, reply.bytes, reply.length);
	return 0;
}

struct sharing_request sharing_note_request(const struct sharing *share)
{
	(void)share;
	return (struct sharing_request){ 0 };
}

void sharing_note_reply(struct sharing *share, struct sharing_request request, uint32_t shared)
{
	(void)share;
	(void)request;
	(void)shared;
}

bool sharing_is_alone(const struct sharing *share)
{
	(void)share;
	return true;
}

void sharing_forget(struct sharing *share)
{
	(void)share;
}

void loop_wait_begin(struct mount *mount)
{
	(void)mount;
}

void loop_wait_end(struct mount *mount)
{
	(void)mount;
}

void mount_begin(struct mount *mount)
{
	mount->in_flight++;
}

void mount_end(struct mount *mount)
{
	mount->in_flight--;
}

void mount_log(enum weir_log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

/* ---- replies ---- */

static void change_ended(void *arg, int status, const void *reply, size_t length)
{
	char copy[sizeof(struct wire_fs_reply) + sizeof(struct wire_fs_attr)];

	(void)arg;
	ended++;
	if (status)
		return;
	assert(length >= sizeof(struct wire_fs_reply) && length <= sizeof(copy));
	memcpy(copy, reply, length);
}

/* Changes of files, and in the middle one of a name. */
static void add_changes(void)
{
	const struct wire_fs_head head = { .op = FS_RELEASE, .ino = 5 };

	for (unsigned int i = 0; i < CHANGES; i++) {
		struct change *change = change_new(&head, sizeof(head));

		if (i != CHANGES / 2) {
			change->fn = change_ended;
			added++;
		}
		change_log_add(&m, change);
	}
}

static void play_batch(void)
{
	added = ended = 0;
	atomic_store(&m.log.is_used, true);
	add_changes();
	change_log_run(&m);
	for (int i = 0; i < 3 && !change_log_is_empty(&m); i++)
		change_log_run(&m);
	assert(change_log_is_empty(&m));
	assert(ended == added && !m.in_flight);
	assert(!m.log.waiting && !m.log.bytes && !m.log.flying);
}

static void play_reserve(void)
{
	struct reserved_file file;
	struct wire_fs_map map;

	m.reserve.changes = 1;
	m.reserve.number = m.reserve.end_number;
	reserve_note_change(&m);
	while (reserve_take_file(&m, &file)) {
		assert(file.map_length <= sizeof(file.map));
		assert(map_makes_sense(file.map, file.map_length, 0, &map));
	}
}

static void repair(uint8_t how)
{
	struct wire_fs_result result;
	size_t at = sizeof(struct wire_fs_batched);

	if (next.length < sizeof(next.head) || !(how & 1))
		return;
	next.head.status = 0;
	for (; how & 2 && next.length - at >= sizeof(result) && at < next.length;
	     at += sizeof(result) + result.length) {
		memcpy(&result, next.bytes + at, sizeof(result));
		result.status = result.status % 4 ? 0 : result.status;
		result.length = result.length % 3 ? 0 : (uint32_t)sizeof(struct wire_fs_attr);
		memcpy(next.bytes + at, &result, sizeof(result));
	}
}

static void repair_file(uint8_t how)
{
	struct wire_fs_reserved reserved;
	const size_t at = sizeof(reserved) + sizeof(struct wire_fs_attr);
	struct wire_fs_map map = { 0 };
	const size_t fixed = sizeof(map) - sizeof(map.reply);

	if (next.length < at + fixed || !(how & 1))
		return;
	memcpy(&reserved, next.bytes, sizeof(reserved));
	reserved.files = 1 + reserved.files % 3;
	memcpy(next.bytes, &reserved, sizeof(reserved));
	memcpy((char *)&map + sizeof(map.reply), next.bytes + at, fixed);
	map.end |= 1ull << 40;
	map.extents = how & 2 ? map.extents % 6 : 0;
	memcpy(next.bytes + at, (char *)&map + sizeof(map.reply), fixed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&m, 0, sizeof(m));
	m.options = &options;
	if (change_log_init(&m.log))
		return 0;
	reserve_init(&m.reserve);
	while (size > 3) {
		size_t length = data[2] * 8u < size - 3 ? data[2] * 8u : size - 3;

		memcpy(next.bytes, data + 3, length);
		next.length = length;
		outcome = data[1] & 8 ? -ETIMEDOUT : 0;
		repair(data[1]);
		if (data[0] % 2)
			repair_file(data[1]);
		if (data[0] % 2)
			play_reserve();
		else
			play_batch();
		data += 3 + length;
		size -= 3 + length;
	}
	change_log_fini(&m.log);
	reserve_fini(&m.reserve);
	return 0;
}
