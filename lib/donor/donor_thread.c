/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One thread, one poll(2): connection manager, completions of all connections, timers and wake-ups.
 * While connections are awake, the thread polls their CQs instead, and calls poll(2) only now and
 * then: a client that sends messages in sequence finds the thread awake. Dead connections are
 * reaped at the end of the turn, never while an event of theirs is handled.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/donor/keepalive.h"
#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/conn/event_channel.h"
#include "lib/donor/client.h"
#include "lib/donor/messages.h"
#include "lib/base/thread.h"
#include "lib/base/yield.h"

#define EVENTS_MAX 64 /* completions in one turn: busy clients must not starve the rest */
#define EVENTS_NS 20000 /* awake, it calls poll(2) this often */
#define CLOSE_NS WEIR_NS_PER_S /* for the last messages to clients */

struct donor_timer {
	struct weir_list link;
	uint64_t deadline_ns;
	void (*fn)(void *arg);
	void *arg;
};

static struct weir_donor_conn *conn_of_link(struct weir_list *link)
{
	return weir_list_entry(link, struct weir_donor_conn, link);
}

static void handle_cm_events(struct weir_donor *donor)
{
	struct weir_cm_event event;

	while (weir_event_channel_get(donor->listener.cm, &event) > 0)
		if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			weir_donor_conn_request(donor, &event);
		else if (event.type != RDMA_CM_EVENT_ESTABLISHED && event.context)
			weir_donor_conn_disconnected(event.context);
}

static void handle_cq_events(struct weir_donor *donor)
{
	const uint64_t now_ns = weir_now_ns();
	struct ibv_cq *cq;
	void *conn;
	int i;

	for (i = 0; i < EVENTS_MAX && !ibv_get_cq_event(donor->completions, &cq, &conn); i++)
		weir_donor_conn_handle_event(conn, now_ns);
}

/* Runs due timers, without the lock. Timers set by @fn wait for the next turn. */
static void run_timers(struct weir_donor *donor)
{
	const uint64_t now_ns = weir_now_ns();
	struct donor_timer *donor_timer;

	for (;;) {
		pthread_mutex_lock(&donor->lock);
		donor_timer = weir_list_is_empty(&donor->timers) ?
				      NULL :
				      weir_list_entry(donor->timers.next, struct donor_timer, link);
		if (donor_timer && donor_timer->deadline_ns < now_ns)
			weir_list_del(&donor_timer->link);
		else
			donor_timer = NULL;
		pthread_mutex_unlock(&donor->lock);
		if (!donor_timer)
			return;
		donor_timer->fn(donor_timer->arg);
		free(donor_timer);
	}
}

/* Polls each awake connection; some fall asleep, and a message may kill others. */
static void poll_awake_conns(struct weir_donor *donor, uint64_t now_ns)
{
	struct weir_list *link = donor->awake.next;

	while (link != &donor->awake) {
		struct weir_donor_conn *conn =
			weir_list_entry(link, struct weir_donor_conn, awake_link);

		link = link->next;
		weir_donor_conn_poll(conn, now_ns);
	}
}

static void expire_conns(struct weir_donor *donor)
{
	const uint64_t now_ns = weir_now_ns();
	struct weir_list *link;

	for (link = donor->conns.next; link != &donor->conns; link = link->next) {
		weir_donor_conn_expire(conn_of_link(link));
		weir_donor_keepalive_check(conn_of_link(link), now_ns);
	}
}

/* Reaping a connection may kill others of the same client, anywhere in the list. */
static void reap_conns(struct weir_donor *donor)
{
	struct weir_list *link = donor->conns.next;

	donor->reap_due = false;
	while (link != &donor->conns) {
		if (!conn_of_link(link)->is_dead) {
			link = link->next;
			continue;
		}
		weir_donor_conn_reap(conn_of_link(link));
		link = donor->conns.next;
	}
}

static uint64_t conns_due_ns(const struct weir_donor *donor)
{
	uint64_t due_ns = UINT64_MAX, ns;
	struct weir_list *link;

	for (link = donor->conns.next; link != &donor->conns; link = link->next) {
		const struct weir_donor_conn *conn = conn_of_link(link);

		if (conn->core.state != WEIR_LINK_UP)
			ns = conn->deadline_ns;
		else
			ns = weir_donor_keepalive_due_ns(conn);
		due_ns = ns < due_ns ? ns : due_ns;
	}
	return due_ns;
}

/* Return: the longest sleep. */
static int timeout_ms(struct weir_donor *donor)
{
	uint64_t deadline_ns = conns_due_ns(donor);
	struct weir_list *link;

	pthread_mutex_lock(&donor->lock);
	link = donor->timers.next;
	if (link != &donor->timers &&
	    weir_list_entry(link, struct donor_timer, link)->deadline_ns < deadline_ns)
		deadline_ns = weir_list_entry(link, struct donor_timer, link)->deadline_ns;
	pthread_mutex_unlock(&donor->lock);
	return weir_poll_ms(deadline_ns);
}

