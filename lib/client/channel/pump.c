/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/client/session_reconnect.h"
#include "lib/client/channel/polling.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"

#define POLLS_MAX 4 /* other threads may want the lock */

static struct weir_session *session_of(struct weir_engine *engine)
{
	return container_of(engine, struct weir_session, engine);
}

/* Finishes @req and all other completed requests. */
static void finish_all(struct weir_session *session, struct weir_req *req)
{
	do
		weir_request_finish(container_of(req, struct weir_request, req));
	while ((req = weir_engine_next_done(&session->engine)));
}

static void finish_done(struct weir_session *session)
{
	struct weir_req *req = weir_engine_next_done(&session->engine);

	if (req)
		finish_all(session, req);
}

/* Ends what other threads may wait for, and lets them post to the other links. */
static void post_unlocked(struct weir_session *session, const struct weir_action *action)
{
	finish_done(session);
	weir_requests_notify(session);
	if (weir_backlog_has_ready(&session->engine.backlog))
		weir_combine_activate(&session->nic->combine, &session->active);
	weir_session_link_post_unlocked(&session->links[action->channel], action->wr);
}

static void do_action(struct weir_session *session, const struct weir_action *action)
{
	switch (action->type) {
	case WEIR_ACTION_POST:
		weir_session_link_post(&session->links[action->channel], action->wr);
		break;
	case WEIR_ACTION_DONE:
		finish_all(session, action->req);
		break;
	case WEIR_ACTION_WAKE:
		weir_pump_kick(session_of(action->engine));
		break;
	case WEIR_ACTION_FAIL:
		weir_session_link_fail(&session->links[action->channel]);
		break;
	}
}

static inline enum weir_pump_step pump_chain(struct weir_session *session, bool may_unlock)
{
	struct weir_action action;

	while (weir_engine_next(&session->engine, &action)) {
		if (may_unlock && action.type == WEIR_ACTION_POST &&
		    weir_session_link_may_unlock(&session->links[action.channel], action.wr)) {
			post_unlocked(session, &action);
			return WEIR_PUMP_UNLOCKED;
		}
		do_action(session, &action);
		if (action.type == WEIR_ACTION_POST &&
		    weir_backlog_has_ready(&session->engine.backlog))
			return WEIR_PUMP_MORE;
	}
	weir_requests_notify(session);
	return WEIR_PUMP_LAST;
}

enum weir_pump_step weir_pump_chain(struct weir_session *session)
{
	return pump_chain(session, true);
}

void weir_pump_pull(struct weir_session *session)
{
	while (pump_chain(session, false) == WEIR_PUMP_MORE)
		;
	weir_list_del(&session->active);
}

static uint64_t deadline_ns(const struct weir_session *session)
{
	uint64_t engine_ns = weir_engine_deadline_ns(&session->engine);
	uint64_t calls_ns = weir_call_table_deadline_ns(&session->calls.table);

	return engine_ns < calls_ns ? engine_ns : calls_ns;
}

/* Return: true if a deadline has passed: counts as progress, like a completion. */
static bool expire_deadlines(struct weir_session *session, uint64_t now_ns)
{
	bool is_call = now_ns >= weir_call_table_deadline_ns(&session->calls.table);

	if (now_ns < deadline_ns(session))
		return false;
	weir_calls_expire(session, now_ns);
	return weir_engine_expired(&session->engine, now_ns) || is_call;
}

static void handle_all_links_down(struct weir_session *session)
{
	bool is_closing = weir_session_is_closing(session);

	weir_session_set_state(session, is_closing ? WEIR_SESSION_CLOSED : WEIR_SESSION_DOWN);
	session->down_due = session->options.on_down && !is_closing;
	weir_messages_down(session);
	weir_calls_down(session, -ECONNRESET);
	weir_pump_pull(session);
	if (session->down_due)
		weir_pump_kick(session);
}

static unsigned int count_links(const struct weir_session *session, enum weir_link_state state)
{
	unsigned int i, count = 0;

	for (i = 0; i < session->nr_links; i++)
		count += session->links[i].core.state == state;
	return count;
}

