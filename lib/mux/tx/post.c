/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work requests of a remote. A QP completes work requests in the order posted, so a queue per QP
 * holds the context of each. Work requests go out in chains, with a doorbell per chain.
 */
#include <errno.h>

#include "lib/base/error.h"
#include "lib/mux/tx/post.h"

#define POSTED_MAX (WEIR_MUX_QP_DEPTH + WEIR_MUX_QP_CTRLS)

static struct weir_mux_qp *qp_of(const struct weir_mux_vconn *conn)
{
	return __atomic_load_n(&conn->remote->qps[conn->class], __ATOMIC_ACQUIRE);
}

static struct weir_mux_posted_wr *pop_newest(struct weir_mux_qp *qp)
{
	return &qp->posted[(qp->first + --qp->count) % POSTED_MAX];
}

/* A work request is no longer in flight. */
static void uncount_posted(struct weir_mux_remote *remote, struct weir_mux_qp *qp,
			   const struct weir_mux_posted_wr *p)
{
	const uint64_t low_bytes = remote->sched.low_bytes;

	remote->posted--;
	if (p->is_control) {
		qp->nr_controls--;
		p->conn->controls--;
	} else {
		weir_sched_completed(&remote->sched, &p->conn->flow, p->bytes);
		weir_mux_port_changed(remote, low_bytes);
	}
}

void weir_mux_post_doorbell(struct weir_mux_qp *qp)
{
	struct weir_mux_remote *remote = qp->remote;
	struct ibv_send_wr *bad = NULL;
	unsigned int i, n = qp->nr_chain;
	int rc;

	if (!n)
		return;
	for (i = 0; i + 1 < n; i++)
		qp->chain[i].next = &qp->chain[i + 1];
	qp->chain[n - 1].next = NULL;
	qp->nr_chain = 0;
	rc = -ibv_post_send(qp->qp, qp->chain, &bad);
	weir_counter_add(&remote->mux->counts.doorbells, 1);
	weir_counter_add(&remote->mux->counts.work_requests, n);
	if (!rc)
		return;
	/* Work requests from @bad on were not posted: undo the accounting. */
	for (; bad; bad = bad->next) {
		struct weir_mux_posted_wr *posted = pop_newest(qp);

		uncount_posted(remote, qp, posted);
		if (posted->rdma_op)
			posted->rdma_op->wrs--;
	}
	weir_mux_remote_fail(remote, rc);
}

void weir_mux_post_append(struct weir_mux_posted_wr posted, uint64_t data, uint32_t lkey,
			  const struct ibv_send_wr *wr)
{
	struct weir_mux_qp *qp = qp_of(posted.conn);
	struct ibv_sge *sge = &qp->sges[qp->nr_chain];
	struct ibv_send_wr *at = &qp->chain[qp->nr_chain];

	*sge = (struct ibv_sge){ data, posted.bytes, lkey };
	*at = *wr;
	at->wr_id = qp->class;
	at->sg_list = sge;
	at->num_sge = 1;
	at->send_flags = IBV_SEND_SIGNALED;
	qp->posted[(qp->first + qp->count++) % POSTED_MAX] = posted;
	qp->remote->posted++;
	if (++qp->nr_chain == WEIR_MUX_QP_CHAIN)
		weir_mux_post_doorbell(qp);
}

bool weir_mux_post_ctrl(struct weir_mux_vconn *conn, const struct wire_mux_control *message)
{
	struct weir_mux_qp *qp = qp_of(conn);
	struct weir_mux_posted_wr posted = { .conn = conn,
					     .bytes = sizeof(*message),
					     .is_control = true };
	const struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM };
	struct wire_mux_control *buffer;

	if (qp->nr_controls == WEIR_MUX_QP_CTRLS)
		return false;
	/* The oldest buffer: free, since fewer than WEIR_MUX_QP_CTRLS are in flight. */
	buffer = &qp->controls[qp->next_control++ % WEIR_MUX_QP_CTRLS];
	*buffer = *message;
	qp->nr_controls++;
	conn->controls++;
	weir_mux_post_append(posted, (uintptr_t)buffer, qp->mr->lkey, &wr);
	return true;
}

static void complete_rdma_op(struct weir_mux_rdma_op *e, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		e->status = -ECONNRESET;
		e->left = 0;
	}
	weir_mux_rdma_op_wr_done(e);
}

static void complete_ring_bytes(struct weir_mux_vconn *conn, uint32_t bytes)
{
	conn->leaving.position += bytes;
	weir_mux_ring_publish_head(&conn->leaving);
	weir_mux_ring_wake_at(conn->leaving.ring, &conn->room_fd, conn->leaving.position);
	__atomic_store_n(&conn->sent, conn->leaving.position, __ATOMIC_RELAXED);
}

static void count_sent(struct weir_mux_vconn *conn, uint32_t bytes)
{
	weir_counter_add(&conn->mux->counts.bytes_sent, bytes);
	weir_counter_add(&weir_mux_vconn_counters(conn)->bytes_sent, bytes);
}

/* Bytes of RDMA operations, invisible to the peer. */
static void count_moved(struct weir_mux_vconn *conn, uint32_t bytes)
{
	bool is_read = conn->rdma_op.is_read;
	struct weir_mux_class_counters *counts = weir_mux_vconn_counters(conn);
	uint64_t *moved = is_read ? &conn->read_done : &conn->written_done;

	weir_counter_add(is_read ? &counts->bytes_received : &counts->bytes_sent, bytes);
	__atomic_store_n(moved, *moved + bytes, __ATOMIC_RELAXED);
}

struct weir_mux_vconn *weir_mux_post_completed(struct weir_mux_remote *remote,
					       const struct ibv_wc *wc)
{
	struct weir_mux_posted_wr posted;
	struct weir_mux_vconn *conn;
	struct weir_mux_qp *qp;

	if (wc->wr_id >= WEIR_MUX_CLASSES_MAX) {
		weir_mux_qp_handshake_sent(remote, wc);
		return NULL;
	}
	if (wc->status != IBV_WC_SUCCESS)
		weir_mux_remote_fail(remote, -ECONNRESET);
	qp = remote->qps[wc->wr_id];
	posted = qp->posted[qp->first];
	qp->first = (qp->first + 1) % POSTED_MAX;
	qp->count--;
	uncount_posted(remote, qp, &posted);
	conn = posted.conn;
	if (posted.is_control)
		return conn;
	if (posted.rdma_op == &conn->zc_send)
		__atomic_store_n(&conn->zc_sent, conn->zc_sent + posted.bytes, __ATOMIC_RELAXED);
	if (posted.rdma_op != &conn->rdma_op)
		count_sent(conn, posted.bytes);
	else if (wc->status == IBV_WC_SUCCESS)
		count_moved(conn, posted.bytes);
	if (posted.rdma_op)
		complete_rdma_op(posted.rdma_op, wc);
	else
		complete_ring_bytes(conn, posted.bytes);
	return conn;
}
