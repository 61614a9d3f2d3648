/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the parts of the engine: the thread (loop.c), its descriptors (fd_watch.c), and its
 * timers and work (timer.c).
 *
 * All state is under engine.lock, which the engine drops around each callback.
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
	bool forking; /* the engine thread begins no callback */
	pthread_t thread;
	int epoll, wake;
	const void *running; /* the handler, timer or work being called */
};

extern struct engine engine;

/** engine_wake() - wake the engine thread if it sleeps */
void engine_wake(void);

/** engine_run_begin(), engine_run_end() - bracket a callback: drop the lock, take it back */
void engine_run_begin(const void *item);
void engine_run_end(void);

/** engine_let_fork() - wait until no fork() is under way; before an item is chosen to be called */
void engine_let_fork(void);

/** engine_runs() - true if @item is being called and the caller is not the engine thread */
bool engine_runs(const void *item);

/** engine_wait_for() - wait until @item is not being called; no wait on the engine thread */
void engine_wait_for(const void *item);

/** fd_watch_add() - softnic_loop_add() with the lock held and engine.epoll open */
int fd_watch_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg);

/** fd_watch_handle() - call the handler of an event, unless it was deleted meanwhile */
void fd_watch_handle(const struct epoll_event *ev);

/** fd_watch_reset() - free all handlers; engine.epoll may be closed */
void fd_watch_reset(void);

/** timer_run() - run the timers that are due, then some steps of work */
void timer_run(void);

/** timer_idle_ns() - time until the next timer; 0 if work is queued, -1 if nothing is armed */
int64_t timer_idle_ns(void);

/** timer_reset() - empty both lists; surviving items become unarmed and not queued */
void timer_reset(void);

#endif
