/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes next, and how much of it: a connection that the scheduler gives its turn has a piece of
 * its stream posted, of a loan, or of an errand; up to a segment.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "lib/mux/tx/tx.h"
#include "lib/mux/tx/post.h"

uint64_t weir_piece_limit(struct weir_circuit *conn, uint64_t *tail)
{
	uint64_t granted = __atomic_load_n(&conn->granted, __ATOMIC_ACQUIRE) - conn->lent;

	/* An application that has written less than was sent of it lies, too. */
	if (weir_ring_readable(&conn->leaving, tail) ||
	    *tail - conn->leaving.position < conn->posted - conn->leaving.position) {
		weir_circuit_fail(conn, -EPROTO);
		*tail = conn->posted;
	}
	return *tail < granted ? *tail : granted;
}

/*
 * How a stream goes on with @bytes of it, of which as many go now as it leaves there. If they are
 * many the device writes them into the other end's ring, up to that ring's end, and nobody copies
 * them. Few are sent, and copied over there: the buffers that all connections have in common the
 * other device finds in its translation cache, where all the rings have no room.
 */
static struct ibv_send_wr stream_wr(const struct weir_circuit *conn, uint32_t *bytes)
{
	const struct weir_landing *ring = &conn->landing;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(weir_circuit_remote(conn)) };
	uint64_t at;

	if (!ring->size || *bytes < WEIR_DIRECT_MIN)
		return wr;
	at = (conn->posted + conn->lent) & (ring->size - 1);
	if (*bytes > ring->size - at)
		*bytes = (uint32_t)(ring->size - at);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.rdma.remote_addr = ring->address + at;
	wr.wr.rdma.rkey = ring->rkey;
	return wr;
}

/* How much of its loan may be sent: it comes after what is in the ring. */
static uint64_t loan_ready(const struct weir_circuit *conn, uint64_t tail)
{
	uint64_t granted = __atomic_load_n(&conn->granted, __ATOMIC_ACQUIRE) - conn->lent;
	uint64_t left = conn->loan.left;

	if (conn->posted != tail)
		return 0;
	return left < granted - tail ? left : granted - tail;
}

bool weir_piece_is_wanted(const struct weir_circuit *conn, uint64_t limit, uint64_t tail)
{
	return conn->posted != limit || conn->errand.left || loan_ready(conn, tail);
}

/* What is posted of lower levels the first cannot overtake. */
static void count_ahead(struct weir_node *node, const struct weir_circuit *conn)
{
	const struct weir_sched_class *classes = node->sched.classes;

	if (classes[conn->class].config.level == classes[0].config.level)
		weir_count_most(&node->hub->counts.ahead_bytes_max,
				atomic_load(&node->hub->low_bytes));
}

/*
 * How long it has waited; the clock is looked at once for many turns, and may be a little behind.
 */
static void count_wait(struct weir_circuit *conn, uint64_t now_ns)
{
	struct weir_mux_counts *counts = &conn->owner->counts;

	weir_count(&counts->work_requests, 1);
	if (now_ns <= conn->waits_ns)
		return;
	weir_count(&counts->waited_ns, now_ns - conn->waits_ns);
	conn->waits_ns = now_ns;
}

static void count_turn(struct weir_node *node, struct weir_circuit *conn, uint32_t bytes,
		       uint64_t now_ns)
{
	const uint64_t low_bytes = node->sched.low_bytes;

	count_ahead(node, conn);
	weir_sched_posted(&node->sched, &conn->flow, bytes);
	weir_port_changed(node, low_bytes);
	weir_rate_sent(&conn->stake->party->rate, bytes, now_ns);
	count_wait(conn, now_ns);
}

/* A segment, and no more than @most. */
static uint32_t segment_of(const struct weir_node *node, const struct weir_circuit *conn,
			   uint64_t most)
{
	uint32_t segment = node->sched.classes[conn->class].config.segment_bytes;

	return most < segment ? (uint32_t)most : segment;
}

/* Of the stream: as much as is there, up to a segment, and to the end of the memory. */
static void post_piece(struct weir_node *node, struct weir_circuit *conn, uint64_t limit,
		       uint64_t now_ns)
{
	struct weir_posted posted = { .conn = conn };
	const char *data = weir_ring_at(&conn->leaving, conn->posted);
	struct ibv_send_wr wr;

	posted.bytes = segment_of(node, conn, limit - conn->posted);
	if (posted.bytes > weir_ring_straight(&conn->leaving, conn->posted))
		posted.bytes = weir_ring_straight(&conn->leaving, conn->posted);
	wr = stream_wr(conn, &posted.bytes);
	count_turn(node, conn, posted.bytes, now_ns);
	conn->posted += posted.bytes;
	/* All is sent, and perhaps nothing more will be. */
	if (conn->posted == limit && __atomic_load_n(&conn->is_closed, __ATOMIC_ACQUIRE))
		weir_circuit_news(conn);
	weir_post_append(posted, (uintptr_t)data, conn->chunk->mr->lkey, &wr);
}

