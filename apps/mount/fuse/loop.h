/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The threads that receive the kernel's requests, and the buffers they receive them in.
 *
 * Buffers are registered with the session. A request stays in the buffer that it came in: the
 * payload of a write goes from there to the donor, the data of a read comes from the donor to
 * there, and the kernel copies from and to it. A transfer that outlives the receiving thread's
 * turn claims the buffer, and the thread takes another one.
 *
 * A buffer has a page of its own before the payload: the transfer itself lives there, and FUSE's
 * two headers end where the payload begins, so that a write's payload lies on whole pages.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_LOOP_H
#define WEIR_APPS_MOUNT_FUSE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mount;
struct weir_pool;
struct weir_memory;
struct weir_error;

#define LOOP_THREADS_MAX 64u
#define BUFFER_PAGE 4096u

struct buffer {
	_Alignas(64) char head[BUFFER_PAGE];
	char data[];
};

struct loop {
	struct weir_pool *pool;
	struct weir_memory *memory; /* that the pool's buffers lie in */
	pthread_t thread[LOOP_THREADS_MAX];
	unsigned int threads; /* started, and not joined */
	atomic_uint running;
};

/* Takes buffers for @threads and as many transfers as the kernel may have under way. */
int loop_open(struct mount *m, unsigned int threads, struct weir_error *error);
void loop_close(struct mount *m); /* all buffers are back */

/* Receives and serves the first request, FUSE_INIT, that all else depends on. */
int loop_first(struct mount *m);
int loop_start(struct mount *m, unsigned int threads);
void loop_stop(struct mount *m); /* returns when no thread is left */

/* The buffer of the request that this thread is serving. The caller owes a buffer_put(). */
struct buffer *buffer_claim(void);
void buffer_put(struct mount *m, struct buffer *buffer);

#endif
