// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A ring with three positions: polled <= done <= tail. The poster advances tail, the requester
 * done, and the poller polled. An unsignalled WR that succeeds leaves no completion.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/cq/cq.h"
#include "deliver.h"
#include "softnic/qp_far/far.h"
#include "softnic/strict/strict.h"
#include "sq.h"

int sq_init(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;

	if (!sq->size)
		return 0;
	sq->wqes = calloc(sq->size, sizeof(*sq->wqes));
	sq->sges = calloc((size_t)sq->size * sq->max_sge, sizeof(*sq->sges));
	sq->inlined = calloc(sq->size, sq->max_inline ? sq->max_inline : 1);
	if (qp_is_datagram(qp)) {
		sq->avs = calloc(sq->size, sizeof(*sq->avs));
		sq->fanout = calloc(1, sizeof(*sq->fanout));
		if (!sq->avs || !sq->fanout)
			return -ENOMEM;
	}
	return sq->wqes && (sq->sges || !sq->max_sge) && sq->inlined ? 0 : -ENOMEM;
}

void sq_fini(struct qp *qp)
{
	strict_forget(&qp->sq);
	free(qp->sq.wqes);
	free(qp->sq.sges);
	free(qp->sq.inlined);
	free(qp->sq.avs);
	free(qp->sq.fanout);
}

void sq_forget_attempt(struct send_queue *sq)
{
	sq->offset = 0;
	sq->has_receive = false;
	sq->piece.is_out = sq->piece.has_answer = false;
	sq->give_up_ns = 0;
	sq->rnr_begun = false;
	sq->waiting = false;
	sq->faults_drawn = false;
	sq->invalidates = false;
	sq->asks = false;
	sq->fails_with = 0;
	if (sq->fanout)
		sq->fanout->has_begun = false;
}

void sq_reset(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;

	strict_forget(sq);
	store_relaxed(&sq->tail, 0);
	store_relaxed(&sq->done, 0);
	store_release(&sq->polled, 0);
	sq_forget_attempt(sq);
	sq->drops = false;
	if (sq->fanout)
		sq->fanout->is_known = false;
}

bool sq_has_begun(const struct qp *qp)
{
	const struct send_queue *sq = &qp->sq;

	return sq->offset || sq->has_receive || sq->give_up_ns || sq->rnr_begun ||
	       sq->invalidates || sq->is_copying || far_has_begun(qp);
}

bool sq_uses_key(const struct send_queue *sq, uint32_t lkey)
{
	size_t at = sq->done & (sq->size - 1);
	const struct send_wqe *wqe = &sq->wqes[at];
	uint32_t i;

	for (i = 0; !(wqe->flags & IBV_SEND_INLINE) && i < wqe->num_sge; i++)
		if (sq->sges[at * sq->max_sge + i].lkey == lkey)
			return true;
	return false;
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode op)
{
	if (op == FLUSH_OP)
		return FLUSH_WC;
	switch (op) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return IBV_WC_SEND;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

static void fill_wc(const struct qp *qp, const struct send_wqe *wqe, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wqe->wr_id;
	wc->status = wqe->status;
	wc->opcode = wc_opcode(wqe->opcode);
	wc->byte_len = wqe->length;
	wc->qp_num = qp->ibv.qp_num;
	to_cq(qp->ibv.send_cq)->done_ns = wqe->done_ns;
}

int sq_poll_until(struct qp *qp, uint32_t until, struct ibv_wc *wc, int room)
{
	struct send_queue *sq = &qp->sq;
	uint32_t done = load_acquire(&sq->done), at = load_relaxed(&sq->polled);
	int n = 0;

	for (; at != done && (int32_t)(until - at) > 0 && n < room; at++) {
		const struct send_wqe *wqe = &sq->wqes[at & (sq->size - 1)];

		if (sq_is_noticed(wqe))
			fill_wc(qp, wqe, &wc[n++]);
	}
	store_release(&sq->polled, at);
	return n;
}

int sq_poll(struct qp *qp, struct ibv_wc *wc, int room)
{
	return sq_poll_until(qp, load_acquire(&qp->sq.done), wc, room);
}

uint32_t sq_waiting(struct qp *qp)
{
	const struct send_queue *sq = &qp->sq;
	uint32_t done = load_acquire(&sq->done), at = load_relaxed(&sq->polled), n = 0;

	for (; at != done; at++)
		n += sq_is_noticed(&sq->wqes[at & (sq->size - 1)]);
	return n;
}
