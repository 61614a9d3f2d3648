/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session's registered buffers for copying, in powers of two: a request of 4 KiB takes 4 KiB, so
 * that the first 4 MiB suffice for a thousand. The pool consists of blocks, each as large as the
 * largest buffer. A block is divided for one size at a time, and is whole again when all pieces are
 * back. The pool grows when all buffers are in use, and shrinks only when the session closes.
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
#define WEIR_BOUNCE_POOL_BLOCKS 64 /* allocated at a time */
#define WEIR_BOUNCE_POOL_BYTES (WEIR_BOUNCE_POOL_BLOCKS * WEIR_BOUNCE_BUFFER_BYTES_MAX) /* 4 MiB */

/**
 * struct weir_bounce_block - room for one largest buffer, or several smaller ones
 * @link: in the list of its order while a piece is free, in the list of whole blocks, or in none if
 *	all pieces are in use
 * @base, @lkey: its memory
 * @order: pieces have WEIR_BOUNCE_BUFFER_BYTES_MIN << @order bytes; unless whole
 * @free: bit n: piece n is free
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
 * @growing: held while adding blocks; guards the other fields. Taken without any other lock
 * @parts: blocks with a free piece, by order
 * @whole: whole blocks
 * @slabs: all blocks, as allocated
 * @bytes: of all blocks; atomic to read
 * @again_ns: after a failed allocation: time of the next attempt
 * @returns: buffers returned while a thread waited; a futex
 * @waiters: threads that wait for a buffer
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

/* A buffer in use. */
struct weir_bounce_buffer {
	char *addr;
	struct weir_bounce_block *block;
};

void weir_bounce_pool_init(struct weir_bounce_pool *buffers);

/* All buffers are back. Their memory belongs to the session's pools and is freed with these. */
void weir_bounce_pool_fini(struct weir_bounce_pool *buffers);

/**
 * weir_bounce_pool_get() - take the buffers for a request
 * @session: the owner
 * @bytes: needed: WEIR_BOUNCE_BUFFER_BYTES_MAX in each buffer, and the rest in the last
 * @out: receives the buffers
 *
 * When all are in use, the pool grows up to the session's pool_bytes_max.
 *
 * Context: any thread; without nic->lock. Growing takes as long as registering memory.
 * Return: number of buffers; -EAGAIN too many are in use, try again; -ENOMEM the pool has none.
 */
int weir_bounce_pool_get(struct weir_session *session, uint32_t bytes,
			 struct weir_bounce_buffer *out);

/**
 * weir_bounce_pool_begin_wait() - announce a waiter
 *
 * Then try again, and on failure call weir_bounce_pool_wait(). Owes a weir_bounce_pool_end_wait().
 *
 * Context: any thread; without nic->lock.
 * Return: @returns for weir_bounce_pool_wait().
 */
uint32_t weir_bounce_pool_begin_wait(struct weir_bounce_pool *buffers);
void weir_bounce_pool_end_wait(struct weir_bounce_pool *buffers);

/*
 * Sleeps until a buffer has come back since @returns was read, or until @deadline_ns; may wake
 * early.
 * Return: @returns for the next call.
 */
uint32_t weir_bounce_pool_wait(struct weir_bounce_pool *buffers, uint32_t returns,
			       uint64_t deadline_ns);

/* Context: any thread. */
void weir_bounce_pool_put(struct weir_bounce_pool *buffers,
			  const struct weir_bounce_buffer *buffer);

#endif
