// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <time.h>

#include "softnic/loop/loop.h"
#include "softnic/qp_far/far.h"
#include "softnic/qp_far/reply.h"

#define WAIT_NS 100000ull

enum { REPLIES_MIN = 3 };

static bool has_waited; /* in this process; never reset */

/* Only an acknowledgement is to be sent, which is no bad news. */
static bool owes_ack_only(const struct roce_qp *roce)
{
	return roce->resp.owes_ack && !roce->resp.nak && !roce->resp.nr_pending &&
	       !roce->req.must_ask && roce->req.current == roce->req.tail;
}

/* A program that sleeps has its engine woken anyway. */
static bool may_sleep(const struct qp *qp)
{
	return qp->ibv.send_cq->channel || qp->ibv.recv_cq->channel;
}

void reply_heard(struct qp *qp, uint64_t now_ns)
{
	struct far *f = qp->far;

	if (!f->roce.resp.owes_ack || f->roce.resp.expected == f->heard)
		return;
	f->heard = f->roce.resp.expected;
	if (f->heard_ns) /* the program has not replied to the last one */
		f->replies = 0;
	f->heard_ns = now_ns;
	f->wait_until_ns = ROCE_NEVER;
	if (f->replies == REPLIES_MIN && !may_sleep(qp))
		f->wait_until_ns = now_ns + WAIT_NS;
}

void reply_posted(struct qp *qp)
{
	struct far *f = qp->far;

	if (!f->heard_ns)
		return;
	if (softnic_loop_now_ns() - f->heard_ns > WAIT_NS)
		f->replies = 0;
	else if (f->replies < REPLIES_MIN)
		f->replies++;
	f->heard_ns = 0;
}

bool reply_is_owed(const struct qp *qp)
{
	return qp->far->wait_until_ns != ROCE_NEVER;
}

bool reply_is_awaited(struct qp *qp, uint64_t now_ns)
{
	struct far *f = qp->far;

	if (!reply_is_owed(qp)) {
		/* The acknowledgement of a message leaves before the answer, as a NIC's does. */
		if (f->roce.resp.owes_ack)
			f->roce.responds_next = false; /* the responder is next after that */
		return false;
	}
	if (owes_ack_only(&f->roce)) {
		if (now_ns < f->wait_until_ns) {
			store_relaxed(&has_waited, true);
			return true;
		}
		f->replies = 0;
	}
	f->wait_until_ns = ROCE_NEVER;
	f->roce.responds_next = true; /* the requester is next after that */
	return false;
}

/* The engine still runs, and sends what waits. */
__attribute__((destructor)) static void let_leave(void)
{
	const struct timespec t = { .tv_nsec = 2 * WAIT_NS };

	if (load_relaxed(&has_waited))
		nanosleep(&t, NULL);
}
