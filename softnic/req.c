// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A send queue is executed strictly in order, one work request after the other, by
 * whoever holds qp->lock: so a fence is kept without doing anything for it.
 *
 * What cannot go on waits for the timer: a receiver without a buffer (RNR) as long as the
 * receiver asked for, an end that does not answer until the transport's retries would
 * have been used up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deliver.h"
#include "lossy.h"
#include "nic.h"
#include "req.h"
#include "resp.h"

enum {
	/*
	 * A post that moves more is for the engine: on small virtual machines, to wake that costs
	 * as much as copying half of this, and then both want a CPU.
	 */
	SMALL_BYTES_MAX = 1 << 20,
	ASK_AGAIN_NS = 5000000,		/* for the other end */
	ATOMIC_AGAIN_NS = 50000,
	BACKOFF = 16,			/* times as long at most */
	RNR_FOR_EVER = 7,
};

/*
 * A loaded host takes a while to answer even where the network would not, more so when a
 * thousand queue pairs connect at once; hardware, too, may take four times its timeout.
 */
#define GIVE_UP_NS_MIN 2000000000ull
/* And many who add to one counter a while to have their turn. */
#define BUSY_NS_MIN 5000000000ull

int req_init(struct qp *qp)
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

void req_fini(struct qp *qp)
{
	free(qp->sq.wqes);
	free(qp->sq.sges);
	free(qp->sq.inlined);
	free(qp->sq.avs);
	free(qp->sq.fanout);
}

static void forget_attempt(struct send_queue *sq)
{
	sq->offset = 0;
	sq->has_receive = false;
	sq->give_up_ns = 0;
	sq->rnr_begun = false;
	sq->waiting = false;
	sq->foreseen = false;
	sq->invalidates = false;
	sq->asks = false;
	if (sq->fanout)
		sq->fanout->has_begun = false;
}

void req_reset(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;

	store_relaxed(&sq->tail, 0);
	store_relaxed(&sq->done, 0);
	store_release(&sq->polled, 0);
	forget_attempt(sq);
	if (sq->fanout)
		sq->fanout->is_known = false;
}

static void count_done(const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		count(writes, 1);
		count(write_bytes, wqe->length);
		break;
	case IBV_WR_RDMA_READ:
		count(reads, 1);
		count(read_bytes, wqe->length);
		break;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		count(sends, 1);
		count(send_bytes, wqe->length);
		break;
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		break;		/* nothing went anywhere */
	default:
		count(atomics, 1);
	}
}

static struct send_wqe *current_wqe(struct send_queue *sq)
{
	return &sq->wqes[sq->done & (sq->size - 1)];
}

/* Is there a completion of what is done? */
static bool is_noticed(const struct send_wqe *wqe)
{
	return wqe->status != IBV_WC_SUCCESS || (wqe->flags & IBV_SEND_SIGNALED);
}

static void complete(struct qp *qp, enum ibv_wc_status status)
{
	struct send_queue *sq = &qp->sq;
	struct cq *cq = to_cq(qp->ibv.send_cq);
	struct send_wqe *wqe = current_wqe(sq);
	bool noticed;

	wqe->status = status;
	noticed = is_noticed(wqe);
	if (noticed)
		wqe->done_ns = cq_stamp(cq->line.at);
	if (status == IBV_WC_SUCCESS)
		count_done(wqe);
	forget_attempt(sq);
	store_release(&sq->done, sq->done + 1);
	if (noticed)
		cq_notice(cq, 1, status != IBV_WC_SUCCESS);
	if (qp->state == IBV_QPS_SQD)
		qp_drained(qp);
}

bool req_has_begun(const struct qp *qp)
{
	const struct send_queue *sq = &qp->sq;

	return sq->offset || sq->has_receive || sq->give_up_ns || sq->rnr_begun || sq->invalidates;
}

static bool is_empty(const struct send_queue *sq)
{
	return sq->done == load_ordered(&sq->tail);
}

bool req_is_sending(struct qp *qp)
{
	bool is_sending;

	pthread_mutex_lock(&qp->lock);
	is_sending = qp->state == IBV_QPS_RTS && !is_empty(&qp->sq);
	pthread_mutex_unlock(&qp->lock);
	return is_sending;
}

