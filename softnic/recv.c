// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What lies in shared memory is believed only as far as it agrees with what is remembered
 * here: an arrival counts if it is of a receive that is out and whose taker is done with
 * it, once, and its length within the buffers. wr_ids stay here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mw.h"
#include "nic.h"
#include "qp.h"
#include "recv.h"
#include "req.h"
#include "sq.h"

#define NOT_OUT UINT32_MAX

int recv_queue_init(struct recv_queue *rq, uint32_t max_wr, uint32_t max_sge)
{
	uint32_t size = rq_size_for(max_wr);

	pthread_mutex_init(&rq->lock, NULL);
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->ring.size = size;
	rq->ring.sges = max_sge;
	rq->posted = calloc(size + 1, sizeof(*rq->posted));
	rq->free = calloc(size + 1, sizeof(*rq->free));
	return rq->posted && rq->free ? 0 : -ENOMEM;
}

void recv_queue_fini(struct recv_queue *rq)
{
	free(rq->posted);
	free(rq->free);
	pthread_mutex_destroy(&rq->lock);
}

void recv_queue_format(struct recv_queue *rq, void *at, uint32_t pd)
{
	uint32_t size = rq->ring.size, i;

	rq_format(&rq->ring, at, size, rq->ring.sges, pd);
	for (i = 0; i < size; i++) {
		rq->free[i] = size - 1 - i;
		rq->posted[i].next = NOT_OUT;
	}
	rq->num_free = size;
	rq->posted[size].prev = rq->posted[size].next = size;
	rq->tail = rq_first_position(&rq->ring);
}

static bool is_out(const struct recv_queue *rq, uint32_t index)
{
	return index < rq->ring.size && rq->posted[index].next != NOT_OUT;
}

/* To the end of the list. */
static void set_out(struct recv_queue *rq, uint32_t index)
{
	uint32_t end = rq->ring.size, last = rq->posted[end].prev;

	rq->posted[index].prev = last;
	rq->posted[index].next = end;
	rq->posted[last].next = index;
	rq->posted[end].prev = index;
}

static void set_in(struct recv_queue *rq, uint32_t index)
{
	struct posted_recv *p = &rq->posted[index];

	rq->posted[p->prev].next = p->next;
	rq->posted[p->next].prev = p->prev;
	p->next = NOT_OUT;
}

static void release(struct recv_queue *rq, uint32_t index)
{
	set_in(rq, index);
	rq->free[rq->num_free++] = index;
}

static void hand_out(struct recv_queue *rq, uint32_t index, const struct ibv_sge *sges,
		     uint32_t num_sge)
{
	set_out(rq, index);
	rq->posted[index].position = rq->tail;
	rq_post(&rq->ring, rq->tail++, index, sges, num_sge);
}

static void hand_out_again(struct recv_queue *rq, uint32_t index)
{
	set_in(rq, index);
	hand_out(rq, index, NULL, 0);
}

