/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pump does the engine's actions, and reports the results to the engine.
 *
 * All but weir_pump_step(), weir_pump_sleep(), weir_pump_spin() and weir_pump_kick(): with
 * nic->lock held. A thread that polls or pulls calls weir_pump_leave() or
 * weir_pump_leave_to_waiters() in the end: a completion of a WR that it posted must be noticed.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_PUMP_H
#define WEIR_LIB_CLIENT_CHANNEL_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/poll/poll.h"

struct weir_session;
struct weir_waiter;

enum weir_pump_step {
	WEIR_PUMP_LAST, /* all actions are done */
	WEIR_PUMP_MORE, /* there may be another chain */
	WEIR_PUMP_UNLOCKED, /* weir_session_link_post_unlocked() has given the lock back */
};

/* Does the engine's actions, up to one posted chain. */
enum weir_pump_step weir_pump_chain(struct weir_session *session);

/* Does all actions of the engine. */
void weir_pump_pull(struct weir_session *session);

/*
 * Checks all CQs and deadlines once. Posts, or leaves that to the end of the caller's turn if other
 * threads want the lock. Return: the number of completions and deadlines.
 */
int weir_pump_poll(struct weir_session *session, uint64_t now_ns);

/*
 * As weir_pump_poll(), for a submitter: messages are left to the thread that their armed CQ will
 * wake.
 */
void weir_pump_poll_sends(struct weir_session *session, uint64_t now_ns);

/**
 * weir_pump_leave() - stop polling while WRs are in flight
 * @receive: also arm channel 0's receives, which the session's thread otherwise handles
 *
 * Arms the CQs with WRs in flight, polls once more, and sets the timer, unless the session's thread
 * is awake and polls.
 * Return: completions seen.
 */
int weir_pump_leave(struct weir_session *session, bool receive);

/*
 * Leaves, unless a waiter stays to poll and only requests with waiters are in flight. Other
 * requests must not depend on the waiter's thread being scheduled.
 */
void weir_pump_leave_to_waiters(struct weir_session *session);

/**
 * weir_pump_step() - one round: take events, poll, deliver
 * @timeout_ms: how long to sleep for an event first; -1: for ever
 * @receive: as weir_pump_leave()
 *
 * Context: without nic->lock. Return: events handled.
 */
int weir_pump_step(struct weir_session *session, int timeout_ms, bool receive);

/*
 * Sleeps for an event, at most @timeout_ms (-1: for ever, with a trace record), and takes it. Looks
 * after lanes that call for it. Context: the session's thread, without nic->lock.
 */
void weir_pump_sleep(struct weir_session *session, int timeout_ms);

/**
 * weir_pump_spin() - one round of a waiter that will soon poll again
 * @poll: receives the result
 *
 * Context: without nic->lock. Return: the next step.
 */
enum weir_poll_verdict weir_pump_spin(struct weir_session *session, struct weir_waiter *waiter,
				      struct weir_poll *poll);

/* Wakes the thread that sleeps on the session's descriptor. */
void weir_pump_kick(struct weir_session *session);

#endif