void req_flush(struct qp *qp)
{
	while (!is_empty(&qp->sq))
		complete(qp, IBV_WC_WR_FLUSH_ERR);
}

/* The responder's program learns of a request it did not make. */
static void complain(struct qp *qp, enum ibv_wr_opcode op, enum ibv_wc_status status)
{
	struct message m = {
		.type = MSG_QP_ERROR,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
	};

	if (status == IBV_WC_REM_ACCESS_ERR)
		m.value = 1 + IBV_EVENT_QP_ACCESS_ERR;
	else if (status == IBV_WC_REM_INV_REQ_ERR && !wr_is_send(op))
		m.value = 1 + IBV_EVENT_QP_REQ_ERR;
	else if (status == IBV_WC_REM_OP_ERR && !wr_is_send(op))
		m.value = 1 + IBV_EVENT_QP_FATAL;
	else if (status != IBV_WC_REM_INV_REQ_ERR && status != IBV_WC_REM_OP_ERR)
		return;
	peer_tell(qp->remote.peer, &m);
}

void req_fail(struct qp *qp, enum ibv_wc_status status)
{
	if (is_empty(&qp->sq))
		return;
	if (!qp_is_reliable(qp)) {
		complete(qp, status);
		lossy_error(qp);
		return;
	}
	if (qp->remote.shared)
		complain(qp, current_wqe(&qp->sq)->opcode, status);
	complete(qp, status);
	qp_error(qp);
}

