/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine's parts have in common: the thread itself (loop.c), the descriptors it watches
 * (watch.c), and the timers and work it is to do (agenda.c).
 *
 * All of it under engine.lock, which is dropped for each call of somebody's function.
 */
#ifndef WEIR_SOFTNIC_LOOP_ENGINE_H
#define WEIR_SOFTNIC_LOOP_ENGINE_H

#include <pthread.h>
#include <sys/epoll.h>

#include "loop.h"

struct engine {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* the running item changed */
	bool started, asleep;
	pthread_t thread;
	int epoll, wake;
	const void *running; /* handler, timer or work being called */
};

extern struct engine engine;

/** engine_wake() - end its sleep, if it sleeps */
void engine_wake(void);

/** engine_run_begin(), engine_run_end() - around a call: the lock is dropped in between */
void engine_run_begin(const void *item);
void engine_run_end(void);

/** engine_runs() - is it calling that item, and are we somebody else? */
bool engine_runs(const void *item);

/** engine_wait_for() - until it does not; at once for the one called */
void engine_wait_for(const void *item);

/** fd_watch_add() - softnic_loop_add() under the lock, with the engine's epoll made */
int fd_watch_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg);

/** fd_watch_handle() - call whom an event is for, if it still is for anybody */
void fd_watch_handle(const struct epoll_event *ev);

/** fd_watch_reset() - all of them; the epoll may be gone */
void fd_watch_reset(void);

/** timer_run() - the timers that are due, and some steps of work */
void timer_run(void);

/** timer_idle_ns() - how long there is nothing to do: 0 if there is something, -1 without an end */
int64_t timer_idle_ns(void);

/** timer_reset() - all of it: what outlives this must not believe that it is still in a list */
void timer_reset(void);

#endif
