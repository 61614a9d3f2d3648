// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Shared memory is trusted only where it agrees with the owner's private record. An arrival
 * counts once, and only under these conditions: its receive is out, its taker has finished, it
 * names this queue pair, and its length fits the buffers. A message in a tray goes into the buffers
 * of that record.
 */
#include <errno.h>
#include <string.h>

#include "softnic/verbs/mw.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "softnic/strict/strict.h"
#include "recv.h"
#include "tray.h"
#include "softnic/qp/req.h"
#include "softnic/qp/sq.h"

int recv_post(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = to_qp(ibv);
	uint32_t posted;
	int rc;

	if (load_acquire(&qp->state) == IBV_QPS_RESET || ibv->srq) {
		*bad_wr = wr;
		return EINVAL;
	}
	rc = recv_queue_post(qp->rq, wr, bad_wr, &posted);
	if (posted && load_ordered(&qp->arrivals.flushing))
		cq_ring_own(to_cq(ibv->recv_cq), ibv->qp_num, posted, true);
	return rc;
}

uint32_t recv_pd(const struct qp *qp)
{
	return qp->ibv.srq ? qp->ibv.srq->pd->handle : qp->ibv.pd->handle;
}

/* Whether an unpolled receive arrived at @at. Limited to the ring's size, whatever peers write. */
static bool is_arrival(const struct recv_arrivals *a, uint32_t at, uint32_t *index)
{
	return at - a->polled < a->ring.size && !(a->flushing && at == a->end) &&
	       arrivals_next(&a->ring, at, index);
}

static void mark_arrived(struct qp *qp)
{
	const struct recv_arrivals *a = &qp->arrivals;
	uint32_t at, index;

	for (at = a->polled; is_arrival(a, at, &index); at++)
		if (recv_is_out(qp->rq, index))
			qp->rq->posted[index].has_arrived = true;
}

/* A finished receive that did not arrive here may have arrived at another queue pair of the SRQ. */
static bool is_lost(const struct qp *qp, uint32_t index, uint32_t taker, uint32_t shift)
{
	const struct posted_recv *p = &qp->rq->posted[index];
	const struct rq *ring = &qp->rq->ring;
	uint32_t who;
	bool done;

	who = rq_taker(ring, p->position, index, &done);
	if (!who || who >> shift != taker)
		return false;
	if (done && qp->ibv.srq && rq_dest(ring, index) != qp->ibv.qp_num)
		return false;
	return !(done && p->has_arrived);
}

/*
 * Moves to a chain, oldest first, the receives that @taker holds or finished without passing
 * on. Each receive is visited once, because a peer may claim all of them.
 */
static uint32_t gather_lost(struct qp *qp, uint32_t taker, uint32_t shift, uint32_t *first)
{
	struct recv_queue *rq = qp->rq;
	uint32_t end = rq->ring.size, *last = first, i, next, n = 0;

	mark_arrived(qp);
	for (i = rq->posted[end].next; i != end; i = next) {
		next = rq->posted[i].next;
		if (is_lost(qp, i, taker, shift)) {
			recv_set_in(rq, i);
			*last = i;
			last = &rq->posted[i].next_lost;
			n++;
		}
		rq->posted[i].has_arrived = false;
	}
	*last = NOT_OUT;
	return n;
}

void recv_take_back(struct qp *qp, uint32_t slot)
{
	struct recv_queue *rq = qp->rq;
	uint32_t i;

	pthread_mutex_lock(&rq->lock);
	gather_lost(qp, slot, SOFTNIC_QP_INDEX_BITS, &i);
	for (; i != NOT_OUT; i = rq->posted[i].next_lost)
		recv_hand_out(rq, i, NULL, 0);
	pthread_mutex_unlock(&rq->lock);
}

/*
 * A queue pair's own queue flushes every receive that has not arrived; an SRQ only those the
 * peer had taken.
 */
void recv_flush(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	uint32_t index;
	int32_t left;

	pthread_mutex_lock(&qp->rq->lock);
	for (a->end = a->polled; is_arrival(a, a->end, &index); a->end++)
		;
	a->flushed_ns = cq_stamp(to_cq(qp->ibv.recv_cq)->doorbell.at);
	store_ordered(&a->flushing, true);
	if (qp->ibv.srq)
		left = a->num_lost = gather_lost(qp, qp->attr.dest_qp_num, 0, &a->lost);
	else
		left = qp->rq->ring.size - qp->rq->num_free - (a->end - a->polled);
	pthread_mutex_unlock(&qp->rq->lock);
	if (left > 0)
		cq_ring_own(to_cq(qp->ibv.recv_cq), qp->ibv.qp_num, left, true);
	if (qp->ibv.srq && !qp_is_srq_end(qp)) /* the program does not know that one */
		async_raise(qp->ibv.context, &qp->events, IBV_EVENT_QP_LAST_WQE_REACHED);
}

