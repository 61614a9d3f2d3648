/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the parts of the engine: the thread (loop.c), its descriptors (fd_watch.c), its timers
 * and work (timer.c), and the handover from a stalled thread (stall.c).
 *
 * All state is under engine.lock, which the engine drops around each callback.
 */
#ifndef WEIR_SOFTNIC_LOOP_ENGINE_H
#define WEIR_SOFTNIC_LOOP_ENGINE_H

#include <pthread.h>
#include <sys/epoll.h>

#include "loop.h"

/* The leader serves everything. A thread that has stalled finishes its one step, and is spare. */
struct engine_thread {
	const void *running; /* the handler, timer or work being called */
	bool is_spare;
	bool *stuck; /* between stall_begin() and stall_end() of the leader: set at the handover */
	struct engine_thread *next;
};

struct engine {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* the running item changed */
	pthread_cond_t lead; /* another thread leads */
	bool started, asleep;
	bool forking; /* the engine thread begins no callback */
	struct engine_thread *leader, *threads;
	int epoll, wake;
	uint64_t stalls; /* begun so far */
};

extern struct engine engine;

/** engine_wake() - wake the engine thread if it sleeps */
void engine_wake(void);

/** engine_run_begin(), engine_run_end() - bracket a callback: drop the lock, take it back */
void engine_run_begin(const void *item);
void engine_run_end(void);

/** engine_let_fork() - wait until no fork() is under way; before an item is chosen to be called */
void engine_let_fork(void);

/** engine_runs() - true if @item is being called by another thread than the caller */
bool engine_runs(const void *item);

/** engine_wait_for() - wait until @item is not being called; no wait in its own callback */
void engine_wait_for(const void *item);

/** engine_self() - the calling thread of the engine; NULL on other threads */
struct engine_thread *engine_self(void);

/** engine_leads() - false on a thread that has been replaced: it begins no callback */
bool engine_leads(void);

/** engine_new_leader() - let a spare or new thread lead from now on; 0 or a negative errno */
int engine_new_leader(void);

/** engine_start_thread() - start a thread without the program's signals; 0 or a negative errno */
int engine_start_thread(void *(*fn)(void *arg), void *arg, const char *name);

/** stall_reset() - in the child of a fork, which has no watching thread */
void stall_reset(void);

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
