/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poller takes in all arrivals. The poller copies each segment into the connection's ring,
 * unless written there by the device, and posts the buffer again. So no application holds a
 * buffer, and the SRQ never runs dry because of a slow application. Peers send only within their
 * credit, so the ring always has room. The poller also handles connection manager events.
 *
 * First-level messages go first: the poller checks for them before the rest, and again after
 * each segment's worth of low-level bytes.
 *
 * A buffer is free right after the copy, so no separate refill thread is needed. A batch of
 * buffers is posted with one call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"
#include "lib/base/yield.h"

#define EVENTS_MAX 16
#define CHECK_NS 1000000 /* interval of other checks while busy */

static bool is_written(const struct ibv_wc *wc)
{
	return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
}

/* Accepts a segment written by the device, which must not cross the ring's end. */
static int take_written_segment(struct weir_mux_vconn *conn, uint32_t bytes)
{
	if (bytes > weir_mux_ring_straight(&conn->arriving, conn->arriving.position))
		return -EPROTO;
	conn->arriving.position += bytes;
	weir_counter_add(&conn->mux->counts.bytes_written, bytes);
	return 0;
}

/* Accepts a segment of a connection on the QP. */
static int take_segment(const struct weir_mux_qp *qp, const struct ibv_wc *wc, const void *data)
{
	struct weir_mux_local *mux = qp->remote->mux;
	struct weir_mux_vconn *conn = weir_mux_vconn_find(mux, ntohl(wc->imm_data));
	uint64_t end;

	if (!conn || conn->remote != qp->remote || conn->class != qp->class ||
	    !weir_mux_vconn_is_open(conn))
		return -EPROTO;
	end = conn->received + wc->byte_len;
	if (end - __atomic_load_n(&conn->credited, __ATOMIC_ACQUIRE) > conn->arriving.size)
		return -EPROTO; /* beyond the credit */
	if (!is_written(wc))
		weir_mux_ring_write(&conn->arriving, data, wc->byte_len);
	else if (take_written_segment(conn, wc->byte_len))
		return -EPROTO;
	__atomic_store_n(&conn->received, end, __ATOMIC_RELEASE);
	/* Count first: an application that reads the bytes finds them counted. */
	weir_counter_add(&mux->counts.bytes_received, wc->byte_len);
	weir_counter_add(&weir_mux_vconn_counters(conn)->bytes_received, wc->byte_len);
	weir_mux_ring_publish_tail(&conn->arriving);
	weir_mux_ring_wake_at(conn->arriving.ring, &conn->fd, conn->arriving.position);
	if (conn->is_closed && !conn->is_detached) {
		weir_mux_vconn_queue(conn); /* counts as read */
		mux->has_queued = true;
	}
	return 0;
}

/* A sending peer has received WELCOME. */
static bool qp_is_usable(struct weir_mux_qp *qp)
{
	weir_mux_qp_confirm(qp);
	return qp->state == WEIR_MUX_QP_UP;
}

static void handle_completion(struct weir_mux_local *mux, struct weir_mux_srq *srq,
			      const struct ibv_wc *wc)
{
	const void *data = weir_mux_srq_data(srq, wc);
	struct weir_mux_qp *qp;
	int rc = 0;

	/* Ignore completions of a destroyed QP. */
	qp = wc->status == IBV_WC_SUCCESS ? weir_mux_qp_find(mux, wc->qp_num) : NULL;
	if (!qp || qp->state == WEIR_MUX_QP_FAILED)
		return;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		weir_mux_qp_handshake_input(qp, data, wc->byte_len);
	else if (!qp_is_usable(qp))
		rc = -EKEYREJECTED;
	else if (wc->imm_data)
		rc = take_segment(qp, wc, data);
	else if (is_written(wc))
		rc = -EPROTO;
	else
		rc = weir_mux_control_input(qp, data, wc->byte_len);
	if (rc)
		weir_mux_qp_fail(qp, rc);
}

static void handle_batch(struct weir_mux_local *mux, struct weir_mux_srq *srq,
			 const struct ibv_wc *wcs, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		handle_completion(mux, srq, &wcs[i]);
		weir_mux_srq_free(srq, &wcs[i]);
	}
}

/* Handles first-level messages arrived meanwhile. */
static void handle_first_level(struct weir_mux_local *mux)
{
	struct weir_mux_srq *first = &mux->srqs[0];
	struct ibv_wc wcs[WEIR_MUX_SRQ_BATCH];
	int n = weir_mux_srq_poll(first, wcs);

	handle_batch(mux, first, wcs, n);
	weir_mux_srq_post(first);
}

static void handle_low_levels(struct weir_mux_local *mux, const struct ibv_wc *wcs, int n)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < n; i++) {
		handle_batch(mux, &mux->srqs[1], &wcs[i], 1);
		bytes += wcs[i].byte_len;
		if (bytes < WIRE_MUX_SEGMENT_MAX)
			continue;
		handle_first_level(mux);
		bytes = 0;
	}
}