/* Takes all events but those of polled CQs. Sleeps only if no connection is awake. */
static void take_events(struct weir_donor *donor)
{
	struct pollfd fds[] = {
		{ .fd = donor->listener.cm->fd, .events = POLLIN },
		{ .fd = donor->completions->fd, .events = POLLIN },
		{ .fd = donor->wake_fd, .events = POLLIN },
	};
	bool is_awake = !weir_list_is_empty(&donor->awake);
	uint64_t count;

	if (poll(fds, 3, is_awake ? 0 : timeout_ms(donor)) > 0) {
		if (fds[2].revents && read(donor->wake_fd, &count, sizeof(count)) < 0)
			return; /* nothing to read: a spurious wake-up */
		if (fds[1].revents)
			handle_cq_events(donor);
		if (fds[0].revents)
			handle_cm_events(donor);
	}
	weir_donor_control_progress(donor);
	run_timers(donor);
	expire_conns(donor);
}

static uint64_t yield_cpu(struct weir_donor *donor)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

	if (stall_ns)
		weir_idle_time_stalled(&donor->idle_time, stall_ns, now_ns);
	return now_ns;
}

static bool are_all_messages_sent(const struct weir_donor *donor)
{
	struct weir_list *link;

	for (link = donor->clients.next; link != &donor->clients; link = link->next)
		if (!weir_donor_messages_are_sent(weir_list_entry(link, struct weir_peer, link)))
			return false;
	return true;
}

/* Tells all clients that the donor closes. A client without credit or life has until the limit. */
static void close_sessions(struct weir_donor *donor)
{
	uint64_t now_ns = weir_now_ns(), limit_ns = now_ns + CLOSE_NS;
	struct weir_list *link;

	for (link = donor->clients.next; link != &donor->clients; link = link->next)
		weir_donor_messages_close(weir_list_entry(link, struct weir_peer, link));
	while (!are_all_messages_sent(donor) && now_ns < limit_ns) {
		for (link = donor->conns.next; link != &donor->conns; link = link->next)
			if (conn_of_link(link)->client)
				weir_donor_conn_drain(conn_of_link(link));
		reap_conns(donor);
		weir_yield(&now_ns);
	}
}

static void *run_donor_thread(void *arg)
{
	struct weir_donor *donor = arg;
	uint64_t now_ns = 0, events_ns = 0;
	struct weir_list *link;

	weir_donor_log(donor, WEIR_LOG_INFO, "listening address=%s device=%s memory=%llu",
		       donor->listener.address, ibv_get_device_name(donor->device->device),
		       (unsigned long long)donor->arena.length);
	while (!__atomic_load_n(&donor->stop, __ATOMIC_ACQUIRE)) {
		if (weir_list_is_empty(&donor->awake) || now_ns >= events_ns) {
			take_events(donor);
			now_ns = weir_now_ns();
			events_ns = now_ns + EVENTS_NS;
		}
		poll_awake_conns(donor, now_ns);
		if (donor->reap_due)
			reap_conns(donor);
		if (!weir_list_is_empty(&donor->awake))
			now_ns = yield_cpu(donor);
	}
	close_sessions(donor);
	for (link = donor->conns.next; link != &donor->conns; link = link->next)
		weir_donor_conn_kill(conn_of_link(link), "the donor ends");
	reap_conns(donor);
	return NULL;
}

int weir_donor_after(struct weir_donor *donor, unsigned int delay_ms, void (*fn)(void *arg),
		     void *arg)
{
	struct donor_timer *donor_timer = malloc(sizeof(*donor_timer));
	struct weir_list *link;

	if (!donor_timer)
		return -ENOMEM;
	*donor_timer = (struct donor_timer){
		.deadline_ns = weir_now_ns() + delay_ms * WEIR_NS_PER_MS,
		.fn = fn,
		.arg = arg,
	};
	pthread_mutex_lock(&donor->lock);
	link = donor->timers.prev;
	while (link != &donor->timers &&
	       weir_list_entry(link, struct donor_timer, link)->deadline_ns >
		       donor_timer->deadline_ns)
		link = link->prev;
	weir_list_add(link, &donor_timer->link);
	pthread_mutex_unlock(&donor->lock);
	eventfd_write(donor->wake_fd, 1);
	return 0;
}

int weir_donor_start(struct weir_donor *donor, struct weir_error *error)
{
	int rc;

	donor->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (donor->wake_fd < 0)
		return weir_error_set(error, -ENOMEM, "cannot create an eventfd: %s",
				      strerror(errno));
	rc = weir_memory_worker_start(&donor->worker, donor->wake_fd, error);
	if (!rc)
		rc = weir_thread_create(&donor->thread, "weir-donor", run_donor_thread, donor,
					error);
	if (rc)
		weir_memory_worker_stop(&donor->worker);
	return rc;
}

void weir_donor_stop(struct weir_donor *donor)
{
	struct weir_list *link;

	__atomic_store_n(&donor->stop, true, __ATOMIC_RELEASE);
	eventfd_write(donor->wake_fd, 1);
	pthread_join(donor->thread, NULL);
	weir_memory_worker_stop(&donor->worker);
	weir_donor_control_stop(donor);
	while (!weir_list_is_empty(&donor->timers)) {
		link = donor->timers.next;
		weir_list_del(link);
		free(weir_list_entry(link, struct donor_timer, link));
	}
}