/* Units of 10 us, as the transport encodes them. */
static uint64_t rnr_ns(uint32_t timer)
{
	static const uint16_t units[32] = {
		65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
		1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return units[timer & 31] * 10000ull;
}

static void timer_expired(struct softnic_timer *t);

static void wait_for(struct qp *qp, uint64_t ns)
{
	qp->sq.waiting = true;
	softnic_timer_arm(&qp->timer, ns, timer_expired);
}

static void receiver_not_ready(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;

	count(rnr_naks, 1);
	if (!sq->rnr_begun) {
		sq->rnr_begun = true;
		sq->rnr_left = qp->attr.rnr_retry;
	}
	if (!sq->rnr_left) {
		req_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->attr.rnr_retry != RNR_FOR_EVER)
		sq->rnr_left--;
	wait_for(qp, rnr_ns(load_relaxed(&qp->remote.shared->min_rnr_timer)));
}

/* The first attempt and its retries, each with the timeout; 0 stands for no limit. */
static uint64_t give_up_after_ns(const struct qp *qp, uint64_t ns_min)
{
	uint64_t ns = (4096ull << qp->attr.timeout) * (qp->attr.retry_cnt + 1);

	if (!qp_is_reliable(qp))
		return ns_min;
	if (!qp->attr.timeout)
		return UINT64_MAX / 2;
	return ns < ns_min ? ns_min : ns;
}

/*
 * Whoever is first to send a datagram there asks at once. Then it waits longer each time: many who
 * ask again and again would keep each other from answers.
 */
static void nobody_answers(struct qp *qp, uint64_t ns_min, uint64_t again_ns)
{
	struct send_queue *sq = &qp->sq;
	uint64_t now_ns = softnic_now_ns();

	if (!sq->give_up_ns) {
		sq->give_up_ns = now_ns + give_up_after_ns(qp, ns_min);
		sq->again_ns = again_ns;
		sq->asks = sq->waiting = !qp_is_reliable(qp);
		if (sq->asks)
			return;
	}
	if (now_ns >= sq->give_up_ns && qp_is_reliable(qp)) {
		req_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (now_ns >= sq->give_up_ns) {
		deliver_give_up(qp);
		complete(qp, IBV_WC_SUCCESS);
		return;
	}
	wait_for(qp, sq->again_ns);
	if (sq->again_ns < BACKOFF * again_ns)
		sq->again_ns *= 2;
}

static void step(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;
	int status = deliver_step(qp);

	switch (status) {
	case RESP_MORE:
		return;
	case RESP_RNR:
		receiver_not_ready(qp);
		break;
	case RESP_SILENT:
		nobody_answers(qp, GIVE_UP_NS_MIN, ASK_AGAIN_NS);
		break;
	case RESP_LATER:
		wait_for(qp, qp->faults.begin_ns - softnic_now_ns());
		break;
	case RESP_BUSY:
		nobody_answers(qp, BUSY_NS_MIN, ATOMIC_AGAIN_NS);
		break;
	case IBV_WC_SUCCESS:
		complete(qp, IBV_WC_SUCCESS);
		break;
	default:
		req_fail(qp, status);
	}
	if (sq->promised)
		cq_keep(to_cq(qp->ibv.send_cq));
	sq->promised = false;
}

/* Is there something to do, and may it be done now? */
static bool is_ready(struct qp *qp)
{
	if (is_empty(&qp->sq) || qp->sq.waiting)
		return false;
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
		req_flush(qp);
		return false;
	}
	return qp->state == IBV_QPS_RTS || (qp->state == IBV_QPS_SQD && req_has_begun(qp));
}

/* For the other end: it may be known now, or known not to be there. */
static void ask(struct qp *qp)
{
	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	qp->sq.waiting = false;
	if (!is_empty(&qp->sq))
		qp_link(qp);
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
}

/* Lets go of qp->lock. Returns true if the other end was asked for. */
static bool unlock_and_ask(struct qp *qp)
{
	bool asks = qp->sq.asks;

	qp->sq.asks = false;
	pthread_mutex_unlock(&qp->lock);
	if (asks)
		ask(qp);
	return asks;
}

bool req_run(struct softnic_work *work)
{
	struct qp *qp = (struct qp *)((char *)work - offsetof(struct qp, work));
	bool more = false;

	pthread_mutex_lock(&qp->lock);
	if (is_ready(qp)) {
		step(qp);
		more = is_ready(qp);
	}
	return unlock_and_ask(qp) || more;
}

/*
 * If someone else executes, it may be past looking at the tail already: the engine will
 * look again.
 */
void req_execute_small(struct qp *qp, uint64_t bytes)
{
	bool left = true, asked = true;

	while (asked && bytes <= SMALL_BYTES_MAX && !pthread_mutex_trylock(&qp->lock)) {
		uint32_t begin = qp->sq.done;
		uint64_t room = SMALL_BYTES_MAX;

		while (is_ready(qp) && qp->sq.done - begin < qp->sq.size &&
		       current_wqe(&qp->sq)->length <= room) {
			room -= current_wqe(&qp->sq)->length;
			step(qp);
		}
		left = !is_empty(&qp->sq) && !qp->sq.waiting;
		asked = unlock_and_ask(qp);
		left |= asked;
	}
	if (left)
		softnic_work_kick(&qp->work);
}

/* How long it waits in all for whom it sends datagrams to does not grow with who else answers. */
void req_resume(struct qp *qp)
{
	qp->sq.waiting = false;
	if (!qp_is_datagram(qp))
		qp->sq.give_up_ns = 0;
	softnic_work_kick(&qp->work);
}

/* On the engine's thread. */
static void timer_expired(struct softnic_timer *t)
{
	struct qp *qp = (struct qp *)((char *)t - offsetof(struct qp, timer));

	ask(qp);
	softnic_work_kick(&qp->work);
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode op)
{
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

int req_poll(struct qp *qp, struct ibv_wc *wc, int room)
{
	struct send_queue *sq = &qp->sq;
	uint32_t done = load_acquire(&sq->done), at = load_relaxed(&sq->polled);
	int n = 0;

	for (; at != done && n < room; at++) {
		const struct send_wqe *wqe = &sq->wqes[at & (sq->size - 1)];

		if (is_noticed(wqe))
			fill_wc(qp, wqe, &wc[n++]);
	}
	store_release(&sq->polled, at);
	return n;
}

uint32_t req_waiting(struct qp *qp)
{
	const struct send_queue *sq = &qp->sq;
	uint32_t done = load_acquire(&sq->done), at = load_relaxed(&sq->polled), n = 0;

	for (; at != done; at++)
		n += is_noticed(&sq->wqes[at & (sq->size - 1)]);
	return n;
}
