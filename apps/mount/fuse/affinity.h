/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Staying near the program that calls.
 *
 * A program that makes one call at a time sleeps until it is answered. To wake a thread of another
 * CPU, there and back, takes far longer than a call of a few pages itself: some 70 us in a small
 * virtual machine, 2 us on the same CPU. So the threads that answer such a program run where it
 * does. As soon as two calls are there at once, or another thread calls, they run anywhere again:
 * then another CPU is a help.
 *
 * The kernel says who calls, and now and then /proc is asked where that one runs. Caches that CPUs
 * share change the picture: there the scheduler moves who is woken to an idle CPU, and a program
 * that does not stay is not followed for long.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_AFFINITY_H
#define WEIR_APPS_MOUNT_FUSE_AFFINITY_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AFFINITY_ANY_CPU (-1)
#define AFFINITY_LONE_MIN 64u /* calls in a row, each alone, before anybody is followed */

struct fuse_in_header;

struct affinity {
	int fuse; /* readable: another call waits */
	cpu_set_t all; /* where the process may run */
	atomic_int cpu; /* where its threads are to run now, or AFFINITY_ANY_CPU */
	atomic_uint serving; /* reads and writes that were received and not answered */
	pthread_mutex_t lock; /* of what follows */
	uint32_t tid; /* of who called last */
	unsigned int lone; /* reads and writes of his in a row, none of them known not to be
			    * alone */
	unsigned int moves; /* times in a row that he was found on another CPU */
};

/* @fuse: the descriptor that calls are received from. */
void affinity_init(struct affinity *caller, int fuse);
void affinity_fini(struct affinity *caller);

/*
 * A call has been received, and @call is its head: the thread that received it goes where it should
 * be. Context: that thread, before it serves the call.
 */
void affinity_follow(struct affinity *caller, const struct fuse_in_header *call);

/* A read or write is served from here on; the caller owes a affinity_io_end(). */
static inline void affinity_io_begin(struct affinity *caller)
{
	atomic_fetch_add_explicit(&caller->serving, 1, memory_order_relaxed);
}

/* Just before it is answered: who called may be there again before the thread goes on. */
static inline void affinity_io_end(struct affinity *caller)
{
	atomic_fetch_sub_explicit(&caller->serving, 1, memory_order_relaxed);
}

#endif
