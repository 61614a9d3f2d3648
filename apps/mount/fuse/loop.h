/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The threads that receive the kernel's requests, and their buffers.
 *
 * Buffers are registered with the session, if there is one for all of the mount, and data stays
 * in the buffer of its request. The NIC reads a write's payload from the buffer and writes a
 * read's data into the buffer; the kernel copies to and from it. A transfer that continues after
 * the receiving thread's turn claims the buffer, and the thread takes another.
 *
 * A buffer has an extra page in front of the payload. The page holds the transfer's state, and
 * FUSE's two headers end where the payload begins, so a write's payload is page-aligned.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_LOOP_H
#define WEIR_APPS_MOUNT_FUSE_LOOP_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mount;
struct weir_pool;
struct weir_memory;
struct weir_error;

#define LOOP_THREADS_MAX 64u
#define BUFFER_PAGE 4096u
/* Maximum of concurrent transfers. Beyond that, threads wait for a buffer before they receive. */
#define TRANSFERS_MAX 40u

struct buffer {
	_Alignas(64) char head[BUFFER_PAGE];
	char data[];
};

struct loop {
	struct weir_pool *pool;
	struct weir_memory *memory; /* contains the pool's buffers */
	/* without a session that lasts as long as the mount, buffers are not registered: */
	char *arena; /* contains all buffers */
	struct buffer *spare[LOOP_THREADS_MAX + 1 + TRANSFERS_MAX];
	unsigned int spares; /* buffers that are free */
	sem_t nr_spares;
	pthread_mutex_t lock; /* held while threads are added; guards the spare buffers */
	pthread_t thread[LOOP_THREADS_MAX];
	atomic_uint threads; /* started, not joined */
	atomic_uint running;
	atomic_uint waiting; /* for the donor, longer than the timeout */
};

/* Allocates buffers for @threads and for the kernel's maximum of concurrent transfers. */
int loop_open(struct mount *m, unsigned int threads, struct weir_error *error);
void loop_close(struct mount *m); /* all buffers must be back */

/* Receives and serves the first request, FUSE_INIT. */
int loop_first(struct mount *m);
int loop_start(struct mount *m, unsigned int threads);
void loop_stop(struct mount *m); /* returns when all threads have ended */

/*
 * A receiving thread begins and ends a long wait for the donor. One thread that does not wait is
 * left to receive, or added up to LOOP_THREADS_MAX: only then does the kernel's interruption of a
 * wait arrive.
 */
void loop_wait_begin(struct mount *m);
void loop_wait_end(struct mount *m);

/* Claims the buffer of the request that this thread serves. The caller owes a buffer_put(). */
struct buffer *buffer_claim(void);
void buffer_put(struct mount *m, struct buffer *buffer);

#endif
