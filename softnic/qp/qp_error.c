// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Errors of queue pairs, and waiting until a peer has left our memory.
 *
 * Before we revoke a resource of a peer, we mark the resource in shared memory. If the peer's guard
 * is then even, or changes later, the peer has seen the mark or will see it. Otherwise the peer
 * is stopped or stuck. We cut the peer off: a copy that the CPU goes on with later stores nothing,
 * and one that has read reports an error: see fenced_copy.h. Copies that the kernel makes know of
 * the cut only before they begin. A thread that runs needs no half second to see it. Then we
 * disconnect, and go on.
 */
#include <unistd.h>

#include "unreliable.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "qp.h"
#include "softnic/rq/recv.h"
#include "req.h"
#include "sq.h"
#include "softnic/shm/server.h"
#include "softnic/rq/srq.h"

#define WAIT_NS 1500000000ull
#define CUT_NS 500000000ull
#define LOOK_AGAIN_NS 1000000ull

/* Cuts a process off at all our queue pairs, since all of them use its connection. */
static void cut_off(uint32_t slot)
{
	struct qp *qp = NULL;

	while ((qp = nic_next_qp(qp))) {
		pthread_mutex_lock(&qp->lock);
		guard_cut(&qp->segment.guards, slot);
		pthread_mutex_unlock(&qp->lock);
	}
}

/* Return: whether the walk's next peer is to be cut off. A peer that is cut off is disconnected. */
static bool is_overdue(struct qp *qp, struct copy_guard_walk *walk, uint32_t user)
{
	struct shm_client *client = server_find_client(qp, user);
	uint64_t now_ns = softnic_loop_now_ns();

	if (!client) {
		guard_walk_past(walk);
		return false;
	}
	if (walk->cut_ns && now_ns - walk->cut_ns > CUT_NS)
		server_disconnect(client);
	return !walk->cut_ns && now_ns - walk->since_ns > WAIT_NS;
}

/* Have all peers left since the walk began? */
static bool users_have_left(struct qp *qp, struct copy_guard_walk *walk)
{
	uint32_t user = 0;
	bool left, is_late;

	pthread_mutex_lock(&qp->lock); /* a reset may exchange the segment */
	left = guard_walk_on(walk, &qp->segment.guards);
	if (!left)
		user = load_acquire(&qp->segment.guards.at[walk->at].user);
	pthread_mutex_unlock(&qp->lock);
	if (left)
		return true;
	pthread_mutex_lock(&nic.lock);
	is_late = is_overdue(qp, walk, user);
	pthread_mutex_unlock(&nic.lock);
	if (is_late) {
		cut_off(user >> SOFTNIC_QP_INDEX_BITS);
		walk->cut_ns = softnic_loop_now_ns();
	}
	return false;
}

static bool is_copying_with(struct qp *qp, uint32_t lkey)
{
	bool is_copying;

	pthread_mutex_lock(&qp->lock);
	is_copying = qp->sq.is_copying && (!lkey || sq_uses_key(&qp->sq, lkey));
	pthread_mutex_unlock(&qp->lock);
	return is_copying;
}

void qp_wait_for_copies(struct qp *qp, uint32_t lkey)
{
	struct copy_guard_walk walk = { .since_ns = softnic_loop_now_ns() };
	useconds_t us = 50;

	/* Our other copies run under qp->lock. */
	for (; is_copying_with(qp, lkey); us = us < 1000 ? us * 2 : us)
		usleep(us);
	while (!users_have_left(qp, &walk))
		usleep(50);
	/* A poll may be emptying a tray. */
	pthread_mutex_lock(&qp->rq->lock);
	pthread_mutex_unlock(&qp->rq->lock);
}

/* On the engine thread. A peer's last copy may fill a receive until the peer has left. */
static void recheck_guards(struct softnic_timer *t)
{
	struct qp *qp = (struct qp *)((char *)t - offsetof(struct qp, quiet));
	bool left = users_have_left(qp, &qp->leaving);

	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_ERR && !load_relaxed(&qp->arrivals.flushing)) {
		if (left)
			recv_flush(qp);
		else
			softnic_timer_arm(t, LOOK_AGAIN_NS, recheck_guards);
	}
	pthread_mutex_unlock(&qp->lock);
}

