/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CPU affinity to the calling program.
 *
 * A program that makes a call at a time sleeps until the reply. Waking a thread on another CPU,
 * there and back, takes far longer than a call of a few pages: some 70 us in a small virtual
 * machine, against 2 us on the same CPU. So the receiving threads move to the CPU of such a
 * program. Once two calls are concurrent, or another thread calls, the receiving threads run
 * anywhere again, because then a second CPU helps.
 *
 * The kernel passes the caller's thread id, and from time to time this code reads the thread's CPU
 * from /proc. Where CPUs share caches, the scheduler moves woken threads to idle CPUs. A program
 * that keeps moving is soon not followed any more.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_AFFINITY_H
#define WEIR_APPS_MOUNT_FUSE_AFFINITY_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AFFINITY_ANY_CPU (-1)
#define AFFINITY_LONE_MIN 64u /* consecutive lone calls before following */

struct fuse_in_header;

struct affinity {
	int fuse; /* readable: another call waits */
	cpu_set_t all; /* CPUs that the process may use */
	atomic_int cpu; /* the CPU for the receiving threads, or AFFINITY_ANY_CPU */
	atomic_uint serving; /* reads and writes received and not answered */
	pthread_mutex_t lock; /* guards the fields below */
	uint32_t tid; /* thread of the last call */
	/* consecutive reads and writes of this thread without a known concurrent call */
	unsigned int lone;
	unsigned int moves; /* consecutive times that the thread was found on another CPU */
};

/* @fuse: the descriptor of the FUSE connection. */
void affinity_init(struct affinity *caller, int fuse);
void affinity_fini(struct affinity *caller);

/*
 * Moves the calling thread to the CPU of the program. @call: head of the call received. Context:
 * the thread that received the call, before it serves the call.
 */
void affinity_follow(struct affinity *caller, const struct fuse_in_header *call);

/* Begins serving a read or write. The caller owes an affinity_io_end(). */
static inline void affinity_io_begin(struct affinity *caller)
{
	atomic_fetch_add_explicit(&caller->serving, 1, memory_order_relaxed);
}

/* Call before the reply: the program may call again before this thread continues. */
static inline void affinity_io_end(struct affinity *caller)
{
	atomic_fetch_sub_explicit(&caller->serving, 1, memory_order_relaxed);
}

#endif
