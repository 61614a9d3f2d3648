/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>

#include "lib/client/request/dispatch.h"
#include "lib/base/error.h"
#include "lib/client/channel/polling.h"
#include "lib/client/channel/pump.h"
#include "lib/client/channel/scq.h"
#include "lib/base/thread.h"
#include "lib/client/session.h"
#include "lib/client/session_thread.h"
#include "lib/base/yield.h"

/*
 * While callers poll, the thread does not arm the receive CQ, because every reply would wake it
 * needlessly. The thread naps instead, and polls.
 */
#define NAP_MS 1

#define EVENT_NS 20000 /* awake, it takes events this often */

/* Return: true if waiters poll, or have polled, for the events that would wake the thread. */
static bool may_nap(struct weir_session *session)
{
	bool has_spun = __atomic_exchange_n(&session->has_spun, false, __ATOMIC_ACQ_REL);

	return (has_spun || __atomic_load_n(&session->spinners, __ATOMIC_ACQUIRE)) &&
	       !session->sleepers;
}

enum thread_step { STEP_AGAIN, STEP_SLEEP, STEP_NAP };

/*
 * One round awake. While lanes are lent, there is nothing to poll but lanes: weir_pump_sleep()
 * does. Once @poll is armed, the session stays armed: other threads arm for their own
 * posts, and weir_pump_leave() arms for this thread's posts.
 */
static enum thread_step poll_once(struct weir_session *session, struct weir_poll *poll,
				  uint64_t now_ns)
{
	enum thread_step next = STEP_NAP;
	int handled;

	if (!weir_combine_lock_unless_lent(session))
		return weir_session_is_closing(session) ? STEP_AGAIN : STEP_SLEEP;
	handled = weir_pump_poll(session, now_ns);
	if (may_nap(session) && !weir_session_is_closing(session)) {
		session->is_watched = false;
		weir_pump_leave(session, false);
	} else {
		session->is_watched = session->is_watched && !weir_poll_is_armed(poll);
		if (weir_poll_is_armed(poll))
			handled += weir_pump_leave(session, true);
		next = weir_poll_polled(poll, (uint32_t)handled, now_ns) == WEIR_POLL_SLEEP ||
				       weir_session_is_closing(session) ?
			       STEP_SLEEP :
			       STEP_AGAIN;
		session->is_watched = next == STEP_AGAIN && !weir_poll_is_armed(poll);
		if (next == STEP_SLEEP)
			weir_session_trace(
				session, &(struct weir_trace_record){ .event = WEIR_TRACE_SLEEP });
	}
	weir_polling_count(session, poll);
	weir_dispatch(session);
	return next;
}

/* Return: the current time. */
static uint64_t yield_cpu(struct weir_session *session)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

	if (stall_ns && weir_combine_lock_unless_lent(session)) {
		weir_idle_time_stalled(&session->idle_time, stall_ns, now_ns);
		weir_session_unlock(session);
	}
	return now_ns;
}

/*
 * Yields the CPU after an empty poll, and from time to time takes events other than completions. A
 * thread about to sleep, or to poll again after a success, keeps its turn: no other thread arms
 * meanwhile, and on a busy CPU the thread would return only after all others, whatever completes.
 */
static uint64_t yield_and_take_events(struct weir_session *session, const struct weir_poll *poll,
				      uint64_t *event_ns)
{
	uint64_t now_ns;

	if (poll->retries && !weir_poll_is_armed(poll))
		now_ns = yield_cpu(session);
	else
		now_ns = weir_now_ns();
	if (now_ns >= *event_ns && !weir_lanes_are_lent(session)) {
		weir_pump_sleep(session, 0);
		weir_session_call_on_down(session);
		*event_ns = now_ns + EVENT_NS;
	}
	return now_ns;
}

/* Return: true if the thread should nap. */
static bool stay_awake(struct weir_session *session, struct weir_poll *poll)
{
	uint64_t now_ns = weir_now_ns(), event_ns = now_ns + EVENT_NS;
	enum thread_step next;

	weir_poll_woken(poll, now_ns);
	while ((next = poll_once(session, poll, now_ns)) == STEP_AGAIN)
		now_ns = yield_and_take_events(session, poll, &event_ns);
	return next == STEP_NAP;
}

static void *run_session_thread(void *arg)
{
	struct weir_session *session = arg;
	bool is_nap_due = false;
	struct weir_poll poll;

	weir_polling_begin(session, &poll, &session->idle_time, session->tuning.poll_percent_max,
			   weir_now_ns());
	while (!weir_session_is_closing(session)) {
		weir_pump_sleep(session, is_nap_due ? NAP_MS : -1);
		is_nap_due = stay_awake(session, &poll);
		weir_session_call_on_down(session);
	}
	return NULL;
}

/* The first step arms the CQs, because earlier arrivals have raised no event. */
int weir_session_thread_start(struct weir_session *session, struct weir_error *error)
{
	int rc;

	weir_pump_step(session, 0, true);
	if (session->options.no_thread)
		return 0;
	if (session->options.polling == WEIR_POLLING_SCQ) {
		weir_scq_start_driving(session);
		return 0;
	}
	session->driver = WEIR_SESSION_THREAD;
	rc = weir_thread_create(&session->thread, "weir-session", run_session_thread, session,
				error);
	if (rc)
		session->driver = WEIR_SESSION_WAITERS;
	return rc;
}

void weir_session_thread_stop(struct weir_session *session)
{
	weir_session_lock(session);
	weir_session_set_state(session, weir_session_is_down(session) ? WEIR_SESSION_CLOSED :
									WEIR_SESSION_CLOSING);
	session->down_due = false;
	weir_session_unlock(session);
	if (!weir_session_has_thread(session))
		return;
	if (session->options.polling == WEIR_POLLING_SCQ) {
		weir_scq_stop_driving(session);
	} else {
		weir_pump_kick(session);
		pthread_join(session->thread, NULL);
	}
	/* A thread of shared queues still reads the driver of each of their sessions. */
	weir_session_lock(session);
	session->driver = WEIR_SESSION_WAITERS;
	weir_session_unlock(session);
}
