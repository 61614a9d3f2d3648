/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poller: it takes in what arrives for all, copies it into the ring of its connection, if the
 * device has not written it there, and posts the buffer again; so that a buffer is never held by an
 * application, and the shared receive queue runs dry for nobody's sake. What has not been granted
 * nobody sends, so there is always room in the ring. It also listens to the connection manager.
 *
 * What is of the first level goes first here, too: it is looked for before anything else is dealt
 * with, and again whenever as much as a segment has been.
 *
 * A buffer is free as soon as it has been copied from: there is no refill to leave to a thread
 * of its own. Those of a batch are posted again with one call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"
#include "lib/base/yield.h"

#define EVENTS_MAX 16
#define LOOK_NS 1000000 /* busy, it asks for all else this often */

static bool is_written(const struct ibv_wc *wc)
{
	return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
}

/* A piece of which the device has written all that it says: not beyond the ring's end. */
static int piece_written(struct weir_circuit *conn, uint32_t bytes)
{
	if (bytes > weir_ring_straight(&conn->arriving, conn->arriving.position))
		return -EPROTO;
	conn->arriving.position += bytes;
	weir_count(&conn->hub->counts.bytes_written, bytes);
	return 0;
}

/* A piece of a connection's stream: of one that goes by this lane. */
static int piece_arrived(const struct weir_lane *lane, const struct ibv_wc *wc, const void *data)
{
	struct weir_hub *hub = lane->node->hub;
	struct weir_circuit *conn = weir_circuit_find(hub, ntohl(wc->imm_data));
	uint64_t end;

	if (!conn || conn->node != lane->node || conn->class != lane->class || !conn->is_open ||
	    conn->is_finished)
		return -EPROTO;
	end = conn->received + wc->byte_len;
	if (end - __atomic_load_n(&conn->told, __ATOMIC_ACQUIRE) > conn->arriving.size)
		return -EPROTO; /* never granted */
	if (!is_written(wc))
		weir_ring_write(&conn->arriving, data, wc->byte_len);
	else if (piece_written(conn, wc->byte_len))
		return -EPROTO;
	__atomic_store_n(&conn->received, end, __ATOMIC_RELEASE);
	/* First: who has read it finds it counted. */
	weir_count(&hub->counts.bytes_received, wc->byte_len);
	weir_count(&conn->owner->counts.bytes_received, wc->byte_len);
	weir_ring_publish_tail(&conn->arriving);
	weir_ring_tell_at(conn->arriving.ring, &conn->fd, conn->arriving.position);
	if (conn->is_closed && !conn->is_detached) {
		weir_circuit_leave(conn); /* it counts as read */
		hub->has_left = true;
	}
	return 0;
}

/* Who speaks has been welcomed, and knows. */
static bool may_speak(struct weir_lane *lane)
{
	weir_lane_heard(lane);
	return lane->state == WEIR_LANE_UP;
}

static void arrived(struct weir_hub *hub, struct weir_intake *intake, const struct ibv_wc *wc)
{
	const void *data = weir_intake_data(intake, wc);
	struct weir_lane *lane;
	int rc = 0;

	/* Of a QP that is gone already, nothing counts. */
	lane = wc->status == IBV_WC_SUCCESS ? weir_lane_find(hub, wc->qp_num) : NULL;
	if (!lane || lane->state == WEIR_LANE_FAILED)
		return;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		weir_lane_input(lane, data, wc->byte_len);
	else if (!may_speak(lane))
		rc = -EKEYREJECTED;
	else if (wc->imm_data)
		rc = piece_arrived(lane, wc, data);
	else if (is_written(wc))
		rc = -EPROTO;
	else
		rc = weir_control_input(lane, data, wc->byte_len);
	if (rc)
		weir_lane_fail(lane, rc);
}

static void deal(struct weir_hub *hub, struct weir_intake *intake, const struct ibv_wc *wcs, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		arrived(hub, intake, &wcs[i]);
		weir_intake_free(intake, &wcs[i]);
	}
}

/* What has come to the first level meanwhile. */
static void deal_first(struct weir_hub *hub)
{
	struct weir_intake *first = &hub->intakes[0];
	struct ibv_wc wcs[WEIR_INTAKE_BATCH];
	int n = weir_intake_poll(first, wcs);

	deal(hub, first, wcs, n);
	weir_intake_post(first);
}

static void deal_low(struct weir_hub *hub, const struct ibv_wc *wcs, int n)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < n; i++) {
		deal(hub, &hub->intakes[1], &wcs[i], 1);
		bytes += wcs[i].byte_len;
		if (bytes < WIRE_PIECE_MAX)
			continue;
		deal_first(hub);
		bytes = 0;
	}
}