/* Of an errand, or a loan. */
static void post_part(struct weir_node *node, struct weir_errand *e, uint32_t bytes,
		      const struct ibv_send_wr *wr, uint64_t now_ns)
{
	struct weir_circuit *conn = e->conn;
	struct weir_posted posted = { .conn = conn, .errand = e, .bytes = bytes };
	uint64_t local = e->local;

	count_turn(node, conn, posted.bytes, now_ns);
	e->local += posted.bytes;
	e->remote += posted.bytes;
	e->left -= posted.bytes;
	e->wrs++;
	if (e == &conn->loan)
		conn->lent += posted.bytes;
	weir_post_append(posted, local, e->plot->mr->lkey, wr);
}

static void post_errand(struct weir_node *node, struct weir_circuit *conn, uint64_t now_ns)
{
	struct weir_errand *e = &conn->errand;
	const struct ibv_send_wr wr = {
		.opcode = e->is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = e->remote, .rkey = e->reach->rkey },
	};

	post_part(node, e, segment_of(node, conn, e->left), &wr, now_ns);
}

static void post_loan(struct weir_node *node, struct weir_circuit *conn, uint64_t most,
		      uint64_t now_ns)
{
	uint32_t bytes = segment_of(node, conn, most);
	const struct ibv_send_wr wr = stream_wr(conn, &bytes);

	post_part(node, &conn->loan, bytes, &wr, now_ns);
}

/* Of the stream: what is in the ring, and then what is lent. */
static void post_stream(struct weir_node *node, struct weir_circuit *conn, uint64_t limit,
			uint64_t loan, uint64_t now_ns)
{
	if (limit > conn->posted)
		post_piece(node, conn, limit, now_ns);
	else
		post_loan(node, conn, loan, now_ns);
}

/* The flow has its turn. */
static void take_turn(struct weir_node *node, struct weir_circuit *conn, uint64_t now_ns)
{
	uint64_t tail, limit = weir_piece_limit(conn, &tail);
	uint64_t loan = loan_ready(conn, tail);
	bool has_stream = limit > conn->posted || loan, has_errand = conn->errand.left;

	bool has_failed = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);

	if (has_failed || (!has_stream && !has_errand)) {
		weir_stake_idle(conn);
		/* If it has failed just now, the other end is to hear. */
		if (has_failed)
			weir_circuit_news(conn);
		return;
	}
	if (weir_stake_is_early(conn, now_ns))
		return;
	conn->errand_was_last = has_errand && !(has_stream && conn->errand_was_last);
	if (conn->errand_was_last)
		post_errand(node, conn, now_ns);
	else
		post_stream(node, conn, limit, loan, now_ns);
	if (!weir_piece_is_wanted(conn, limit, tail))
		weir_stake_idle(conn);
}

static uint32_t classes_with_room(const struct weir_node *node)
{
	uint32_t classes = 0;
	uint8_t i;

	for (i = 0; i < node->sched.nr_classes; i++) {
		const struct weir_lane *lane = __atomic_load_n(&node->lanes[i], __ATOMIC_ACQUIRE);

		if (lane && lane->count - lane->nr_controls < WEIR_LANE_DEPTH)
			classes |= 1u << i;
	}
	return classes;
}

static struct weir_flow *next_flow(struct weir_node *node)
{
	weir_port_share(node);
	return weir_sched_next(&node->sched, classes_with_room(node));
}

bool weir_pieces_post(struct weir_node *node, uint64_t now_ns)
{
	struct weir_flow *flow;
	bool any = false;
	uint8_t i;

	while (!__atomic_load_n(&node->status, __ATOMIC_ACQUIRE) &&
	       (flow = next_flow(node)) != NULL) {
		take_turn(node, container_of(flow, struct weir_circuit, flow), now_ns);
		any = true;
	}
	for (i = 0; i < node->sched.nr_classes; i++) {
		struct weir_lane *lane = __atomic_load_n(&node->lanes[i], __ATOMIC_ACQUIRE);

		if (lane && lane->nr_chain) {
			weir_post_ring(lane);
			any = true;
		}
	}
	return any;
}