/* Return: true if any link broke, or went down. */
static bool settle_links(struct weir_session *session)
{
	bool messages = session->links[0].core.state == WEIR_LINK_FAILING, settled = false;
	unsigned int i;

	for (i = 0; i < session->nr_links; i++)
		settled |= weir_session_link_settle(&session->links[i],
						    session->state == WEIR_SESSION_OPEN);
	if (messages && session->links[0].core.state == WEIR_LINK_BROKEN)
		weir_messages_broken(session);
	if (settled && count_links(session, WEIR_LINK_BROKEN))
		weir_session_reconnect_wake(session);
	return settled;
}

/* Completions received before a link failed are handled before the failure. */
static void handle_link_changes(struct weir_session *session)
{
	while (settle_links(session))
		weir_pump_pull(session);
	if (!weir_session_is_down(session) &&
	    count_links(session, WEIR_LINK_DOWN) == session->nr_links)
		handle_all_links_down(session);
}

/*
 * After @events, whether there may be more to post. Requests that wait for the window are ready,
 * too, but without an event nothing has made room for them.
 */
static bool may_post_more(const struct weir_session *session, int events)
{
	return !weir_list_is_empty(&session->active) ||
	       (events && weir_backlog_has_ready(&session->engine.backlog));
}

/*
 * While other threads want the lock, the caller posts when it gives the lock back, and long chains
 * without the lock: see combine.c.
 */
static void pull_or_activate(struct weir_session *session, int events)
{
	if (!may_post_more(session, events) ||
	    !__atomic_load_n(&session->nic->crowd, __ATOMIC_RELAXED)) {
		weir_pump_pull(session);
		return;
	}
	finish_done(session);
	weir_requests_notify(session);
	weir_combine_activate(&session->nic->combine, &session->active);
}

static int poll_all(struct weir_session *session, uint64_t now_ns, bool for_messages)
{
	unsigned int i;
	int events = 0;

	weir_window_tick(session->engine.window, now_ns);
	weir_bounce_trace(session);
	for (i = 0; i < session->nr_cqs; i++) {
		if (session->cqs[i]->in_flight)
			events += weir_session_links_poll(session, session->cqs[i], now_ns);
	}
	if (for_messages)
		events += weir_messages_poll(session);
	if (now_ns >= session->keepalive.due_ns)
		weir_session_keepalive_check(session, now_ns);
	events += expire_deadlines(session, now_ns);
	session->polled_wrs = session->counters->work_requests;
	pull_or_activate(session, events);
	if (weir_session_is_whole(session))
		return events;
	if (!for_messages)
		events += weir_messages_poll(session);
	handle_link_changes(session);
	return events;
}

int weir_pump_poll(struct weir_session *session, uint64_t now_ns)
{
	return poll_all(session, now_ns, true);
}

void weir_pump_poll_sends(struct weir_session *session, uint64_t now_ns)
{
	poll_all(session, now_ns, !session->recv_armed);
}

static bool arm_cq(struct weir_session *session, struct ibv_cq *cq, bool *armed, uint16_t channel,
		   uint32_t in_flight)
{
	if (*armed)
		return false;
	weir_session_trace(session, &(struct weir_trace_record){ .event = WEIR_TRACE_ARM,
								 .wrs = in_flight,
								 .channel = channel });
	*armed = !ibv_req_notify_cq(cq, 0);
	return *armed;
}

static bool arm_all(struct weir_session *session, bool receive)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < session->nr_cqs; i++) {
		struct weir_cq *cq = session->cqs[i];

		if (cq->in_flight && !cq->scq && !cq->is_posting) /* shared CQs are always polled */
			any |= arm_cq(session, cq->ibv, &cq->armed, (uint16_t)i, cq->in_flight);
	}
	if (receive && session->recv_cq && !weir_session_is_down(session))
		any |= arm_cq(session, session->recv_cq, &session->recv_armed, 0, 0);
	return any;
}

