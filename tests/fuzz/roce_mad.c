// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A peer and a stranger send arbitrary MADs to a connection manager, near its IDs and states. The
 * connections stay within their table, events name connections that the program knows, and each
 * message causes a bounded number of messages. In the end the program releases all connections.
 * Then time alone frees them.
 *
 * The input is a sequence of records of RECORD bytes: the fields of a message, or an act.
 */
#include <assert.h>
#include <string.h>

#include "softnic/roce_cm/cm.h"
#include "softnic/cm_far/far_msg.h"
#include "softnic/roce_cm/cma.h"

enum {
	RECORD = 8,
	CONNS = 5, /* not a power of two, so that an ID can name a place beyond the table */
	TIMEOUT = 5,
	RETRIES = 3,
	SENT_MAX = 2 * CONNS + ROCE_CM_REFUSALS, /* after one message or act */
	CHANGES_MAX = 2,
	DEADLINES_MAX = CONNS * 64,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct roce_cm cm;
	bool is_known[CONNS]; /* to the program */
	struct roce_mad sent; /* the last */
	uint64_t now_ns;
	struct roce_cm_conn conns[CONNS]; /* last, so that a sanitizer sees accesses beyond */
} end;

static const struct roce_cm_path paths[2] = { { .peer = { 1 } }, { .peer = { 2 } } };

/* Bytes form a message that encodes back to the same meaning, or none. */
static bool decode(struct roce_mad *m, const uint8_t *bytes, size_t size)
{
	uint8_t again[ROCE_MAD_BYTES];
	struct roce_mad second;

	if (roce_mad_decode(m, bytes, size))
		return false;
	roce_mad_encode(m, again);
	assert(!roce_mad_decode(&second, again, sizeof(again)));
	assert(!memcmp(m, &second, sizeof(second)));
	assert(m->info_bytes <= ROCE_MAD_INFO_MAX);
	return true;
}

static void drain(void)
{
	struct roce_cm_path path;
	uint8_t bytes[ROCE_MAD_BYTES];
	struct roce_cm_event event;
	struct roce_mad m;
	uint32_t sent = 0;

	while (roce_cm_next_mad(&end.cm, &m, &path)) {
		assert(++sent <= SENT_MAX);
		roce_mad_encode(&m, bytes);
		assert(decode(&end.sent, bytes, sizeof(bytes)));
	}
	while (roce_cm_next_event(&end.cm, &event)) {
		bool *is_known = &end.is_known[event.conn - end.conns];

		assert(event.conn >= end.conns && event.conn < end.conns + CONNS);
		assert(*is_known == (event.kind != ROCE_CM_REQUEST));
		assert(!event.mad || roce_mad_private_bytes(event.mad->kind));
		*is_known = true;
	}
}

/* A message with addresses of @path is all that ids of rdma_cm read in a request. */
static void read_as_rdma_cm(const struct roce_mad *m, const struct roce_cm_path *path)
{
	enum rdma_port_space ps;
	union ibv_gid gid;
	struct cm_msg msg;

	if (far_msg_read_request(&msg, m, path, &ps))
		return;
	assert(msg.type == CM_MSG_REQ || msg.type == CM_MSG_SIDR_REQ);
	assert(ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IB);
	assert(msg.private_len <= cm_msg_private_max(msg.type));
	cm_addr_gid(&msg.src, &gid);
	assert(!memcmp(&gid, path->peer, sizeof(gid)));
}

/* A message near those that count; @record chooses its fields. */
static struct roce_mad make(const uint8_t *record)
{
	const struct roce_cm_conn *conn = &end.conns[record[1] % CONNS];
	struct roce_mad m = {
		.kind = ROCE_MAD_REQ + record[0] % 9,
		.tid = record[2] & 1 ? conn->tid : record[2],
		.local_id = record[2] & 2 ? conn->remote_id : record[3],
		.remote_id = record[2] & 4 ? conn->local_id : record[3] % 8,
		.qpn = record[2] & 8 ? conn->qpn : record[4],
		.service_id = record[4],
		.remote_timeout = TIMEOUT,
		.local_timeout = record[5],
		.ack_timeout = record[5],
		.transport = record[6] % 4,
		.max_cm_retries = record[6] & 15,
		.answered = record[6] & 3,
		.service_timeout = record[7] & 31,
		.reason = record[7],
		.info_bytes = record[7] & 127,
	};

	if (m.kind == ROCE_MAD_SIDR_REP && record[2] & 16)
		m.local_id = conn->local_id;
	return m;
}

static void input(const uint8_t *record)
{
	struct roce_mad m = make(record);

	roce_cm_received(&end.cm, &m, &paths[record[2] >> 7], end.now_ns);
}

