/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes next, and how much of it: a connection that the scheduler gives its turn has a piece of
 * its stream posted, of a zc_send, or of an rdma_op; up to a segment.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "lib/mux/tx/tx.h"
#include "lib/mux/tx/post.h"

uint64_t weir_mux_tx_limit(struct weir_mux_vconn *conn, uint64_t *tail)
{
	uint64_t granted = __atomic_load_n(&conn->granted, __ATOMIC_ACQUIRE) - conn->zc_posted;

	/* An application that has written less than was sent of it lies, too. */
	if (weir_mux_ring_readable(&conn->leaving, tail) ||
	    *tail - conn->leaving.position < conn->posted - conn->leaving.position) {
		weir_mux_vconn_fail(conn, -EPROTO);
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
static struct ibv_send_wr stream_wr(const struct weir_mux_vconn *conn, uint32_t *bytes)
{
	const struct weir_mux_peer_ring *ring = &conn->peer_ring;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(weir_mux_vconn_remote_id(conn)) };
	uint64_t at;

	if (!ring->size || *bytes < WEIR_MUX_DIRECT_WRITE_MIN)
		return wr;
	at = (conn->posted + conn->zc_posted) & (ring->size - 1);
	if (*bytes > ring->size - at)
		*bytes = (uint32_t)(ring->size - at);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.rdma.remote_addr = ring->address + at;
	wr.wr.rdma.rkey = ring->rkey;
	return wr;
}

/* How much of its zc_send may be sent: it comes after what is in the ring. */
static uint64_t zc_send_ready(const struct weir_mux_vconn *conn, uint64_t tail)
{
	uint64_t granted = __atomic_load_n(&conn->granted, __ATOMIC_ACQUIRE) - conn->zc_posted;
	uint64_t left = conn->zc_send.left;

	if (conn->posted != tail)
		return 0;
	return left < granted - tail ? left : granted - tail;
}

bool weir_mux_tx_is_wanted(const struct weir_mux_vconn *conn, uint64_t limit, uint64_t tail)
{
	return conn->posted != limit || conn->rdma_op.left || zc_send_ready(conn, tail);
}

/* What is posted of lower levels the first cannot overtake. */
static void count_ahead(struct weir_mux_remote *remote, const struct weir_mux_vconn *conn)
{
	const struct weir_sched_class *classes = remote->sched.classes;

	if (classes[conn->class].config.level == classes[0].config.level)
		weir_mux_counter_max(&remote->mux->counts.ahead_bytes_max,
				     atomic_load(&remote->mux->low_bytes));
}

/*
 * How long it has waited; the clock is looked at once for many turns, and may be a little behind.
 */
static void count_wait(struct weir_mux_vconn *conn, uint64_t now_ns)
{
	struct weir_mux_counters *counts = &conn->account->counts;

	weir_mux_counter_add(&counts->work_requests, 1);
	if (now_ns <= conn->waits_ns)
		return;
	weir_mux_counter_add(&counts->waited_ns, now_ns - conn->waits_ns);
	conn->waits_ns = now_ns;
}

static void count_turn(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint32_t bytes,
		       uint64_t now_ns)
{
	const uint64_t low_bytes = remote->sched.low_bytes;

	count_ahead(remote, conn);
	weir_sched_posted(&remote->sched, &conn->flow, bytes);
	weir_mux_port_changed(remote, low_bytes);
	weir_mux_rate_limit_charge(&conn->sched_group->party->rate, bytes, now_ns);
	count_wait(conn, now_ns);
}

/* A segment, and no more than @most. */
static uint32_t limit_to_segment(const struct weir_mux_remote *remote,
				 const struct weir_mux_vconn *conn, uint64_t most)
{
	uint32_t segment = remote->sched.classes[conn->class].config.segment_bytes;

	return most < segment ? (uint32_t)most : segment;
}

/* Of the stream: as much as is there, up to a segment, and to the end of the memory. */
static void post_ring_bytes(struct weir_mux_remote *remote, struct weir_mux_vconn *conn,
			    uint64_t limit, uint64_t now_ns)
{
	struct weir_mux_posted_wr posted = { .conn = conn };
	const char *data = weir_mux_ring_at(&conn->leaving, conn->posted);
	struct ibv_send_wr wr;

	posted.bytes = limit_to_segment(remote, conn, limit - conn->posted);
	if (posted.bytes > weir_mux_ring_straight(&conn->leaving, conn->posted))
		posted.bytes = weir_mux_ring_straight(&conn->leaving, conn->posted);
	wr = stream_wr(conn, &posted.bytes);
	count_turn(remote, conn, posted.bytes, now_ns);
	conn->posted += posted.bytes;
	/* All is sent, and perhaps nothing more will be. */
	if (conn->posted == limit && __atomic_load_n(&conn->is_closed, __ATOMIC_ACQUIRE))
		weir_mux_vconn_notify(conn);
	weir_mux_post_append(posted, (uintptr_t)data, conn->slab->mr->lkey, &wr);
}

/* Of an rdma_op, or a zc_send. */
static void post_op_part(struct weir_mux_remote *remote, struct weir_mux_rdma_op *e, uint32_t bytes,
			 const struct ibv_send_wr *wr, uint64_t now_ns)
{
	struct weir_mux_vconn *conn = e->conn;
	struct weir_mux_posted_wr posted = { .conn = conn, .rdma_op = e, .bytes = bytes };
	uint64_t local = e->local;

	count_turn(remote, conn, posted.bytes, now_ns);
	e->local += posted.bytes;
	e->remote += posted.bytes;
	e->left -= posted.bytes;
	e->wrs++;
	if (e == &conn->zc_send)
		conn->zc_posted += posted.bytes;
	weir_mux_post_append(posted, local, e->mr->mr->lkey, wr);
}

static void post_rdma_op(struct weir_mux_remote *remote, struct weir_mux_vconn *conn,
			 uint64_t now_ns)
{
	struct weir_mux_rdma_op *e = &conn->rdma_op;
	const struct ibv_send_wr wr = {
		.opcode = e->is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = e->remote, .rkey = e->reach->rkey },
	};

	post_op_part(remote, e, limit_to_segment(remote, conn, e->left), &wr, now_ns);
}