static void set_timer(struct weir_session *session)
{
	uint64_t ns = deadline_ns(session), keepalive_ns = session->keepalive.due_ns;
	struct itimerspec at;

	ns = ns < keepalive_ns ? ns : keepalive_ns;
	if (ns >= session->timer_ns)
		return;
	at = (struct itimerspec){ .it_value = weir_timespec(ns) };
	session->timer_ns = ns;
	timerfd_settime(session->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/*
 * WRs posted since the last poll may be complete already. Polling again costs less than an event
 * and wakes no thread. If more requests wait to be posted, events continue instead: otherwise the
 * submitting thread would do all the work.
 */
static int poll_after_arming(struct weir_session *session)
{
	int polls, events = 0;

	for (polls = 0; polls < POLLS_MAX; polls++) {
		if (session->polled_wrs == session->counters->work_requests ||
		    weir_backlog_has_ready(&session->engine.backlog))
			break;
		events += poll_all(session, weir_now_ns(), !session->recv_armed);
	}
	return events;
}

int weir_pump_leave(struct weir_session *session, bool receive)
{
	int events = poll_after_arming(session);

	if (session->is_watched)
		return events;
	session->is_owed = session->posting; /* the CQs of their links are left out */
	/* A completion between the last poll and the arming raised no event, and the poll itself
	 * may post to CQs not yet armed. An armed CQ stays armed, so the loop ends.
	 */
	while (arm_all(session, receive))
		events += weir_pump_poll(session, weir_now_ns());
	set_timer(session);
	return events;
}

void weir_pump_leave_to_waiters(struct weir_session *session)
{
	if (session->is_owed || !session->stayers)
		weir_pump_leave(session, false);
}

void weir_pump_kick(struct weir_session *session)
{
	uint64_t one = 1;

	if (write(session->kick_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so it is readable already */
}

static void drain_eventfd(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) > 0)
		;
}

static void take_cq_events(struct weir_session *session)
{
	struct ibv_cq *cq;
	void *context;
	unsigned int i;

	while (!ibv_get_cq_event(session->comp, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		session->counters->events++;
		if (cq == session->recv_cq)
			session->recv_armed = false;
		for (i = 0; i < session->nr_cqs; i++) {
			if (cq == session->cqs[i]->ibv)
				session->cqs[i]->armed = false;
		}
	}
}

static void take_event(struct weir_session *session, int fd)
{
	if (fd == session->comp->fd) {
		take_cq_events(session);
	} else if (fd == session->cm->fd) {
		weir_session_poll_cm(session);
	} else {
		drain_eventfd(fd);
		if (fd == session->timer_fd)
			session->timer_ns = UINT64_MAX;
	}
}

/*
 * Lanes have called the session's thread. Whatever else the call was for is found with the lock,
 * once the lanes have come back.
 */
static void watch_lanes(struct weir_session *session)
{
	drain_eventfd(session->kick_fd);
	weir_lanes_watch(session);
}

/*
 * Returns with nic->lock held. @may_watch: the caller is the session's thread. Return: the number
 * of completion events.
 */
static uint32_t sleep_and_lock(struct weir_session *session, int timeout_ms, bool may_watch)
{
	struct epoll_event events[4];
	uint64_t before;
	int i, ready;

	ready = epoll_wait(session->epoll_fd, events, 4, timeout_ms);
	if (may_watch && weir_lanes_are_lent(session) && ready == 1 &&
	    events[0].data.fd == session->kick_fd)
		watch_lanes(session);
	weir_session_lock(session);
	before = session->counters->events;
	for (i = 0; i < ready; i++)
		take_event(session, events[i].data.fd);
	return (uint32_t)(session->counters->events - before);
}

void weir_pump_sleep(struct weir_session *session, int timeout_ms)
{
	uint32_t events = sleep_and_lock(session, timeout_ms, true);

	if (timeout_ms < 0)
		weir_trace_note(&session->trace, weir_now_ns(),
				&(struct weir_trace_record){ .event = WEIR_TRACE_WAKE,
							     .wrs = events });
	weir_session_unlock(session);
}

int weir_pump_step(struct weir_session *session, int timeout_ms, bool receive)
{
	int handled;

	sleep_and_lock(session, timeout_ms, false);
	handled = weir_pump_poll(session, weir_now_ns());
	handled += weir_pump_leave(session, receive);
	if (session->down_due) /* not all callers report it, and the kick may have been consumed */
		weir_pump_kick(session);
	weir_dispatch(session);
	return handled;
}

enum weir_poll_verdict weir_pump_spin(struct weir_session *session, struct weir_waiter *waiter,
				      struct weir_poll *poll)
{
	uint64_t now_ns = weir_now_ns();
	enum weir_poll_verdict verdict;

	weir_session_lock(session);
	weir_pump_poll(session, now_ns);
	weir_pump_leave_to_waiters(session);
	weir_dispatch(session);

	weir_session_lock(session);
	verdict = weir_poll_polled(poll, weir_waiter_is_done(waiter), now_ns);
	weir_polling_count(session, poll);
	weir_session_unlock(session);
	return verdict;
}
