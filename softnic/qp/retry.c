// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * After an RNR the requester waits for the receiver's RNR timer, up to rnr_retry times. If the
 * remote queue pair does not answer, the requester retries until a transport would give up.
 */
#include "deliver.h"
#include "softnic/roce/rnr_timer.h"
#include "softnic/verbs/nic.h"
#include "req.h"
#include "retry.h"

enum {
	ASK_AGAIN_NS = 5000000, /* request the remote queue pair again */
	ATOMIC_AGAIN_NS = 50000,
	BACKOFF = 16, /* the delay grows at most by this factor */
};

/*
 * A loaded host answers slower than a network, even more so when 1,000 queue pairs connect at
 * once. Hardware, too, may take four times its timeout.
 */
#define GIVE_UP_NS_MIN 2000000000ull
/*
 * A dropped datagram is never sent again. A real NIC would have received it even on a busy
 * host, so wait longer for an answer.
 */
#define LOST_NS 10000000000ull
/* Many initiators that add to one counter wait long for their turn. */
#define BUSY_NS_MIN 5000000000ull

void retry_after(struct qp *qp, uint64_t ns)
{
	qp->sq.waiting = true;
	softnic_timer_arm(&qp->timer, ns, req_timer_expired);
}

static uint8_t rnr_timer_of(const struct qp *qp)
{
	return qp->remote.shared ? load_relaxed(&qp->remote.shared->min_rnr_timer) :
				   qp->gate_sender.rnr_timer;
}

void retry_receiver_not_ready(struct qp *qp)
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
	if (qp->attr.rnr_retry != ROCE_RNR_FOR_EVER)
		sq->rnr_left--;
	retry_after(qp, roce_rnr_ns(rnr_timer_of(qp)));
}

/* The timeout for the first attempt and for each retry; timeout 0 means no limit. */
static uint64_t give_up_after_ns(const struct qp *qp, uint64_t ns_min)
{
	uint64_t ns = (4096ull << qp->attr.timeout) * (qp->attr.retry_cnt + 1);

	if (!qp_is_reliable(qp))
		return LOST_NS;
	if (!qp->attr.timeout)
		return UINT64_MAX / 2;
	return ns < ns_min ? ns_min : ns;
}

/*
 * The first message to an SRQ, or to a remote queue pair of datagrams, requests it at once. Then
 * each delay is longer: many requesters that ask often would delay the answers for each other.
 */
static void schedule_retry(struct qp *qp, uint64_t ns_min, uint64_t again_ns)
{
	struct send_queue *sq = &qp->sq;
	uint64_t now_ns = softnic_loop_now_ns();

	if (!sq->give_up_ns) {
		sq->give_up_ns = now_ns + give_up_after_ns(qp, ns_min);
		sq->again_ns = again_ns;
		sq->asks = sq->waiting = !qp_is_reliable(qp) || qp->to != &qp->remote;
		if (sq->asks)
			return;
	}
	if (now_ns >= sq->give_up_ns && qp_is_reliable(qp)) {
		req_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (now_ns >= sq->give_up_ns) {
		deliver_give_up(qp);
		req_complete(qp, IBV_WC_SUCCESS);
		return;
	}
	retry_after(qp, sq->again_ns);
	if (sq->again_ns < BACKOFF * again_ns)
		sq->again_ns *= 2;
}

void retry_nobody_answers(struct qp *qp)
{
	schedule_retry(qp, GIVE_UP_NS_MIN, ASK_AGAIN_NS);
}

void retry_atomic_busy(struct qp *qp)
{
	schedule_retry(qp, BUSY_NS_MIN, ATOMIC_AGAIN_NS);
}