static void post_zc_send(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint64_t most,
			 uint64_t now_ns)
{
	uint32_t bytes = limit_to_segment(remote, conn, most);
	const struct ibv_send_wr wr = stream_wr(conn, &bytes);

	post_op_part(remote, &conn->zc_send, bytes, &wr, now_ns);
}

/* Of the stream: what is in the ring, and then what is zc_posted. */
static void post_stream(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint64_t limit,
			uint64_t zc_send, uint64_t now_ns)
{
	if (limit > conn->posted)
		post_ring_bytes(remote, conn, limit, now_ns);
	else
		post_zc_send(remote, conn, zc_send, now_ns);
}

/* The flow has its turn. */
static void take_turn(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint64_t now_ns)
{
	uint64_t tail, limit = weir_mux_tx_limit(conn, &tail);
	uint64_t zc_send = zc_send_ready(conn, tail);
	bool has_stream = limit > conn->posted || zc_send, has_errand = conn->rdma_op.left;

	bool has_failed = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);

	if (has_failed || (!has_stream && !has_errand)) {
		weir_mux_sched_group_idle(conn);
		/* If it has failed just now, the other end is to hear. */
		if (has_failed)
			weir_mux_vconn_notify(conn);
		return;
	}
	if (weir_mux_sched_group_is_paced(conn, now_ns))
		return;
	conn->errand_was_last = has_errand && !(has_stream && conn->errand_was_last);
	if (conn->errand_was_last)
		post_rdma_op(remote, conn, now_ns);
	else
		post_stream(remote, conn, limit, zc_send, now_ns);
	if (!weir_mux_tx_is_wanted(conn, limit, tail))
		weir_mux_sched_group_idle(conn);
}

static uint32_t classes_with_room(const struct weir_mux_remote *remote)
{
	uint32_t classes = 0;
	uint8_t i;

	for (i = 0; i < remote->sched.nr_classes; i++) {
		const struct weir_mux_qp *qp = __atomic_load_n(&remote->qps[i], __ATOMIC_ACQUIRE);

		if (qp && qp->count - qp->nr_controls < WEIR_MUX_QP_DEPTH)
			classes |= 1u << i;
	}
	return classes;
}

static struct weir_flow *next_flow(struct weir_mux_remote *remote)
{
	weir_mux_port_divide(remote);
	return weir_sched_next(&remote->sched, classes_with_room(remote));
}

bool weir_mux_tx_post(struct weir_mux_remote *remote, uint64_t now_ns)
{
	struct weir_flow *flow;
	bool any = false;
	uint8_t i;

	while (!__atomic_load_n(&remote->status, __ATOMIC_ACQUIRE) &&
	       (flow = next_flow(remote)) != NULL) {
		take_turn(remote, container_of(flow, struct weir_mux_vconn, flow), now_ns);
		any = true;
	}
	for (i = 0; i < remote->sched.nr_classes; i++) {
		struct weir_mux_qp *qp = __atomic_load_n(&remote->qps[i], __ATOMIC_ACQUIRE);

		if (qp && qp->nr_chain) {
			weir_mux_post_doorbell(qp);
			any = true;
		}
	}
	return any;
}
