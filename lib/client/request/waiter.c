/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The session thread, if any, wakes sleepers by a futex. Without a session thread, the first
 * sleeper leads: it sleeps on the session's descriptor and polls for all. The other sleepers wait
 * until they are done or the leader leaves.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/base/futex.h"
#include "lib/client/channel/polling.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"
#include "lib/client/request/waiter.h"
#include "lib/base/yield.h"

enum { WAITING, ASLEEP, DONE };

bool weir_waiter_is_done(struct weir_waiter *waiter)
{
	return __atomic_load_n(&waiter->state, __ATOMIC_ACQUIRE) == DONE;
}

void weir_waiter_begin(struct weir_session *session)
{
	session->stayers++;
}

/*
 * Once the waiting thread sees DONE, its stack with @waiter may be gone: only the address is used
 * then.
 */
void weir_waiter_done(struct weir_waiter *waiter, struct weir_session *session, int status)
{
	uint64_t one = 1;

	waiter->status = status;
	if (__atomic_exchange_n(&waiter->state, DONE, __ATOMIC_ACQ_REL) != ASLEEP) {
		session->stayers--;
		return;
	}
	if (weir_session_has_thread(session)) {
		weir_combine_wake(session->nic, &waiter->state);
		return;
	}
	weir_waitqueue_wake_all(&session->lead);
	if (session->has_leader && write(session->lead_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, and so readable */
}

void weir_waiter_done_at_once(struct weir_waiter *waiter)
{
	waiter->status = 0;
	__atomic_store_n(&waiter->state, DONE, __ATOMIC_RELEASE);
}

static void yield_cpu(struct weir_session *session, struct weir_idle_time *idle_time)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

	if (!stall_ns)
		return;
	weir_session_lock(session);
	weir_idle_time_stalled(idle_time, stall_ns, now_ns);
	weir_session_unlock(session);
}

/* Polls as long as @poll advises. One thread at a time: others would only slow the poller down. */
static void poll_until_done(struct weir_waiter *waiter, struct weir_session *session,
			    struct weir_poll *poll, uint64_t deadline_ns)
{
	enum weir_poll_verdict verdict;

	if (__atomic_fetch_add(&session->spinners, 1, __ATOMIC_ACQ_REL) == 0) {
		verdict = weir_poll_woken(poll, poll->at_ns);
		while (verdict == WEIR_POLL_AGAIN && poll->at_ns < deadline_ns) {
			verdict = weir_pump_spin(session, waiter, poll);
			if (weir_waiter_is_done(waiter))
				break;
			if (verdict ==
			    WEIR_POLL_AGAIN) /* not before arming, as in session_thread.c */
				yield_cpu(session, poll->idle_time);
		}
	}
	__atomic_store_n(&session->has_spun, true, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&session->spinners, 1, __ATOMIC_ACQ_REL);
}

/* From here on no thread may leave this waiter's completion unpolled. */
static void become_sleeper(struct weir_waiter *waiter, struct weir_session *session,
			   struct weir_poll *poll)
{
	uint32_t waiting = WAITING;

	weir_session_lock(session);
	session->sleepers++;
	if (__atomic_compare_exchange_n(&waiter->state, &waiting, ASLEEP, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		session->stayers--;
	weir_pump_leave(session, true);
	if (weir_poll_is_armed(poll))
		weir_poll_polled(poll, 0, weir_now_ns());
	weir_session_trace(session,
			   &(struct weir_trace_record){ .event = WEIR_TRACE_SLEEP, .reqs = 1 });
	weir_dispatch(session);
}

static void sleep_on_futex(struct weir_waiter *waiter, uint64_t deadline_ns)
{
	while (!weir_waiter_is_done(waiter) && weir_now_ns() < deadline_ns)
		weir_futex_wait(&waiter->state, ASLEEP, deadline_ns);
}

/* With nic->lock held; released while asleep. */
static void lead(struct weir_session *session, uint64_t deadline_ns)
{
	struct pollfd fds[2] = { { .fd = session->epoll_fd, .events = POLLIN },
				 { .fd = session->lead_fd, .events = POLLIN } };
	uint64_t count;

	session->has_leader = true;
	weir_session_unlock(session);
	poll(fds, 2, weir_poll_ms(deadline_ns));
	if (fds[1].revents && read(session->lead_fd, &count, sizeof(count)) < 0)
		count = 0; /* nothing to read */
	weir_pump_step(session, 0, true);
	weir_session_lock(session);
	session->has_leader = false;
	weir_waitqueue_wake_all(&session->lead);
}

static void sleep_without_thread(struct weir_waiter *waiter, struct weir_session *session,
				 uint64_t deadline_ns)
{
	weir_session_lock(session);
	while (!weir_waiter_is_done(waiter) && weir_now_ns() < deadline_ns) {
		if (session->has_leader)
			weir_waitqueue_wait(&session->lead, session->nic, deadline_ns);
		else
			lead(session, deadline_ns);
	}
	weir_session_unlock(session);
}

/* Reports the sleep to @poll, for later waiters. */
static void leave_sleepers(struct weir_waiter *waiter, struct weir_session *session,
			   struct weir_poll *poll)
{
	uint64_t now_ns = weir_now_ns();

	weir_session_lock(session);
	session->sleepers--;
	if (poll->slept && weir_waiter_is_done(waiter))
		weir_poll_polled(poll, 1, now_ns);
	weir_trace_note(&session->trace, now_ns,
			&(struct weir_trace_record){ .event = WEIR_TRACE_WAKE, .reqs = 1 });
	weir_polling_count(session, poll);
	weir_session_unlock(session);
}

bool weir_waiter_wait(struct weir_waiter *waiter, struct weir_session *session,
		      struct weir_idle_time *idle_time, uint64_t deadline_ns)
{
	struct weir_poll poll;

	if (weir_lanes_are_lent(session))
		weir_lanes_await_done(session, waiter);
	if (weir_waiter_is_done(waiter))
		return true;
	weir_polling_begin(session, &poll, idle_time, 100, weir_now_ns());
	if (session->options.polling != WEIR_POLLING_SCQ) /* a single poller serves all */
		poll_until_done(waiter, session, &poll, deadline_ns);
	if (weir_waiter_is_done(waiter))
		return true;

	become_sleeper(waiter, session, &poll);
	if (weir_session_has_thread(session))
		sleep_on_futex(waiter, deadline_ns);
	else
		sleep_without_thread(waiter, session, deadline_ns);
	leave_sleepers(waiter, session, &poll);
	return weir_waiter_is_done(waiter);
}
