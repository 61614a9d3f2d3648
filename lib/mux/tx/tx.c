/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chooses what goes out next. A connection picked by the scheduler posts up to a segment of the
 * stream, the zero-copy send, or the RDMA operation.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "lib/mux/tx/tx.h"
#include "lib/mux/tx/post.h"

uint64_t weir_mux_tx_limit(struct weir_mux_vconn *conn, uint64_t *tail)
{
	uint64_t granted = __atomic_load_n(&conn->granted, __ATOMIC_ACQUIRE) - conn->zc_posted;

	/* Fewer bytes than were already sent is a lie, too. */
	if (weir_mux_ring_readable(&conn->leaving, tail) ||
	    *tail - conn->leaving.position < conn->posted - conn->leaving.position) {
		weir_mux_vconn_fail(conn, -EPROTO);
		*tail = conn->posted;
	}
	return *tail < granted ? *tail : granted;
}

/*
 * Builds the work request for the next @bytes of the stream, and lowers *@bytes if needed. Many
 * bytes are written directly into the peer's ring, up to the ring's end, so no CPU copies them.
 * Few bytes are sent, and copied there by the CPU: the shared receive buffers stay in the peer
 * NIC's translation cache, too small for all rings.
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

/* Bytes of the zero-copy send ready to go, after all bytes of the ring. */
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

/* Records the low-level bytes ahead of a first-level work request. */
static void count_ahead(struct weir_mux_remote *remote, const struct weir_mux_vconn *conn)
{
	const struct weir_sched_class *classes = remote->sched.classes;

	if (classes[conn->class].config.level == classes[0].config.level)
		weir_counter_raise(&remote->mux->counts.ahead_bytes_max,
				     weir_counter_read(&remote->mux->low_bytes));
}

/* Adds up the waiting time. */
static void count_wait(struct weir_mux_vconn *conn)
{
	struct weir_mux_class_counters *counts = weir_mux_vconn_counters(conn);
	const uint64_t now_ns = conn->remote->now_ns;

	weir_counter_add(&counts->turns, 1);
	if (now_ns <= conn->waits_ns)
		return;
	weir_counter_add(&counts->waited_ns, now_ns - conn->waits_ns);
	conn->waits_ns = now_ns;
}

static void count_turn(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint32_t bytes)
{
	const uint64_t low_bytes = remote->sched.low_bytes;

	count_ahead(remote, conn);
	weir_sched_posted(&remote->sched, &conn->flow, bytes);
	weir_mux_port_changed(remote, low_bytes);
	weir_mux_rate_limit_charge(&conn->sched_group->group->rate, bytes, remote->now_ns);
	count_wait(conn);
}

/* @most, limited to a segment. */
static uint32_t limit_to_segment(const struct weir_mux_remote *remote,
				 const struct weir_mux_vconn *conn, uint64_t most)
{
	uint32_t segment = remote->sched.classes[conn->class].config.segment_bytes;

	return most < segment ? (uint32_t)most : segment;
}

/* Posts bytes of the ring: all that are ready, up to a segment and to the end of the memory. */
static void post_ring_bytes(struct weir_mux_remote *remote, struct weir_mux_vconn *conn,
			    uint64_t limit)
{
	struct weir_mux_posted_wr posted = { .conn = conn };
	const char *data = weir_mux_ring_at(&conn->leaving, conn->posted);
	struct ibv_send_wr wr;

	posted.bytes = limit_to_segment(remote, conn, limit - conn->posted);
	if (posted.bytes > weir_mux_ring_straight(&conn->leaving, conn->posted))
		posted.bytes = weir_mux_ring_straight(&conn->leaving, conn->posted);
	wr = stream_wr(conn, &posted.bytes);
	count_turn(remote, conn, posted.bytes);
	conn->posted += posted.bytes;
	/* Perhaps the last part of a closed connection: FIN is due. */
	if (conn->posted == limit && __atomic_load_n(&conn->is_closed, __ATOMIC_ACQUIRE))
		weir_mux_vconn_notify(conn);
	weir_mux_post_append(posted, (uintptr_t)data, conn->slab->mr->lkey, &wr);
}

/* Posts a part of an RDMA operation or of a zero-copy send. */
static void post_op_part(struct weir_mux_remote *remote, struct weir_mux_rdma_op *e, uint32_t bytes,
			 const struct ibv_send_wr *wr)
{
	struct weir_mux_vconn *conn = e->conn;
	struct weir_mux_posted_wr posted = { .conn = conn, .rdma_op = e, .bytes = bytes };
	uint64_t local = e->local;

	count_turn(remote, conn, posted.bytes);
	e->local += posted.bytes;
	e->remote += posted.bytes;
	e->left -= posted.bytes;
	e->wrs++;
	if (e == &conn->zc_send)
		conn->zc_posted += posted.bytes;
	weir_mux_post_append(posted, local, e->mr->mr->lkey, wr);
}

static void post_rdma_op(struct weir_mux_remote *remote, struct weir_mux_vconn *conn)
{
	struct weir_mux_rdma_op *e = &conn->rdma_op;
	const struct ibv_send_wr wr = {
		.opcode = e->is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = e->remote, .rkey = e->remote_mr->rkey },
	};

	post_op_part(remote, e, limit_to_segment(remote, conn, e->left), &wr);
}

static void post_zc_send(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint64_t most)
{
	uint32_t bytes = limit_to_segment(remote, conn, most);
	const struct ibv_send_wr wr = stream_wr(conn, &bytes);

	post_op_part(remote, &conn->zc_send, bytes, &wr);
}

/* Posts the ring's bytes first, then the zero-copy send's. */
static void post_stream(struct weir_mux_remote *remote, struct weir_mux_vconn *conn, uint64_t limit,
			uint64_t zc_send)
{
	if (limit > conn->posted)
		post_ring_bytes(remote, conn, limit);
	else
		post_zc_send(remote, conn, zc_send);
}

/* The scheduler has picked the connection's flow. */
static void take_turn(struct weir_mux_remote *remote, struct weir_mux_vconn *conn)
{
	uint64_t tail, limit = weir_mux_tx_limit(conn, &tail);
	uint64_t zc_send = zc_send_ready(conn, tail);
	bool has_stream = limit > conn->posted || zc_send, has_rdma_op = conn->rdma_op.left;

	bool has_failed = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);

	if (has_failed || (!has_stream && !has_rdma_op)) {
		weir_mux_sched_group_idle(conn);
		/* On a fresh failure: send FIN to the peer. */
		if (has_failed)
			weir_mux_vconn_notify(conn);
		return;
	}
	if (weir_mux_sched_group_is_paced(conn))
		return;
	conn->rdma_op_was_last = has_rdma_op && !(has_stream && conn->rdma_op_was_last);
	if (conn->rdma_op_was_last)
		post_rdma_op(remote, conn);
	else
		post_stream(remote, conn, limit, zc_send);
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
	if (!weir_sched_is_wanted(&remote->sched))
		return NULL;
	weir_mux_port_divide(remote);
	return weir_sched_next(&remote->sched, classes_with_room(remote));
}

bool weir_mux_tx_post(struct weir_mux_remote *remote)
{
	struct weir_flow *flow;
	bool any = false;
	uint8_t i;

	while (!__atomic_load_n(&remote->status, __ATOMIC_ACQUIRE) &&
	       (flow = next_flow(remote)) != NULL) {
		take_turn(remote, container_of(flow, struct weir_mux_vconn, flow));
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