/* Return: whether there was anything to do for who has heard something. */
static bool serve(struct weir_hub *hub)
{
	if (!hub->has_left)
		return false;
	hub->has_left = weir_hub_serve(hub);
	return true;
}

static bool take_arrivals(struct weir_hub *hub)
{
	struct ibv_wc first[WEIR_INTAKE_BATCH], low[WEIR_INTAKE_BATCH];
	int nr_first = weir_intake_poll(&hub->intakes[0], first);
	int nr_low = weir_intake_poll(&hub->intakes[1], low);

	if (!nr_first && !nr_low)
		return serve(hub);
	pthread_mutex_lock(&hub->lock);
	deal(hub, &hub->intakes[0], first, nr_first);
	weir_intake_post(&hub->intakes[0]);
	deal_low(hub, low, nr_low);
	pthread_mutex_unlock(&hub->lock);
	weir_intake_post(&hub->intakes[1]);
	serve(hub);
	return true;
}

/* The channel of an id may be gone, with its lane, since the event was raised. */
static bool channel_is_there(const struct weir_hub *hub, const struct rdma_event_channel *cm)
{
	const struct weir_list *at;

	for (at = hub->lanes.next; at != &hub->lanes; at = at->next)
		if (weir_list_entry(at, struct weir_lane, link)->cm == cm)
			return true;
	return cm == hub->cm;
}

/* Nobody but the poller waits for its proof. */
static bool is_awaited(const struct weir_lane *lane)
{
	return lane->is_counted || (lane->is_orphan && lane->state == WEIR_LANE_PROVING);
}

/* Ends those that took too long. Return: when the next has. */
static uint64_t lanes_look(struct weir_hub *hub, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	struct weir_list *at;

	for (at = hub->lanes.next; at != &hub->lanes; at = at->next) {
		struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		if (!is_awaited(lane))
			continue;
		if (lane->deadline_ns <= now_ns)
			weir_lane_fail(lane, -ETIMEDOUT);
		else if (lane->deadline_ns < next_ns)
			next_ns = lane->deadline_ns;
	}
	return next_ns;
}

/* All but what arrives. It may sleep for @timeout_ms. Return: whether the mux is at its end. */
static bool look_around(struct weir_hub *hub, int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int i, n = epoll_wait(hub->epoll, events, EVENTS_MAX, timeout_ms);
	uint64_t now_ns;
	bool over;

	pthread_mutex_lock(&hub->lock);
	for (i = 0; i < n; i++) {
		void *what = events[i].data.ptr;

		if (what == &hub->bell)
			weir_fd_take(hub->bell);
		else if (what == &hub->completions)
			weir_intake_take_event(hub->completions);
		else if (channel_is_there(hub, what))
			weir_hub_cm_events(hub, what);
	}
	/*
	 * Who has slept, or was stopped, takes in first what came in time: nap() looks after that.
	 */
	if (!timeout_ms) {
		now_ns = weir_now_ns();
		lanes_look(hub, now_ns);
		weir_leaves_look(hub, now_ns);
	}
	weir_nodes_reap(hub);
	over = hub->is_stopping && weir_list_is_empty(&hub->nodes);
	pthread_mutex_unlock(&hub->lock);
	return over;
}

/* Sleeps until something comes: unless it has come before the CQ was armed. */
static bool nap(struct weir_hub *hub)
{
	uint64_t now_ns, due_ns, lanes_ns;

	weir_intake_arm(&hub->intakes[0]);
	weir_intake_arm(&hub->intakes[1]);
	if (take_arrivals(hub))
		return false;
	weir_count(&hub->counts.sleeps, 1);
	pthread_mutex_lock(&hub->lock);
	now_ns = weir_now_ns();
	due_ns = weir_leaves_look(hub, now_ns);
	lanes_ns = lanes_look(hub, now_ns);
	pthread_mutex_unlock(&hub->lock);
	return look_around(hub, weir_poll_ms(due_ns < lanes_ns ? due_ns : lanes_ns));
}

void *weir_hub_poller(void *arg)
{
	struct weir_hub *hub = arg;
	uint64_t worked_ns = weir_now_ns(), looked_ns = worked_ns, now_ns;
	bool over = false;

	while (!over) {
		bool any = take_arrivals(hub);

		weir_yield(&now_ns);
		if (any)
			worked_ns = now_ns;
		if (now_ns - worked_ns > hub->options.quiet_ns)
			over = nap(hub);
		else if (now_ns - looked_ns > LOOK_NS)
			over = look_around(hub, 0);
		else
			continue;
		looked_ns = now_ns;
	}
	return NULL;
}