void qp_error(struct qp *qp)
{
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	qp_set_state(qp, IBV_QPS_ERR);
	store_ordered(&qp->segment.qp->state, SHARED_QP_ERROR);
	far_fail(qp);
	req_flush(qp);
	qp->leaving = (struct copy_guard_walk){ .since_ns = softnic_loop_now_ns() };
	if (guard_walk_on(&qp->leaving, &qp->segment.guards))
		recv_flush(qp);
	else
		softnic_timer_arm(&qp->quiet, LOOK_AGAIN_NS, recheck_guards);
}

void qp_error_event(struct qp *qp, enum ibv_event_type event)
{
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	qp_error(qp);
	if (!qp_is_srq_end(qp))
		async_raise(qp->ibv.context, &qp->events, event);
}

/* May a peer cause this event? Programs read the union member that the type selects. */
static bool is_complaint(uint64_t event)
{
	return event == IBV_EVENT_QP_ACCESS_ERR || event == IBV_EVENT_QP_REQ_ERR ||
	       event == IBV_EVENT_QP_FATAL;
}

void qp_peer_reported_error(struct qp *qp, uint64_t value)
{
	pthread_mutex_lock(&qp->lock);
	if (!value)
		qp_error(qp);
	else
		qp_error_event(qp, is_complaint(value - 1) ? value - 1 : IBV_EVENT_QP_FATAL);
	pthread_mutex_unlock(&qp->lock);
}

/* The first WR, if any, carries the reason. */
void qp_peer_died(struct qp *qp)
{
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	req_fail(qp, IBV_WC_RETRY_EXC_ERR);
	qp_error(qp);
	async_raise(qp->ibv.context, &qp->events, IBV_EVENT_QP_FATAL);
}

static void fail_for_dead_peer(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_peer_died(qp);
	pthread_mutex_unlock(&qp->lock);
}

void qp_client_ended(struct shm_client *client, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < NIC_QPS; i++) {
		struct qp *qp = nic.qps[i];

		if (!qp)
			continue;
		srq_check_limit(qp); /* the client may have died before reporting the limit */
		if (!qp_is_reliable(qp)) {
			unreliable_client_ended(qp, client, slot);
			continue;
		}
		if (qp->client != client)
			continue;
		qp->client = NULL;
		fail_for_dead_peer(qp);
		/* In any state: the client may have cleared the armed flag before our flush. */
		cq_ring_for_dead_peer(to_cq(qp->ibv.recv_cq), qp->ibv.qp_num);
	}
}

static bool was_requested_again(struct qp *qp)
{
	bool asked;

	pthread_mutex_lock(&qp->lock);
	asked = remote_qp_request_again(qp);
	pthread_mutex_unlock(&qp->lock);
	return asked;
}

/* The peer has an SRQ. A message under way is lost; a later one finds nobody. */
static void srq_peer_ended(struct qp *qp, struct shm_peer *peer)
{
	pthread_mutex_lock(&qp->lock);
	if (qp->to && qp->to != &qp->remote && qp->to->peer == peer && sq_has_begun(qp))
		qp_peer_died(qp);
	if (remote_qp_drop_listed(qp, peer))
		req_resume(qp);
	pthread_mutex_unlock(&qp->lock);
}

/* A remote queue pair destroyed before its process ended causes no error. */
void qp_peer_ended(struct shm_peer *peer)
{
	uint32_t i;

	for (i = 0; i < NIC_QPS; i++) {
		struct qp *qp = nic.qps[i];

		if (qp && !qp_is_reliable(qp))
			unreliable_peer_ended(qp, peer);
		if (qp && qp_names_srqs(qp))
			srq_peer_ended(qp, peer);
		if (!qp || qp->remote.peer != peer)
			continue;
		if (qp->remote.shared && load_acquire(&qp->remote.shared->state) == SHARED_QP_GONE)
			continue;
		if (!was_requested_again(qp))
			fail_for_dead_peer(qp);
	}
}
