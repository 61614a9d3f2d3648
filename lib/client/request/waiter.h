/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that waits for one thing: it first looks for it itself, for as long as that pays,
 * and only then sleeps. Waking a thread on another CPU of a small virtual machine costs ten
 * times what a small request does.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_WAITER_H
#define WEIR_LIB_CLIENT_REQUEST_WAITER_H

#include <stdbool.h>
#include <stdint.h>

struct weir_idle_time;
struct weir_session;

/**
 * struct weir_waiter - lives on the stack of who waits
 * @state: 0, asleep or done; atomic
 * @status: how it ended; written before @state says done
 */
struct weir_waiter {
	uint32_t state;
	int status;
};

#define WEIR_WAITER_INIT \
	{                \
		0, 0     \
	}

/* The thing may happen from now on, and its thread comes to wait. Context: with nic->lock held. */
void weir_waiter_begin(struct weir_session *session);

/*
 * The thing, which may happen, has happened. @waiter may be gone when this returns. Context: with
 * nic->lock held, and who has it does a weir_pump_leave_to_waiters() before it goes.
 */
void weir_waiter_done(struct weir_waiter *waiter, struct weir_session *session, int status);

bool weir_waiter_is_done(struct weir_waiter *waiter);

/**
 * weir_waiter_wait() - wait for weir_waiter_done()
 * @gaps: the session's, for this kind of thing
 * @deadline_ns: when to give up; UINT64_MAX: never
 *
 * Context: any thread but a callback; without nic->lock.
 * Return: whether it is done; false after the deadline.
 */
bool weir_waiter_wait(struct weir_waiter *waiter, struct weir_session *session,
		      struct weir_idle_time *gaps, uint64_t deadline_ns);

#endif
