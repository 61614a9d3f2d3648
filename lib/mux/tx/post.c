/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work requests of a node. Those of a QP complete in the order posted, so what each one was stands
 * in a queue beside it. They go out in chains, one doorbell each.
 */
#include <errno.h>

#include "lib/base/error.h"
#include "lib/mux/tx/post.h"

#define POSTED_MAX (WEIR_LANE_DEPTH + WEIR_LANE_CONTROLS)

static struct weir_lane *lane_of(const struct weir_circuit *conn)
{
	return __atomic_load_n(&conn->node->lanes[conn->class], __ATOMIC_ACQUIRE);
}

static struct weir_posted *newest(struct weir_lane *lane)
{
	return &lane->posted[(lane->first + --lane->count) % POSTED_MAX];
}

/* What was posted is in flight no longer. */
static void settle(struct weir_node *node, struct weir_lane *lane, const struct weir_posted *p)
{
	const uint64_t low_bytes = node->sched.low_bytes;

	node->posted--;
	if (p->is_control) {
		lane->nr_controls--;
		p->conn->controls--;
	} else {
		weir_sched_completed(&node->sched, &p->conn->flow, p->bytes);
		weir_port_changed(node, low_bytes);
	}
}

void weir_post_ring(struct weir_lane *lane)
{
	struct weir_node *node = lane->node;
	struct ibv_send_wr *bad = NULL;
	unsigned int i, n = lane->nr_chain;
	int rc;

	if (!n)
		return;
	for (i = 0; i + 1 < n; i++)
		lane->chain[i].next = &lane->chain[i + 1];
	lane->chain[n - 1].next = NULL;
	lane->nr_chain = 0;
	rc = -ibv_post_send(lane->id->qp, lane->chain, &bad);
	weir_count(&node->hub->counts.doorbells, 1);
	weir_count(&node->hub->counts.work_requests, n);
	if (!rc)
		return;
	/* What the device does not take was never posted. */
	for (; bad; bad = bad->next) {
		struct weir_posted *posted = newest(lane);

		settle(node, lane, posted);
		if (posted->errand)
			posted->errand->wrs--;
	}
	weir_node_fail(node, rc);
}

void weir_post_append(struct weir_posted posted, uint64_t data, uint32_t lkey,
		      const struct ibv_send_wr *wr)
{
	struct weir_lane *lane = lane_of(posted.conn);
	struct ibv_sge *sge = &lane->sges[lane->nr_chain];
	struct ibv_send_wr *at = &lane->chain[lane->nr_chain];

	*sge = (struct ibv_sge){ data, posted.bytes, lkey };
	*at = *wr;
	at->wr_id = lane->class;
	at->sg_list = sge;
	at->num_sge = 1;
	at->send_flags = IBV_SEND_SIGNALED;
	lane->posted[(lane->first + lane->count++) % POSTED_MAX] = posted;
	lane->node->posted++;
	if (++lane->nr_chain == WEIR_LANE_CHAIN)
		weir_post_ring(lane);
}

bool weir_post_control(struct weir_circuit *conn, const struct wire_mux *message)
{
	struct weir_lane *lane = lane_of(conn);
	struct weir_posted posted = { .conn = conn, .bytes = sizeof(*message), .is_control = true };
	const struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM };
	struct wire_mux *buffer;

	if (lane->nr_controls == WEIR_LANE_CONTROLS)
		return false;
	/* The oldest: each is free again when the next round comes to it. */
	buffer = &lane->controls[lane->next_control++ % WEIR_LANE_CONTROLS];
	*buffer = *message;
	lane->nr_controls++;
	conn->controls++;
	weir_post_append(posted, (uintptr_t)buffer, lane->mr->lkey, &wr);
	return true;
}

static void errand_completed(struct weir_errand *e, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		e->status = -ECONNRESET;
		e->left = 0;
	}
	weir_errand_done(e);
}

static void ring_completed(struct weir_circuit *conn, uint32_t bytes)
{
	conn->leaving.position += bytes;
	weir_ring_publish_head(&conn->leaving);
	weir_ring_tell_at(conn->leaving.ring, &conn->room_fd, conn->leaving.position);
	__atomic_store_n(&conn->sent, conn->leaving.position, __ATOMIC_RELAXED);
}

static void count_sent(struct weir_circuit *conn, uint32_t bytes)
{
	weir_count(&conn->hub->counts.bytes_sent, bytes);
	weir_count(&conn->owner->counts.bytes_sent, bytes);
}

/* What the device has moved for who asked; the other end does not hear of it. */
static void count_moved(struct weir_circuit *conn, uint32_t bytes)
{
	bool is_read = conn->errand.is_read;
	struct weir_mux_counts *counts = &conn->owner->counts;
	uint64_t *moved = is_read ? &conn->fetched : &conn->put;

	weir_count(is_read ? &counts->bytes_received : &counts->bytes_sent, bytes);
	__atomic_store_n(moved, *moved + bytes, __ATOMIC_RELAXED);
}

struct weir_circuit *weir_post_completed(struct weir_node *node, const struct ibv_wc *wc)
{
	struct weir_posted posted;
	struct weir_circuit *conn;
	struct weir_lane *lane;

	if (wc->wr_id >= WEIR_MUX_CLASSES_MAX) {
		weir_lane_said(node, wc);
		return NULL;
	}
	if (wc->status != IBV_WC_SUCCESS)
		weir_node_fail(node, -ECONNRESET);
	lane = node->lanes[wc->wr_id];
	posted = lane->posted[lane->first];
	lane->first = (lane->first + 1) % POSTED_MAX;
	lane->count--;
	settle(node, lane, &posted);
	conn = posted.conn;
	if (posted.is_control)
		return conn;
	if (posted.errand == &conn->loan)
		__atomic_store_n(&conn->sent_lent, conn->sent_lent + posted.bytes,
				 __ATOMIC_RELAXED);
	if (posted.errand != &conn->errand)
		count_sent(conn, posted.bytes);
	else if (wc->status == IBV_WC_SUCCESS)
		count_moved(conn, posted.bytes);
	if (posted.errand)
		errand_completed(posted.errand, wc);
	else
		ring_completed(conn, posted.bytes);
	return conn;
}