static int post_one(struct recv_queue *rq, const struct ibv_recv_wr *wr)
{
	struct posted_recv *posted;
	uint32_t index;
	int i;

	if (rq->ring.size - rq->num_free >= rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	index = rq->free[--rq->num_free];
	posted = &rq->posted[index];
	posted->wr_id = wr->wr_id;
	for (posted->room = 0, i = 0; i < wr->num_sge; i++)
		posted->room += wr->sg_list[i].length;
	hand_out(rq, index, wr->sg_list, wr->num_sge);
	return 0;
}

int recv_queue_post(struct recv_queue *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
		    uint32_t *posted)
{
	uint32_t n = 0;
	int err = 0;

	pthread_mutex_lock(&rq->lock);
	for (; wr; wr = wr->next) {
		err = post_one(rq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		n++;
	}
	pthread_mutex_unlock(&rq->lock);
	count(doorbells, 1);
	count(recv_wrs, n);
	*posted = n;
	return err;
}

int recv_post(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = to_qp(ibv);
	uint32_t posted;
	int err;

	if (load_acquire(&qp->state) == IBV_QPS_RESET || ibv->srq) {
		*bad_wr = wr;
		return EINVAL;
	}
	err = recv_queue_post(qp->rq, wr, bad_wr, &posted);
	if (posted && load_ordered(&qp->arrivals.flushing))
		cq_notice(to_cq(ibv->recv_cq), posted, true);
	return err;
}

/* Did it arrive and was not polled yet? */
static bool has_arrived(const struct recv_arrivals *a, uint32_t index)
{
	uint32_t at, i;

	for (at = a->polled; at - a->polled < a->ring.size; at++)
		if (!arrivals_next(&a->ring, at, &i))
			return false;
		else if (i == index)
			return true;
	return false;
}

/* The oldest one that a taker has, or had and did not pass on; NOT_OUT if there is none. */
static uint32_t find_taken(struct qp *qp, uint32_t taker)
{
	struct recv_queue *rq = qp->rq;
	uint32_t end = rq->ring.size, i;
	bool done;

	if (!taker)
		return NOT_OUT;
	for (i = rq->posted[end].next; i != end; i = rq->posted[i].next)
		if (rq_taker(&rq->ring, rq->posted[i].position, i, &done) == taker &&
		    !(done && has_arrived(&qp->arrivals, i)))
			return i;
	return NOT_OUT;
}

void recv_take_back(struct qp *qp, uint32_t taker)
{
	uint32_t index;

	pthread_mutex_lock(&qp->rq->lock);
	while ((index = find_taken(qp, taker)) != NOT_OUT)
		hand_out_again(qp->rq, index);
	pthread_mutex_unlock(&qp->rq->lock);
}

/* Of its own queue everything that is out, of an SRQ what its peer took. */
static uint32_t find_flushed(struct qp *qp)
{
	struct recv_queue *rq = qp->rq;

	return qp->ibv.srq ? find_taken(qp, qp->attr.dest_qp_num) :
			     rq->posted[rq->ring.size].next;
}

void recv_flush(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	uint32_t index;
	int32_t left;

	pthread_mutex_lock(&qp->rq->lock);
	for (a->end = a->polled; a->end - a->polled < a->ring.size; a->end++)
		if (!arrivals_next(&a->ring, a->end, &index))
			break;
	if (qp->ibv.srq)
		left = find_flushed(qp) != NOT_OUT;
	else
		left = qp->rq->ring.size - qp->rq->num_free - (a->end - a->polled);
	a->flushed_ns = cq_stamp(to_cq(qp->ibv.recv_cq)->line.at);
	store_ordered(&a->flushing, true);
	pthread_mutex_unlock(&qp->rq->lock);
	if (left > 0)
		cq_notice(to_cq(qp->ibv.recv_cq), left, true);
	if (qp->ibv.srq)
		async_raise(qp->ibv.context, &qp->events, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void recv_forget(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	uint32_t index;

	if (!qp->ibv.srq)
		return;
	pthread_mutex_lock(&qp->rq->lock);
	for (; arrivals_next(&a->ring, a->polled, &index); a->polled++)
		if (is_out(qp->rq, index))
			release(qp->rq, index);
	while ((index = find_taken(qp, qp->attr.dest_qp_num)) != NOT_OUT)
		release(qp->rq, index);
	pthread_mutex_unlock(&qp->rq->lock);
}

/*
 * Which header a datagram has must be told with it (RoCE v2 annex, A17.4.5.1), and struct
 * ibv_wc has no field for it. ConnectX puts it where InfiniBand has the service level, and
 * there programs look: UCX drops what does not say.
 */
static uint8_t packet_type(const struct rq_result *r)
{
	enum { HAS_UDP = 8, IPV6 = 1, IPV4 = 2 };

	return HAS_UDP | (r->flags & RECV_IPV4 ? IPV4 : IPV6);
}

static void fill(struct qp *qp, const struct posted_recv *posted, const struct rq_result *r,
		 struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = posted->wr_id;
	wc->qp_num = qp->ibv.qp_num;
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

/* Returns how many completions it makes. */
static int take_arrival(struct qp *qp, uint32_t index, struct ibv_wc *wc)
{
	struct recv_queue *rq = qp->rq;
	struct rq_result result;
	bool done;

	if (!is_out(rq, index) ||
	    !rq_taker(&rq->ring, rq->posted[index].position, index, &done) || !done)
		return 0;
	rq_result(&rq->ring, index, &result);
	if (result.status == RECV_VOID) {
		hand_out_again(rq, index);
		return 0;
	}
	fill(qp, &rq->posted[index], &result, wc);
	release(rq, index);
	return 1;
}

static int flush_one(struct qp *qp, struct ibv_wc *wc)
{
	struct recv_queue *rq = qp->rq;
	uint32_t index = find_flushed(qp);

	if (index >= rq->ring.size)
		return 0;
	*wc = (struct ibv_wc){
		.wr_id = rq->posted[index].wr_id,
		.qp_num = qp->ibv.qp_num,
		.opcode = IBV_WC_RECV,
		.status = IBV_WC_WR_FLUSH_ERR,
	};
	to_cq(qp->ibv.recv_cq)->done_ns = qp->arrivals.flushed_ns;
	release(rq, index);
	return 1;
}

/* More came in than was posted: somebody writes where it should not. */
static void disbelieve(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_error_event(qp, IBV_EVENT_QP_FATAL);
	pthread_mutex_unlock(&qp->lock);
}

int recv_poll(struct qp *qp, struct ibv_wc *wc, int room)
{
	struct recv_arrivals *a = &qp->arrivals;
	bool flushing = load_ordered(&a->flushing);
	uint32_t index;
	int n = 0;

	if (!flushing && !arrivals_next(&a->ring, a->polled, &index)) {
		if (arrivals_are_overrun(&a->ring, a->polled))
			disbelieve(qp);
		return 0;
	}
	/* What went wrong comes before what was flushed for it. */
	if (flushing && qp->ibv.send_cq == qp->ibv.recv_cq)
		n = sq_poll(qp, wc, room);
	pthread_mutex_lock(&qp->rq->lock);
	while (n < room && !(flushing && a->polled == a->end) &&
	       arrivals_next(&a->ring, a->polled, &index)) {
		a->polled++;
		n += take_arrival(qp, index, &wc[n]);
	}
	while (flushing && n < room && flush_one(qp, &wc[n]))
		n++;
	pthread_mutex_unlock(&qp->rq->lock);
	return n;
}

uint32_t recv_waiting(struct qp *qp)
{
	struct recv_arrivals *a = &qp->arrivals;
	struct recv_queue *rq = qp->rq;
	uint32_t at, index;

	pthread_mutex_lock(&rq->lock);
	for (at = a->polled; at - a->polled < a->ring.size; at++)
		if ((a->flushing && at == a->end) || !arrivals_next(&a->ring, at, &index))
			break;
	at -= a->polled;
	if (a->flushing && qp->ibv.srq)
		at += find_flushed(qp) < rq->ring.size;
	else if (a->flushing)
		at = rq->ring.size - rq->num_free;
	pthread_mutex_unlock(&rq->lock);
	return at;
}