/* The bytes of such a message, of which the next record changes some. */
static void input_changed(const uint8_t *record)
{
	const uint8_t *change = record + RECORD;
	uint8_t bytes[ROCE_MAD_BYTES];
	struct roce_mad m = make(record);

	roce_mad_encode(&m, bytes);
	for (int i = 0; i + 1 < RECORD / 2; i += 2)
		bytes[change[i] % ROCE_MAD_BYTES] ^= change[i + 1];
	if (decode(&m, bytes, sizeof(bytes)))
		roce_cm_received(&end.cm, &m, &paths[record[2] >> 7], end.now_ns);
}

static void connect_one(const uint8_t *record)
{
	struct roce_mad req = { .kind = record[2] & 1 ? ROCE_MAD_REQ : ROCE_MAD_SIDR_REQ,
				.qpn = record[3],
				.remote_timeout = TIMEOUT,
				.local_timeout = TIMEOUT,
				.ack_timeout = TIMEOUT,
				.max_cm_retries = RETRIES };
	struct roce_cm_conn *conn;

	if (roce_cm_connect(&end.cm, &req, &paths[record[4] & 1], end.now_ns, &conn))
		return;
	assert(!end.is_known[conn - end.conns]);
	end.is_known[conn - end.conns] = true;
}

static void release(struct roce_cm_conn *conn)
{
	bool *is_known = &end.is_known[conn - end.conns];

	if (*is_known)
		roce_cm_release(&end.cm, conn, end.now_ns);
	*is_known = false;
}

static void act(const uint8_t *record)
{
	struct roce_mad rep = { .kind = record[3] & 1 ? ROCE_MAD_REP : ROCE_MAD_SIDR_REP,
				.qpn = record[4] };
	struct roce_cm_conn *conn = &end.conns[record[1] % CONNS];

	if (!end.is_known[conn - end.conns])
		return;
	switch (record[2] % 7) {
	case 0:
		roce_cm_accept(&end.cm, conn, &rep, end.now_ns);
		break;
	case 1:
		roce_cm_reject(&end.cm, conn, ROCE_MAD_CONSUMER, record, RECORD);
		break;
	case 2:
		roce_cm_wait(&end.cm, conn, record[3]);
		break;
	case 3:
		roce_cm_confirm(&end.cm, conn);
		break;
	case 4:
		roce_cm_disconnect(&end.cm, conn, end.now_ns);
		break;
	case 5:
		roce_cm_heard_packet(&end.cm, conn);
		break;
	default:
		release(conn);
	}
}

static void play(const uint8_t *data, size_t size)
{
	struct roce_mad m;

	for (; size >= RECORD; data += RECORD, size -= RECORD) {
		switch (data[0] >> 5) {
		case 0:
			connect_one(data);
			break;
		case 1:
		case 2:
			act(data);
			break;
		case 3:
			end.now_ns += data[1] * 1000u;
			roce_cm_expired(&end.cm, end.now_ns);
			break;
		case 4: /* the last message comes back */
			roce_cm_received(&end.cm, &end.sent, &paths[data[1] & 1], end.now_ns);
			break;
		case 5:
			if (decode(&m, data, size))
				roce_cm_received(&end.cm, &m, &paths[1], end.now_ns);
			else if (size >= 2 * RECORD)
				input_changed(data);
			break;
		default:
			input(data);
		}
		drain();
	}
}

/* A request that rdma_cm understands, but for what the input changes. */
static void call_by_rdma_cm(const uint8_t *data, size_t size)
{
	struct roce_cm_path path = { .peer = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
				     .local = { [10] = 0xff, 0xff, 10, 0, 0, 2 } };
	struct roce_mad m = { .kind = ROCE_MAD_REQ, .service_id = 0x1060050 };
	struct roce_cma names = { .src = { 10, 0, 0, 1 }, .dst = { 10, 0, 0, 2 } };
	size_t i;

	roce_cma_encode(&names, m.private_data);
	for (i = 0; i + 1 < size && i < CHANGES_MAX * 2; i += 2)
		m.private_data[data[i] % (2 * ROCE_CMA_BYTES)] ^= data[i + 1];
	read_as_rdma_cm(&m, &path);
	for (i = 0; i < sizeof(m.private_data) && i < size; i++)
		m.private_data[i] = data[i];
	m.service_id = size ? (uint64_t)data[0] << 16 : 0;
	read_as_rdma_cm(&m, &path);
}

static void finish(void)
{
	uint64_t at_ns;
	int i;

	for (i = 0; i < CONNS; i++)
		release(&end.conns[i]);
	drain();
	for (i = 0; i < DEADLINES_MAX; i++) {
		at_ns = roce_cm_deadline_ns(&end.cm);
		if (at_ns == ROCE_CM_NEVER)
			break;
		end.now_ns = at_ns;
		roce_cm_expired(&end.cm, end.now_ns);
		drain();
	}
	for (i = 0; i < CONNS; i++)
		assert(end.conns[i].state == ROCE_CM_FREE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	call_by_rdma_cm(data, size);
	memset(&end, 0, sizeof(end));
	roce_cm_init(&end.cm, end.conns, CONNS, 1, 1);
	play(data, size);
	finish();
	return 0;
}