/* Return: whether queued connections needed work. */
static bool combine_if_queued(struct weir_mux_local *mux)
{
	if (!mux->has_queued)
		return false;
	mux->has_queued = weir_mux_local_combine(mux);
	return true;
}

static bool take_arrivals(struct weir_mux_local *mux)
{
	struct ibv_wc first[WEIR_MUX_SRQ_BATCH], low[WEIR_MUX_SRQ_BATCH];
	int nr_first = weir_mux_srq_poll(&mux->srqs[0], first);
	int nr_low = weir_mux_srq_poll(&mux->srqs[1], low);

	if (!nr_first && !nr_low)
		return combine_if_queued(mux);
	pthread_mutex_lock(&mux->lock);
	handle_batch(mux, &mux->srqs[0], first, nr_first);
	weir_mux_srq_post(&mux->srqs[0]);
	handle_low_levels(mux, low, nr_low);
	pthread_mutex_unlock(&mux->lock);
	weir_mux_srq_post(&mux->srqs[1]);
	combine_if_queued(mux);
	return true;
}

/* The channel may be gone, with its QP, since the event was raised. */
static bool channel_is_there(const struct weir_mux_local *mux, const struct rdma_event_channel *cm)
{
	const struct weir_list *at;

	for (at = mux->qps.next; at != &mux->qps; at = at->next)
		if (weir_list_entry(at, struct weir_mux_qp, link)->cm == cm)
			return true;
	return cm == mux->listener.cm;
}

/* Only the poller waits for the QP's proof. */
static bool awaits_proof(const struct weir_mux_qp *qp)
{
	return !weir_list_is_empty(&qp->newcomer.link) ||
	       (qp->is_orphan && qp->state == WEIR_MUX_QP_PROVING);
}

/* Fails unproven QPs whose deadline has passed. Return: the next deadline. */
static uint64_t expire_unproven_qps(struct weir_mux_local *mux, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	struct weir_list *at;

	for (at = mux->qps.next; at != &mux->qps; at = at->next) {
		struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		if (!awaits_proof(qp))
			continue;
		if (qp->deadline_ns <= now_ns)
			weir_mux_qp_fail(qp, -ETIMEDOUT);
		else if (qp->deadline_ns < next_ns)
			next_ns = qp->deadline_ns;
	}
	return next_ns;
}

/* Handles all events but arrivals; may sleep for @timeout_ms. Return: whether the mux has ended. */
static bool poll_all_else(struct weir_mux_local *mux, int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int i, n = epoll_wait(mux->epoll, events, EVENTS_MAX, timeout_ms);
	uint64_t now_ns;
	bool over;

	pthread_mutex_lock(&mux->lock);
	for (i = 0; i < n; i++) {
		void *what = events[i].data.ptr;

		if (what == &mux->wakeup_fd)
			weir_mux_fd_drain(mux->wakeup_fd);
		else if (what == &mux->completions)
			weir_mux_srq_take_event(mux->completions);
		else if (channel_is_there(mux, what))
			weir_mux_remote_accept_events(mux, what);
	}
	/*
	 * After a sleep, first take in what arrived in time: sleep_until_event() checks the
	 * deadlines afterwards.
	 */
	if (!timeout_ms) {
		now_ns = weir_now_ns();
		expire_unproven_qps(mux, now_ns);
		weir_mux_idle_expire(mux, now_ns);
	}
	weir_mux_remotes_reap(mux);
	over = mux->is_stopping && weir_list_is_empty(&mux->remotes);
	pthread_mutex_unlock(&mux->lock);
	return over;
}

/* Sleeps until an event, unless something arrived before the CQ was armed. */
static bool sleep_until_event(struct weir_mux_local *mux)
{
	uint64_t now_ns, due_ns, qps_due_ns;

	weir_mux_srq_arm(&mux->srqs[0]);
	weir_mux_srq_arm(&mux->srqs[1]);
	if (take_arrivals(mux))
		return false;
	weir_counter_add(&mux->counts.sleeps, 1);
	pthread_mutex_lock(&mux->lock);
	now_ns = weir_now_ns();
	due_ns = weir_mux_idle_expire(mux, now_ns);
	qps_due_ns = expire_unproven_qps(mux, now_ns);
	pthread_mutex_unlock(&mux->lock);
	return poll_all_else(mux, weir_poll_ms(due_ns < qps_due_ns ? due_ns : qps_due_ns));
}

void *weir_mux_poller_run(void *arg)
{
	struct weir_mux_local *mux = arg;
	uint64_t worked_ns = weir_now_ns(), checked_ns = worked_ns, now_ns;
	bool over = false;

	while (!over) {
		bool any = take_arrivals(mux);

		weir_yield(&now_ns);
		if (any)
			worked_ns = now_ns;
		if (now_ns - worked_ns > mux->options.idle_poll_ns)
			over = sleep_until_event(mux);
		else if (now_ns - checked_ns > CHECK_NS)
			over = poll_all_else(mux, 0);
		else
			continue;
		checked_ns = now_ns;
	}
	return NULL;
}
