/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "softnic/roce/rng.h"
#include "softnic/roce_cm/conn.h"

#include <string.h>

/* The upper bits are the prefix, the lower bits the connection's place, the others random. */
static uint32_t draw_id(struct roce_cm *cm, uint32_t place)
{
	uint32_t free_bits = 32 - cm->prefix_bits, id;
	uint32_t prefix = cm->prefix_bits ? cm->prefix << free_bits : 0;

	do {
		id = (uint32_t)roce_rng_next(&cm->random) & ~cm->place_mask;
		id = prefix | (uint32_t)(id & ((1ull << free_bits) - 1)) | place;
	} while (!id); /* in a REJ, 0 stands for an unknown ID */
	return id;
}

uint64_t roce_conn_tid(struct roce_cm *cm)
{
	return roce_rng_next(&cm->random);
}

struct roce_cm_conn *roce_conn_take(struct roce_cm *cm, enum roce_cm_state state,
				    const struct roce_cm_path *path, uint64_t tid)
{
	uint32_t kept = state == ROCE_CM_REQ_RCVD ? cm->nr_conns / ROCE_CM_KEPT : 0;
	uint32_t i, place = cm->nr_used, nr_free = cm->nr_conns - cm->nr_used;
	struct roce_cm_conn *conn;

	for (i = cm->nr_used; i--;) {
		if (cm->conns[i].state != ROCE_CM_FREE)
			continue;
		place = i;
		nr_free++;
	}
	if (nr_free <= kept)
		return NULL;
	if (place == cm->nr_used)
		cm->nr_used++;
	conn = &cm->conns[place];
	memset(conn, 0, sizeof(*conn));
	conn->state = state;
	conn->local_id = draw_id(cm, place);
	conn->tid = tid;
	conn->deadline_ns = ROCE_CM_NEVER;
	conn->path = *path;
	return conn;
}

void roce_conn_take_over(struct roce_cm_conn *conn, const struct roce_mad *req, uint8_t timeout)
{
	conn->is_sidr = req->kind == ROCE_MAD_SIDR_REQ;
	conn->timeout_ns = roce_mad_timeout_ns(timeout);
	conn->wait_ns = conn->is_sidr ? conn->timeout_ns : roce_mad_timeout_ns(req->ack_timeout);
	conn->max_retries = req->max_cm_retries;
}

void roce_conn_answer(struct roce_cm_conn *conn, const struct roce_mad *m)
{
	conn->reply = *m;
	conn->reply.tid = conn->tid;
	conn->reply.local_id = conn->is_sidr ? conn->remote_id : conn->local_id;
	conn->reply.remote_id = conn->remote_id;
	conn->sends_reply = true;
}

void roce_conn_ask(struct roce_cm_conn *conn, const struct roce_mad *m, uint64_t now_ns)
{
	conn->last = *m;
	conn->last.tid = conn->tid;
	conn->last.local_id = conn->local_id;
	conn->last.remote_id = conn->remote_id;
	conn->sends_last = true;
	conn->sends_left = conn->max_retries;
	conn->deadline_ns = now_ns + conn->timeout_ns;
}

void roce_conn_tell(struct roce_cm_conn *conn, enum roce_cm_event_kind kind,
		    const struct roce_mad *m)
{
	if (conn->is_released)
		return;
	if (m)
		conn->heard = *m;
	conn->events |= (uint8_t)(1 << kind);
}

void roce_conn_refuse(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path)
{
	struct roce_cm_refusal *refusal;

	if (cm->refusals_tail - cm->refusals_head == ROCE_CM_REFUSALS)
		return;
	refusal = &cm->refusals[cm->refusals_tail++ % ROCE_CM_REFUSALS];
	refusal->mad = *m;
	refusal->path = *path;
}

static void free_if_done(struct roce_cm_conn *conn)
{
	if (conn->state == ROCE_CM_ENDED && conn->is_released)
		conn->state = ROCE_CM_FREE;
}

void roce_conn_end(struct roce_cm_conn *conn, enum roce_cm_event_kind kind,
		   const struct roce_mad *m)
{
	const uint8_t request = 1 << ROCE_CM_REQUEST;

	conn->state = ROCE_CM_ENDED;
	conn->sends_last = false;
	conn->sends_reply = false;
	conn->deadline_ns = ROCE_CM_NEVER;
	if (conn->events & request) /* nobody has heard of it yet */
		conn->is_released = true;
	if (kind != ROCE_CM_FINISHED)
		conn->events = 0;
	if (kind != ROCE_CM_EVENTS)
		roce_conn_tell(conn, kind, m);
	free_if_done(conn);
}

void roce_conn_time_wait(struct roce_cm_conn *conn, uint64_t now_ns)
{
	conn->state = ROCE_CM_TIMEWAIT;
	conn->sends_last = false;
	conn->deadline_ns = now_ns + conn->wait_ns;
	roce_conn_tell(conn, ROCE_CM_DISCONNECTED, NULL);
}

void roce_conn_hang_up(struct roce_cm_conn *conn, uint64_t now_ns)
{
	struct roce_mad dreq = { .kind = ROCE_MAD_DREQ, .qpn = conn->remote_qpn };

	conn->state = ROCE_CM_DREQ_SENT;
	roce_conn_ask(conn, &dreq, now_ns);
}
