/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine: one thread per process, which serves sockets, timers and send queues. Where a copy
 * stalls, another thread takes its place: see stall.c.
 *
 * The engine starts when the program opens its first device, and sleeps when idle. Its callbacks
 * must not block: neither on a peer nor on a lock held while waiting for a peer.
 */
#ifndef WEIR_SOFTNIC_LOOP_LOOP_H
#define WEIR_SOFTNIC_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/**
 * softnic_loop_start() - make sure that the engine thread runs
 *
 * Context: Any thread; idempotent.
 * Return: 0, or a negative errno if no thread or descriptor can be had.
 */
int softnic_loop_start(void);

/**
 * softnic_loop_fork_begin() - wait for the callback under way; no other begins until fork_end()
 *
 * Context: The caller holds no lock. On the engine thread it does nothing.
 */
void softnic_loop_fork_begin(void);
void softnic_loop_fork_end(void);

/**
 * softnic_loop_add() - call a function whenever a descriptor is ready
 * @fd: a non-blocking descriptor, owned by the caller, who must not close it before
 *	softnic_loop_del()
 * @events: EPOLLIN and so on, level-triggered
 * @fn: called on the engine thread; spurious calls are possible
 * @arg: passed to @fn
 *
 * Starts the engine if needed.
 *
 * Context: Any thread.
 * Return: 0, -EEXIST if @fd is watched already, or another negative errno.
 */
int softnic_loop_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg);

/**
 * softnic_loop_change() - wait for other events on a descriptor
 * @fd: as given to softnic_loop_add(); ignored if not watched
 * @events: replaces the events waited for
 *
 * Context: Any thread.
 */
void softnic_loop_change(int fd, uint32_t events);

/**
 * softnic_loop_del() - stop watching a descriptor
 * @fd: as given to softnic_loop_add(); ignored if not watched
 *
 * On return the handler is not running and will not run again. The handler may delete its own
 * descriptor; then the call does not wait.
 *
 * Context: Any thread that holds no lock the handler takes.
 */
void softnic_loop_del(int fd);

/**
 * struct softnic_timer - calls a function once, later
 *
 * Embedded in its owner. The fields belong to the engine.
 */
struct softnic_timer {
	void (*fn)(struct softnic_timer *t);
	uint64_t deadline_ns;
	struct softnic_timer *next;
	bool armed;
};

/**
 * softnic_timer_arm() - call @fn on the engine thread after a delay
 * @t: zeroed before its first use; arming again replaces the deadline
 * @delay_ns: from now
 * @fn: may arm @t again
 *
 * Context: Any thread.
 */
void softnic_timer_arm(struct softnic_timer *t, uint64_t delay_ns,
		       void (*fn)(struct softnic_timer *t));

/**
 * softnic_timer_disarm() - cancel a timer, and wait for its function if running
 *
 * The function may disarm its own timer; then the call does not wait.
 *
 * Context: Any thread that holds no lock the function takes.
 */
void softnic_timer_disarm(struct softnic_timer *t);

/**
 * struct softnic_work - work for the engine thread, done in small steps
 * @fn: does one step; returns true if another step is due at once
 *
 * Work items take turns, a step each. Set @fn once; the other fields belong to the engine.
 */
struct softnic_work {
	bool (*fn)(struct softnic_work *w);
	struct softnic_work *next;
	bool queued;
	bool again;
};

/**
 * softnic_loop_kick_work() - make a work item run (again)
 *
 * A step starts after the call, so the step sees everything the caller stored before.
 *
 * Context: Any thread.
 */
void softnic_loop_kick_work(struct softnic_work *w);

/**
 * softnic_loop_cancel_work() - cancel a work item, and wait for its step if running
 *
 * Context: Any thread that holds no lock @fn takes; not the engine thread.
 */
void softnic_loop_cancel_work(struct softnic_work *w);

/**
 * softnic_loop_stall_begin() - announce a wait that may never end
 * @stuck: of whatever is waited for. True from the time when another thread has become the engine
 *	thread, because this wait is long, until this wait ends
 *
 * On threads other than the engine's nothing happens.
 *
 * Context: A work item's step. Between begin and end it holds no lock that a callback takes.
 * Return: false if an earlier wait for the same still lasts; then there is no end to announce.
 */
bool softnic_loop_stall_begin(bool *stuck);
void softnic_loop_stall_end(void);

/** softnic_loop_now_ns() - read the monotonic clock, in ns */
uint64_t softnic_loop_now_ns(void);

#endif
