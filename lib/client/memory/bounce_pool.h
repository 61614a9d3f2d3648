/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session's registered buffers for what is copied, in sizes of powers of two: a request of 4 KiB
 * takes 4 KiB of them, so that the first 4 MiB do for a thousand. They come in blocks of one
 * largest buffer, each cut up for one size at a time, and whole again when all of it has come back.
 * More are made when all are out, and stay until the session is closed.
 */
#ifndef WEIR_LIB_CLIENT_MEMORY_BOUNCE_POOL_H
#define WEIR_LIB_CLIENT_MEMORY_BOUNCE_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/list.h"
#include "lib/base/spinlock.h"

struct weir_session;

#define WEIR_BOUNCE_BUFFER_BYTES_MIN (4u << 10)
#define WEIR_BOUNCE_BUFFER_BYTES_MAX (64u << 10)
#define WEIR_BOUNCE_BUFFER_ORDERS 5 /* 4 KiB, twice that, ... 64 KiB */
#define WEIR_BOUNCE_POOL_BLOCKS 64 /* made at a time */
#define WEIR_BOUNCE_POOL_BYTES (WEIR_BOUNCE_POOL_BLOCKS * WEIR_BOUNCE_BUFFER_BYTES_MAX) /* 4 MiB */

/**
 * struct weir_bounce_block - room for one buffer of the largest size, or for some that are smaller
 * @link: among those of its order that have a free piece, among the whole ones, or nowhere: all of
 *	it is out
 * @base, @lkey: its memory
 * @order: its pieces are of WEIR_BOUNCE_BUFFER_BYTES_MIN << @order; while it is not whole
 * @free: bit n: piece n is not out
 */
struct weir_bounce_block {
	struct weir_list link;
	char *base;
	uint32_t lkey;
	uint16_t order;
	uint16_t free;
};

/**
 * struct weir_bounce_pool - of one session
 * @lock: guards @parts, @whole, the blocks, @returns and @waiters; innermost
 * @growing: held by who makes more; guards the rest. Without any other lock, or the NIC's, held
 * @parts: blocks with a free piece, by order
 * @whole: blocks of which nothing is out
 * @slabs: the blocks, as they were made
 * @bytes: of all; atomic to read
 * @again_ns: no more memory was to be had; when to try again
 * @returns: how many have come back while somebody waited; a futex
 * @waiters: how many wait for that
 */
struct weir_bounce_pool {
	struct weir_spinlock lock;
	pthread_mutex_t growing;
	struct weir_list parts[WEIR_BOUNCE_BUFFER_ORDERS];
	struct weir_list whole;
	struct weir_bounce_slab *slabs;
	size_t bytes;
	uint64_t again_ns;
	uint32_t returns;
	uint32_t waiters;
};

/* One that is out. */
struct weir_bounce_buffer {
	char *addr;
	struct weir_bounce_block *block;
};

void weir_bounce_pool_init(struct weir_bounce_pool *buffers);

/* All have been put back. Their memory is one of the session's pools, and goes with those. */
void weir_bounce_pool_fini(struct weir_bounce_pool *buffers);

/**
 * weir_bounce_pool_get() - take as many as hold a request
 * @session: whose
 * @bytes: they are to hold: WEIR_BOUNCE_BUFFER_BYTES_MAX each, and the last one what is left
 * @out: receives them
 *
 * More are made where all are out, up to the session's pool_bytes_max.
 *
 * Context: any thread; without nic->lock. It takes as long as registering memory does where more
 * are made.
 * Return: how many; -EAGAIN too many are out, and will come back; -ENOMEM there are none.
 */
int weir_bounce_pool_get(struct weir_session *session, uint32_t bytes,
			 struct weir_bounce_buffer *out);

/**
 * weir_bounce_pool_begin_wait() - say that one is waited for
 *
 * Then try again, and if there is none weir_bounce_pool_wait(). Owes a weir_bounce_pool_end_wait(). Context:
 * any thread; without nic->lock.
 * Return: what weir_bounce_pool_wait() wants to know.
 */
uint32_t weir_bounce_pool_begin_wait(struct weir_bounce_pool *buffers);
void weir_bounce_pool_end_wait(struct weir_bounce_pool *buffers);

/*
 * Sleeps until one has come back since @returns were told, or until @deadline_ns. It may wake early.
 * Return: @returns for the next time.
 */
uint32_t weir_bounce_pool_wait(struct weir_bounce_pool *buffers, uint32_t returns,
			       uint64_t deadline_ns);

/* Context: any thread. */
void weir_bounce_pool_put(struct weir_bounce_pool *buffers,
			  const struct weir_bounce_buffer *buffer);

#endif
