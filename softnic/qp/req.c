// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The holder of qp->lock executes the send queue strictly in order, one WR after the other. So a
 * fence needs no code. A stalled WR waits for the timer, see retry.c.
 *
 * While the kernel copies, qp->lock is free. The copying thread owns the WR then: whoever else
 * wants to end the WR leaves a note, and the thread acts on it after the copy.
 */
#include "deliver.h"
#include "softnic/udp/neighbor.h"
#include "unreliable.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "req.h"
#include "resp.h"
#include "retry.h"
#include "sq.h"

enum {
	/*
	 * The engine executes larger posts. On small virtual machines, waking the engine costs as
	 * much as copying half this size, and then both threads need a CPU.
	 */
	SMALL_BYTES_MAX = 1 << 20,
};

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
		break; /* local */
	default:
		count(atomics, 1);
	}
}

void req_complete(struct qp *qp, enum ibv_wc_status status)
{
	struct send_queue *sq = &qp->sq;
	struct cq *cq = to_cq(qp->ibv.send_cq);
	struct send_wqe *wqe = sq_current(sq);
	bool noticed;

	wqe->status = status;
	noticed = sq_is_noticed(wqe);
	if (noticed)
		wqe->done_ns = cq_stamp(cq->doorbell.at);
	if (status == IBV_WC_SUCCESS)
		count_done(wqe);
	else if (qp_names_srqs(qp))
		resp_give_back(qp); /* no queue pair fails at the SRQ, to flush what was taken */
	sq_forget_attempt(sq);
	store_release(&sq->done, sq->done + 1);
	if (noticed)
		cq_ring_own(cq, qp->ibv.qp_num, 1, status != IBV_WC_SUCCESS);
	if (qp->state == IBV_QPS_SQD && !sq_has_begun(qp))
		qp_drained(qp);
}

bool req_is_sending(struct qp *qp)
{
	bool is_sending;

	pthread_mutex_lock(&qp->lock);
	is_sending = qp->state == IBV_QPS_RTS && !sq_is_empty(&qp->sq);
	pthread_mutex_unlock(&qp->lock);
	return is_sending;
}

void req_flush(struct qp *qp)
{
	while (!qp->sq.is_copying && !sq_is_empty(&qp->sq))
		req_complete(qp, IBV_WC_WR_FLUSH_ERR);
}

/* Report the error to the responder's program, which cannot see the failed request. */
static void report_qp_error(struct qp *qp, enum ibv_wr_opcode op, enum ibv_wc_status status)
{
	struct shm_msg m = {
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
	peer_send(qp->remote.peer, &m);
}

void req_fail(struct qp *qp, enum ibv_wc_status status)
{
	if (sq_is_empty(&qp->sq))
		return;
	if (qp->sq.is_copying) {
		qp->sq.fails_with = status;
		return;
	}
	if (!qp_is_reliable(qp)) {
		req_complete(qp, status);
		unreliable_error(qp);
		return;
	}
	if (qp->remote.shared || qp->remote.is_gated)
		report_qp_error(qp, sq_current(&qp->sq)->opcode, status);
	req_complete(qp, status);
	qp_error(qp);
}

static void step_wqe(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;
	int status = deliver_step(qp);

	if (sq->fails_with && status != IBV_WC_SUCCESS)
		status = sq->fails_with;
	switch (status) {
	case RESP_MORE:
		return;
	case RESP_RNR:
		retry_receiver_not_ready(qp);
		break;
	case RESP_SILENT:
	case RESP_STUCK:
		retry_nobody_answers(qp);
		break;
	case RESP_LATER:
		retry_after(qp, qp->faults.begin_ns - softnic_loop_now_ns());
		break;
	case RESP_ASKED:
		retry_after(qp, NEIGHBOR_WAIT_NS);
		break;
	case RESP_BUSY:
		retry_atomic_busy(qp);
		break;
	case IBV_WC_SUCCESS:
		req_complete(qp, IBV_WC_SUCCESS);
		break;
	default:
		req_fail(qp, status);
	}
	if (sq->promised)
		cq_fulfil(to_cq(qp->ibv.send_cq));
	sq->promised = false;
}

/* Is a WR posted that may run now? */
static bool can_step(struct qp *qp)
{
	if (sq_is_empty(&qp->sq) || qp->sq.waiting || qp->sq.is_copying)
		return false;
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
		req_flush(qp);
		return false;
	}
	return qp->state == IBV_QPS_RTS || (qp->state == IBV_QPS_SQD && sq_has_begun(qp));
}

/* On return the remote queue pair may be found or refused already. */
static void request_remotes(struct qp *qp)
{
	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	qp->sq.waiting = false;
	if (qp->sq.drops && !qp->sq.is_copying && remote_qp_drop_late(qp))
		req_resume(qp);
	if (!sq_is_empty(&qp->sq) && !qp->sq.is_copying)
		remote_qp_request(qp);
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
}

/* Unlocks qp->lock. Returns true if it requested remote queue pairs. */
static bool unlock_and_request(struct qp *qp)
{
	bool asks = qp->sq.asks || (qp->sq.drops && !qp->sq.is_copying);

	qp->sq.asks = false;
	pthread_mutex_unlock(&qp->lock);
	if (asks)
		request_remotes(qp);
	return asks;
}

bool req_run(struct softnic_work *work)
{
	struct qp *qp = (struct qp *)((char *)work - offsetof(struct qp, work));
	bool more = false;

	pthread_mutex_lock(&qp->lock);
	if (far_is_connected(qp)) {
		far_run(qp);
	} else if (can_step(qp)) {
		step_wqe(qp);
		more = can_step(qp);
	}
	return unlock_and_request(qp) || more;
}

/* Pages of the peer do not come. The engine must find out when they do: it can be replaced. */
static bool is_stuck(const struct qp *qp)
{
	const struct shm_peer *peer = qp->remote.peer;

	return peer && load_acquire(&peer->is_stuck);
}

/*
 * If another thread holds qp->lock, it may have read the old tail already. So the engine checks
 * the tail again. A thread that copies without the lock reads the tail afterwards.
 */
void req_execute_small(struct qp *qp, uint64_t bytes)
{
	bool left = true, asked = true;

	while (asked && bytes <= SMALL_BYTES_MAX && !pthread_mutex_trylock(&qp->lock)) {
		uint32_t begin = qp->sq.done;
		uint64_t room = SMALL_BYTES_MAX;

		if (far_is_connected(qp)) {
			far_run(qp);
			left = qp->far->posted != load_ordered(&qp->sq.tail);
			pthread_mutex_unlock(&qp->lock);
			break;
		}
		while (can_step(qp) && !is_stuck(qp) && qp->sq.done - begin < qp->sq.size &&
		       sq_current(&qp->sq)->length <= room) {
			room -= sq_current(&qp->sq)->length;
			step_wqe(qp);
		}
		left = !sq_is_empty(&qp->sq) && !qp->sq.waiting && !qp->sq.is_copying;
		asked = unlock_and_request(qp);
		left |= asked;
	}
	if (left)
		softnic_loop_kick_work(&qp->work);
}

/* For UD, keep the deadline: an answer of one member must not extend the wait for the others. */
void req_resume(struct qp *qp)
{
	qp->sq.waiting = false;
	if (!qp_is_datagram(qp))
		qp->sq.give_up_ns = 0;
	softnic_loop_kick_work(&qp->work);
}

void req_timer_expired(struct softnic_timer *t)
{
	struct qp *qp = (struct qp *)((char *)t - offsetof(struct qp, timer));

	request_remotes(qp);
	softnic_loop_kick_work(&qp->work);
}
