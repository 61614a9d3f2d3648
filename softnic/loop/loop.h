/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine: one thread a process, which serves sockets, timers and send queues.
 *
 * It starts with the first device that is opened and sleeps whenever there is nothing
 * to do. Everything called from it must not block: neither on a peer nor on a lock
 * that is held while waiting for one.
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
 * softnic_loop_is_here() - is this the engine thread?
 */
bool softnic_loop_is_here(void);

/**
 * softnic_loop_add() - call a function whenever a descriptor is ready
 * @fd: a non-blocking descriptor; stays the caller's, must not be closed before
 *	softnic_loop_del()
 * @events: EPOLLIN and so on, level-triggered
 * @fn: called on the engine thread; spurious calls are possible
 * @arg: handed to @fn
 *
 * Starts the engine if it does not run.
 *
 * Context: Any thread.
 * Return: 0, -EEXIST if @fd is there already, or another negative errno.
 */
int softnic_loop_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg);

/**
 * softnic_loop_change() - wait for other events on a descriptor
 * @fd: as given to softnic_loop_add(); one that is not there is ignored
 * @events: replaces what was waited for
 *
 * Context: Any thread.
 */
void softnic_loop_change(int fd, uint32_t events);

/**
 * softnic_loop_del() - forget a descriptor
 * @fd: as given to softnic_loop_add(); one that is not there is ignored
 *
 * When it returns, the handler does not run and will not run again, unless it is the
 * handler itself that calls.
 *
 * Context: Any thread that holds no lock the handler takes.
 */
void softnic_loop_del(int fd);

/**
 * struct softnic_timer - one function to be called once, later
 *
 * Embedded in its owner. Fields are the engine's.
 */
struct softnic_timer {
	void (*fn)(struct softnic_timer *t);
	uint64_t deadline_ns;
	struct softnic_timer *next;
	bool armed;
};

/**
 * softnic_timer_arm() - call @fn on the engine thread after a while
 * @t: zeroed before its first use; arming again replaces the deadline
 * @delay_ns: from now
 * @fn: what to call; may arm @t again
 *
 * Context: Any thread.
 */
void softnic_timer_arm(struct softnic_timer *t, uint64_t delay_ns,
		       void (*fn)(struct softnic_timer *t));

/**
 * softnic_timer_disarm() - the function is not running and will not be called
 *
 * Unless the function itself calls, which is allowed.
 *
 * Context: Any thread that holds no lock the function takes.
 */
void softnic_timer_disarm(struct softnic_timer *t);

/**
 * struct softnic_work - something to go on with as soon as possible, in small steps
 * @fn: does one step; returns true if there is more to do at once
 *
 * Work items take turns, a step each. Set @fn once; the other fields are the engine's.
 */
struct softnic_work {
	bool (*fn)(struct softnic_work *w);
	struct softnic_work *next;
	bool queued;
	bool again;
};

/**
 * softnic_work_kick() - have a work item run (again)
 *
 * A step that starts after the call is guaranteed, so whatever the caller stored
 * before it is seen.
 *
 * Context: Any thread.
 */
void softnic_work_kick(struct softnic_work *w);

/**
 * softnic_work_cancel() - the item is not running and will not run unless kicked again
 *
 * Context: Any thread that holds no lock @fn takes; not the engine thread.
 */
void softnic_work_cancel(struct softnic_work *w);

/** softnic_now_ns() - the monotonic clock */
uint64_t softnic_now_ns(void);

#endif
