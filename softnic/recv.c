// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Receives lie in the queue pair's shared segment. The peer that sends takes the oldest,
 * scatters into its buffers, writes beneath it how it ended and moves the head; polling
 * follows the head. The head is the peer's word, so it is believed only within what was
 * posted, and so is the length; wr_ids stay here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"
#include "recv.h"

int recv_init(struct qp *qp)
{
	struct recv_queue *rq = &qp->rq;

	if (!rq->size)
		return 0;
	rq->posted = calloc(rq->size, sizeof(*rq->posted));
	return rq->posted ? 0 : -ENOMEM;
}

void recv_fini(struct qp *qp)
{
	free(qp->rq.posted);
}

void recv_reset(struct qp *qp)
{
	struct recv_queue *rq = &qp->rq;

	store_relaxed(&rq->tail, 0);
	store_relaxed(&rq->polled, 0);
	rq->end = 0;
	store_release(&rq->flushing, false);
}

/* Under recv_lock. */
static int append(struct qp *qp, const struct ibv_recv_wr *wr)
{
	struct recv_queue *rq = &qp->rq;
	struct shared_qp *s = qp->segment.qp;
	uint32_t tail = load_relaxed(&rq->tail);
	struct posted_recv *posted = &rq->posted[tail & (rq->size - 1)];
	struct shared_recv *r;
	int i;

	if (tail - load_acquire(&rq->polled) >= qp->init.cap.max_recv_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	r = qp_recv_at(s, rq->size, rq->max_sge, tail);
	posted->wr_id = wr->wr_id;
	posted->room = 0;
	r->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		r->sges[i] = wr->sg_list[i];
		posted->room += wr->sg_list[i].length;
	}
	store_release(&rq->tail, tail + 1);
	store_release(&s->rq_tail, tail + 1);
	return 0;
}

int recv_post(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = to_qp(ibv);
	int err = 0, n = 0;

	pthread_mutex_lock(&qp->recv_lock);
	if (load_acquire(&qp->state) == IBV_QPS_RESET)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = append(qp, wr);
		if (err)
			break;
		n++;
	}
	pthread_mutex_unlock(&qp->recv_lock);
	if (err)
		*bad_wr = wr;
	count(doorbells, 1);
	count(recv_wrs, n);
	if (n && load_ordered(&qp->rq.flushing))
		cq_notice(to_cq(ibv->recv_cq), n, true);
	return err;
}

void recv_flush(struct qp *qp)
{
	struct recv_queue *rq = &qp->rq;
	uint32_t head = load_acquire(&qp->segment.qp->rq_head);
	uint32_t tail = load_acquire(&rq->tail);
	uint32_t polled = load_acquire(&rq->polled);

	rq->end = head - polled <= tail - polled ? head : polled;
	rq->flushed_ns = cq_stamp(to_cq(qp->ibv.recv_cq)->bell);
	store_ordered(&rq->flushing, true);
	if (tail != polled)
		cq_notice(to_cq(qp->ibv.recv_cq), tail - rq->end, true);
}

static void fill(struct qp *qp, uint32_t at, struct ibv_wc *wc)
{
	struct recv_queue *rq = &qp->rq;
	const struct shared_recv *r = qp_recv_at(qp->segment.qp, rq->size, rq->max_sge, at);
	const struct posted_recv *posted = &rq->posted[at & (rq->size - 1)];
	uint32_t status = load_relaxed(&r->status);

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = posted->wr_id;
	wc->qp_num = qp->ibv.qp_num;
	wc->src_qp = qp->attr.dest_qp_num;
	wc->status = status <= IBV_WC_GENERAL_ERR ? status : IBV_WC_FATAL_ERR;
	wc->opcode = r->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
							      IBV_WC_RECV;
	wc->wc_flags = r->flags & IBV_WC_WITH_IMM;
	wc->imm_data = r->imm;
	wc->byte_len = load_relaxed(&r->byte_len);
	if (wc->opcode == IBV_WC_RECV && wc->byte_len > posted->room)
		wc->byte_len = posted->room;
	to_cq(qp->ibv.recv_cq)->done_ns = load_relaxed(&r->done_ns);
	if (wc->status == IBV_WC_SUCCESS) {
		count(receives, 1);
		if (wc->opcode == IBV_WC_RECV)
			count(receive_bytes, wc->byte_len);
	}
}

static void fill_flushed(struct qp *qp, uint32_t at, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = qp->rq.posted[at & (qp->rq.size - 1)].wr_id;
	wc->qp_num = qp->ibv.qp_num;
	wc->opcode = IBV_WC_RECV;
	wc->status = IBV_WC_WR_FLUSH_ERR;
	to_cq(qp->ibv.recv_cq)->done_ns = qp->rq.flushed_ns;
}

/* The peer says it used up more than was posted. */
static void disbelieve(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_error_event(qp, IBV_EVENT_QP_FATAL);
	pthread_mutex_unlock(&qp->lock);
}

int recv_poll(struct qp *qp, struct ibv_wc *wc, int room)
{
	struct recv_queue *rq = &qp->rq;
	bool flushing = load_ordered(&rq->flushing);
	uint32_t head = flushing ? rq->end : load_acquire(&qp->segment.qp->rq_head);
	uint32_t tail = load_acquire(&rq->tail);
	uint32_t at = load_relaxed(&rq->polled);
	int n = 0;

	if (!flushing && head - at > tail - at) {
		disbelieve(qp);
		return 0;
	}
	for (; n < room && at != (flushing ? tail : head); at++, n++) {
		if ((int32_t)(head - at) > 0)
			fill(qp, at, &wc[n]);
		else
			fill_flushed(qp, at, &wc[n]);
	}
	store_release(&rq->polled, at);
	return n;
}

uint32_t recv_waiting(struct qp *qp)
{
	const struct recv_queue *rq = &qp->rq;
	uint32_t polled = load_relaxed(&rq->polled);
	uint32_t posted = load_acquire(&rq->tail) - polled;
	uint32_t done = load_acquire(&qp->segment.qp->rq_head) - polled;

	return load_ordered(&rq->flushing) || done > posted ? posted : done;
}