/* The next flushed receive to poll, or NOT_OUT. */
static uint32_t take_flushed(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	struct recv_queue *rq = qp->rq;
	uint32_t index;

	if (!a->flushing)
		return NOT_OUT;
	if (qp->ibv.srq) {
		index = a->lost;
		if (index == NOT_OUT)
			return NOT_OUT;
		a->lost = rq->posted[index].next_lost;
		a->num_lost--;
		return index;
	}
	index = rq->posted[rq->ring.size].next;
	if (index == rq->ring.size)
		return NOT_OUT;
	recv_set_in(rq, index);
	return index;
}

/* Whether the peer has taken the receive, or a taker finished it for this queue pair. */
static bool is_used(const struct qp *qp, uint32_t index)
{
	const struct rq *ring = &qp->rq->ring;
	uint32_t who;
	bool done;

	who = rq_taker(ring, qp->rq->posted[index].position, index, &done);
	return who &&
	       (who == qp->attr.dest_qp_num || (done && rq_dest(ring, index) == qp->ibv.qp_num));
}

void recv_forget(struct qp *qp)
{
	struct recv_queue *rq = qp->rq;
	uint32_t end = rq->ring.size, i, next;

	if (!qp->ibv.srq)
		return;
	pthread_mutex_lock(&rq->lock);
	while ((i = take_flushed(qp)) != NOT_OUT) {
		strict_drop(rq->posted[i].wr_id);
		recv_set_free(rq, i);
	}
	for (i = rq->posted[end].next; i != end; i = next) {
		next = rq->posted[i].next;
		if (is_used(qp, i)) {
			strict_drop(rq->posted[i].wr_id);
			recv_release(rq, i);
		}
	}
	pthread_mutex_unlock(&rq->lock);
}

/*
 * The RoCE v2 annex (A17.4.5.1) demands that a completion tells the datagram's header type, but
 * struct ibv_wc has no field for it. ConnectX uses the service level, and programs look there:
 * UCX drops a datagram without it.
 */
static uint8_t packet_type(const struct rq_result *r)
{
	enum { HAS_UDP = 8, IPV6 = 1, IPV4 = 2 };

	return HAS_UDP | (r->flags & RECV_IPV4 ? IPV4 : IPV6);
}

static void fill_wc(struct qp *qp, const struct posted_recv *posted, const struct rq_result *r,
		    struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = posted->wr_id;
	wc->qp_num = qp_is_srq_end(qp) ? r->src_qp : qp->ibv.qp_num;
	wc->src_qp = r->src_qp;
	wc->status = r->status <= IBV_WC_GENERAL_ERR ? r->status : IBV_WC_FATAL_ERR;
	wc->opcode = r->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
							      IBV_WC_RECV;
	wc->wc_flags = r->flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV | IBV_WC_GRH);
	wc->sl = wc->wc_flags & IBV_WC_GRH ? packet_type(r) : 0;
	wc->imm_data = r->imm;
	wc->byte_len = r->byte_len;
	if (wc->opcode == IBV_WC_RECV && wc->byte_len > posted->room)
		wc->byte_len = posted->room;
	to_cq(qp->ibv.recv_cq)->done_ns = r->done_ns;
	if (wc->status == IBV_WC_SUCCESS) {
		if (wc->wc_flags & IBV_WC_WITH_INV)
			mw_invalidated(qp, r->imm);
		count(receives, 1);
		if (wc->opcode == IBV_WC_RECV)
			count(receive_bytes, wc->byte_len);
	}
}

/* The message, or its last piece, is in its tray. */
static void empty_tray(struct qp *qp, uint32_t index, struct ibv_wc *wc)
{
	const uint64_t offset = qp->rq->posted[index].in_pieces;

	if (wc->status != IBV_WC_SUCCESS ||
	    tray_empty(&qp->segment.trays, qp->rq, index, offset, wc->byte_len - offset,
		       recv_pd(qp)))
		return;
	wc->status = IBV_WC_LOC_PROT_ERR;
	qp->arrivals.has_failed = true;
}

