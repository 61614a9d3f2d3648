/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that waits for one event polls first, as long as polling pays, and then sleeps. Waking a
 * thread on another CPU of a small virtual machine costs ten times as much as a small request.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_WAITER_H
#define WEIR_LIB_CLIENT_REQUEST_WAITER_H

#include <stdbool.h>
#include <stdint.h>

struct weir_idle_time;
struct weir_request;
struct weir_session;

/**
 * struct weir_waiter - lives on the stack of the waiting thread
 * @state: 0, asleep or done; atomic
 * @status: of the event; written before @state becomes done
 * @request: the waiting thread frees this request when done; NULL: there is nothing to free
 */
struct weir_waiter {
	uint32_t state;
	int status;
	struct weir_request *request;
};

#define WEIR_WAITER_INIT   \
	{                  \
		0, 0, NULL \
	}

/*
 * Registers a thread that will wait; the event may happen from now on. Context: with nic->lock
 * held.
 */
void weir_waiter_begin(struct weir_session *session);

/*
 * Reports the event. @waiter may be gone on return. Context: with nic->lock held; the holder calls
 * weir_pump_leave_to_waiters() before unlocking.
 */
void weir_waiter_done(struct weir_waiter *waiter, struct weir_session *session, int status);

/*
 * As a begin and a done with status 0, for a thread that does not sleep: it begins to with
 * nic->lock, which takes the lanes back. Context: with nic->lock, or by a lane.
 */
void weir_waiter_done_at_once(struct weir_waiter *waiter);

bool weir_waiter_is_done(struct weir_waiter *waiter);

/**
 * weir_waiter_wait() - wait for weir_waiter_done()
 * @idle_time: the session's, for this kind of event
 * @deadline_ns: when to give up; UINT64_MAX: never
 *
 * Context: any thread but a callback; without nic->lock.
 * Return: true if done; false after the deadline.
 */
bool weir_waiter_wait(struct weir_waiter *waiter, struct weir_session *session,
		      struct weir_idle_time *idle_time, uint64_t deadline_ns);

#endif
