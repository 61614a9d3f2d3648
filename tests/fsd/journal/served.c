/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/fsd/journal/served.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int disk_read(void *arg, uint64_t offset, void *to, size_t length)
{
	struct served *s = arg;

	assert_true(offset <= s->bytes && length <= s->bytes - offset);
	memcpy(to, s->disk + offset, length);
	return 0;
}

static int disk_write(void *arg, uint64_t offset, const void *from, size_t length)
{
	struct served *s = arg;

	assert_true(offset <= s->bytes && length <= s->bytes - offset);
	s->writes++;
	if (!s->disk_error)
		memcpy(s->disk + offset, from, length);
	return s->disk_error;
}

static void start(void *arg, void *to, const struct fsd_data *piece, int *status)
{
	struct served *s = arg;

	assert_true(s->nr_moves < SERVED_MOVES_MAX);
	s->move[s->nr_moves++] = (struct served_move){ *piece, to, status };
}

static void move(struct served *s, const struct served_move *m)
{
	const struct fsd_data *piece = &m->piece;
	uint8_t *at = NULL;

	/* After its reply a call is gone, and perhaps its connection's area. */
	assert_true(!m->call || !m->call->replies);
	if (piece->kind != FSD_DATA_ZERO) {
		assert_true(piece->place + piece->length <= sizeof(m->call->conn->area));
		at = m->call->conn->area + piece->place;
	}
	if (piece->kind == FSD_DATA_WRITE && s->move_error) {
		*m->status = s->move_error;
	} else if (piece->kind == FSD_DATA_WRITE) {
		memset(at, 0, piece->before);
		memset(at + piece->length - piece->after, 0, piece->after);
		assert_int_equal(disk_write(s, piece->volume, at, piece->length), 0);
	} else if (piece->kind == FSD_DATA_ZERO) {
		memset(s->disk + piece->volume, 0, piece->length);
	} else if (piece->kind == FSD_DATA_HOLE) {
		memset(at, 0, piece->length);
	} else {
		memcpy(at, s->disk + piece->volume, piece->length);
	}
}

static int settle(void *arg)
{
	struct served *s = arg;

	for (unsigned int i = 0; i < s->nr_moves; i++)
		move(s, &s->move[i]);
	s->nr_moves = 0;
	return 0;
}

static void reply(void *arg, void *to, const void *bytes, size_t length)
{
	struct served_call *call = to;
	struct wire_fs_reply head;

	(void)arg;
	assert_true(length <= sizeof(call->reply));
	call->replies++;
	call->length = length;
	if (!length)
		return;
	memcpy(call->reply, bytes, length);
	memcpy(&head, bytes, sizeof(head));
	call->status = head.status;
}

static void wall(void *arg, struct wire_fs_time *now)
{
	*now = (struct wire_fs_time){ .sec = (int64_t)++((struct served *)arg)->now };
}

static void random_bytes(void *arg, void *bytes, size_t length)
{
	memset(bytes, (int)++((struct served *)arg)->random, length);
}

static int open_service(struct served *s)
{
	const struct fsd_service_host host = {
		.disk = { disk_read, disk_write, s->bytes, s },
		.start = start,
		.settle = settle,
		.reply = reply,
		.wall = wall,
		.random = random_bytes,
		.arg = s,
	};

	return fsd_service_open(&host, 0, 0, &s->service);
}

void served_init(struct served *s, uint64_t bytes)
{
	*s = (struct served){ .bytes = bytes, .disk = calloc(1, bytes) };
	assert_non_null(s->disk);
	assert_int_equal(open_service(s), 0);
}

void served_fini(struct served *s)
{
	if (s->service)
		fsd_service_close(s->service);
	free(s->disk);
}

int served_reopen(struct served *s)
{
	if (s->service)
		fsd_service_close(s->service);
	s->service = NULL;
	s->nr_moves = 0;
	return open_service(s);
}

int served_send(struct served *s, struct served_call *call, const union wire_fs_fixed *fixed,
		size_t size, const char *name)
{
	union wire_fs_fixed first = *fixed;
	uint8_t message[512];
	size_t length = name ? strlen(name) : 0;

	first.head.name_length = (uint32_t)length;
	call->replies = 0;
	memcpy(message, &call->head, sizeof(call->head));
	memcpy(message + sizeof(call->head), &first, size);
	memcpy(message + sizeof(call->head) + size, name ? name : "", length);
	return fsd_service_request(s->service, call, message, sizeof(call->head) + size + length);
}

int served_ask(struct served *s, struct served_call *call, const union wire_fs_fixed *fixed,
	       size_t size, const char *name)
{
	assert_true(served_send(s, call, fixed, size, name) >= 0);
	assert_int_equal(fsd_service_commit(s->service), 0);
	assert_int_equal(call->replies, 1);
	assert_true(call->length);
	return call->status;
}