/* Returns the number of completions made, 0 or 1. */
static int take_arrival(struct qp *qp, uint32_t index, struct ibv_wc *wc)
{
	struct recv_queue *rq = qp->rq;
	struct rq_result result;
	bool done;

	if (!recv_is_out(rq, index) ||
	    !rq_taker(&rq->ring, rq->posted[index].position, index, &done) || !done)
		return 0;
	rq_result(&rq->ring, index, &result);
	if (result.dest_qp != qp->ibv.qp_num)
		return 0;
	if (result.status == RECV_VOID) {
		recv_hand_out_again(rq, index);
		return 0;
	}
	fill_wc(qp, &rq->posted[index], &result, wc);
	if (result.flags & RECV_IN_TRAY)
		empty_tray(qp, index, wc);
	recv_release(rq, index);
	return 1;
}

static int flush_one(struct qp *qp, struct ibv_wc *wc)
{
	struct recv_queue *rq = qp->rq;
	uint32_t index = take_flushed(qp);

	if (index == NOT_OUT)
		return 0;
	*wc = (struct ibv_wc){
		.wr_id = rq->posted[index].wr_id,
		.qp_num = qp->ibv.qp_num,
		.opcode = IBV_WC_RECV,
		.status = IBV_WC_WR_FLUSH_ERR,
	};
	to_cq(qp->ibv.recv_cq)->done_ns = qp->arrivals.flushed_ns;
	recv_set_free(rq, index);
	return 1;
}

/* More receives arrived than were posted: a peer forged arrivals. */
static void fail_on_forged_arrival(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_error_event(qp, IBV_EVENT_QP_FATAL);
	pthread_mutex_unlock(&qp->lock);
}

/*
 * A program that sends and receives on one CQ must poll a send before the answer to it, as with
 * a NIC. So we count the arrivals, wait for promises, count the finished sends, and poll those
 * sends first.
 *
 * A later arrival rings the doorbell after this collect and belongs to a later batch.
 */
static void begin_batch(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	uint32_t index;

	for (a->batch_end = a->polled; a->batch_end - a->polled < a->ring.size; a->batch_end++)
		if (!arrivals_next(&a->ring, a->batch_end, &index))
			break;
	cq_wait_for_promised(to_cq(qp->ibv.recv_cq));
	a->batch_sent = load_acquire(&qp->sq.done);
}

/* As the specification demands after a receive that was at fault. */
static void fail_after_receive(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_error(qp);
	pthread_mutex_unlock(&qp->lock);
}

/* Room left means that the whole batch was polled. */
static int poll_batch(struct qp *qp, struct ibv_wc *wc, int room)
{
	struct recv_arrivals *a = &qp->arrivals;
	bool has_failed;
	uint32_t index;
	int n = 0;

	if (qp->ibv.send_cq == qp->ibv.recv_cq)
		n = sq_poll_until(qp, a->batch_sent, wc, room);
	pthread_mutex_lock(&qp->rq->lock);
	while (n < room && a->polled != a->batch_end && is_arrival(a, a->polled, &index)) {
		a->polled++;
		n += take_arrival(qp, index, &wc[n]);
	}
	has_failed = a->has_failed;
	a->has_failed = false;
	pthread_mutex_unlock(&qp->rq->lock);
	if (has_failed)
		fail_after_receive(qp);
	return n;
}

static int poll_flushed(struct qp *qp, struct ibv_wc *wc, int room)
{
	int n = 0;

	pthread_mutex_lock(&qp->rq->lock);
	while (n < room && flush_one(qp, &wc[n]))
		n++;
	pthread_mutex_unlock(&qp->rq->lock);
	return n;
}

int recv_poll(struct qp *qp, struct ibv_wc *wc, int room)
{
	struct recv_arrivals *a = &qp->arrivals;
	bool flushing = load_ordered(&a->flushing);
	uint32_t index;
	int n = 0;

	if (!flushing && !arrivals_next(&a->ring, a->polled, &index)) {
		if (arrivals_are_overrun(&a->ring, a->polled))
			fail_on_forged_arrival(qp);
		return 0;
	}
	if (a->polled != a->batch_end)
		n = poll_batch(qp, wc, room); /* rest of a batch that had no room before */
	if (n < room) {
		begin_batch(qp);
		n += poll_batch(qp, wc + n, room - n);
	}
	if (flushing && n < room)
		n += poll_flushed(qp, wc + n, room - n);
	return n;
}

uint32_t recv_waiting(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	struct recv_queue *rq = qp->rq;
	uint32_t at, index, n;

	pthread_mutex_lock(&rq->lock);
	for (at = a->polled; is_arrival(a, at, &index); at++)
		;
	n = at - a->polled;
	if (a->flushing && qp->ibv.srq)
		n += a->num_lost;
	else if (a->flushing)
		n = rq->ring.size - rq->num_free;
	pthread_mutex_unlock(&rq->lock);
	return n;
}
