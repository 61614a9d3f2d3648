/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pump: does what the engine decides, and tells it what happened.
 *
 * All but weir_pump_step(), weir_pump_sleep(), weir_pump_spin() and weir_pump_kick(): with
 * nic->lock held. Whoever polls or pulls leaves in the end, by weir_pump_leave() or
 * weir_pump_leave_to_waiters(): what it posted must not complete unseen.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_PUMP_H
#define WEIR_LIB_CLIENT_CHANNEL_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/poll/poll.h"

struct weir_session;
struct weir_waiter;

/* Does what the engine wants done, up to one chain. Return: whether there may be another. */
bool weir_pump_chain(struct weir_session *session);

/* Does all that the engine wants done now. */
void weir_pump_pull(struct weir_session *session);

/* Looks at all CQs and deadlines once, and pulls. Return: completions seen, and deadlines. */
int weir_pump_poll(struct weir_session *session, uint64_t now_ns);

/*
 * The same, for one who came to submit: messages are left to whom their CQ, when it is armed, will
 * wake.
 */
void weir_pump_poll_sends(struct weir_session *session, uint64_t now_ns);

/**
 * weir_pump_leave() - go away, with things in flight
 * @receive: arm channel 0's receives, too; the session's thread sees to them otherwise
 *
 * Arms what would otherwise complete unseen, polls once more, and sets the timer, unless the
 * session's thread is awake and sees to all that.
 * Return: completions seen.
 */
int weir_pump_leave(struct weir_session *session, bool receive);

/*
 * Leaves, unless a waiter stays to poll, and nothing is on its way but what waiters wait for: for
 * the rest nobody is to depend on when that waiter's thread runs.
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
 * Sleeps for an event, @timeout_ms at most (-1: for ever, which the trace tells), and takes it.
 * Without nic->lock.
 */
void weir_pump_sleep(struct weir_session *session, int timeout_ms);

/**
 * weir_pump_spin() - one round of a waiter that will come again soon
 * @poll: is told
 *
 * Context: without nic->lock. Return: what to do next.
 */
enum weir_poll_verdict weir_pump_spin(struct weir_session *session, struct weir_waiter *waiter,
				      struct weir_poll *poll);

/* Wakes who sleeps on the session's descriptor. */
void weir_pump_kick(struct weir_session *session);

#endif
