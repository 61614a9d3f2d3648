// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Each acknowledgement moves the deadline on. Arming a timer costs a lock, so a later deadline
 * leaves the timer as it is: when the timer expires too early, it is armed again.
 */
#include "softnic/qp_far/lost.h"
#include "softnic/udp/neighbor.h"
#include "softnic/qp_far/far.h"
#include "softnic/qp_far/far_timer.h"

/*
 * Before the peer has answered, it may hear one of two ports only: a softnic whose host gave port
 * 4791 to Soft-RoCE, or any other RoCE peer.
 */
static void try_other_port(struct qp *qp)
{
	struct udp_path *path = &qp->far->path;

	path->to.port = path->to.port == UDP_ROCE_PORT ?
				udp_socket_port_of_qpn(qp->attr.dest_qp_num) :
				UDP_ROCE_PORT;
}

static void expired(struct softnic_timer *timer)
{
	struct qp *qp = (struct qp *)((char *)timer - offsetof(struct qp, timer));
	uint64_t now_ns = softnic_loop_now_ns(), timeouts;

	pthread_mutex_lock(&qp->lock);
	qp->far->armed_ns = ROCE_NEVER;
	timeouts = qp->far->roce.counters.timeouts;
	if (qp_is_connected(qp)) {
		roce_qp_expired(&qp->far->roce, now_ns);
		if (qp->far->roce.counters.timeouts != timeouts && !qp->far->is_known)
			try_other_port(qp);
		far_complete(qp);
		if (qp->far->roce.is_lost)
			lost_declare(qp);
		far_run(qp);
	}
	pthread_mutex_unlock(&qp->lock);
}

void far_timer_set(struct qp *qp)
{
	struct far *f = qp->far;
	uint64_t deadline_ns = roce_qp_deadline_ns(&f->roce), now_ns;

	if (far_is_connected(qp) && agree_deadline_ns(f->agree) < deadline_ns)
		deadline_ns = agree_deadline_ns(f->agree);
	if (f->wait_until_ns < deadline_ns)
		deadline_ns = f->wait_until_ns;
	if (f->is_asking && softnic_loop_now_ns() + NEIGHBOR_WAIT_NS < deadline_ns)
		deadline_ns = softnic_loop_now_ns() + NEIGHBOR_WAIT_NS;
	if (deadline_ns >= f->armed_ns)
		return;
	now_ns = softnic_loop_now_ns();
	f->armed_ns = deadline_ns;
	softnic_timer_arm(&qp->timer, deadline_ns > now_ns ? deadline_ns - now_ns : 0, expired);
}
