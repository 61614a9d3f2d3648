/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers are reused last in, first out, while still in the caches. A block is assigned to a size
 * when no other block of the size has a free piece, and unassigned when whole again. A request
 * takes all its buffers at once or none: partial holders would block each other. There is no queue:
 * a large request may wait while small ones take all returned buffers.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "lib/client/memory/bounce_pool.h"
#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/client/memory/memory.h"
#include "lib/client/session.h"

#define PIECES_MAX (WEIR_BOUNCE_BUFFER_BYTES_MAX / WEIR_BOUNCE_BUFFER_BYTES_MIN)
#define AGAIN_NS (100 * WEIR_NS_PER_MS)

_Static_assert(WEIR_BOUNCE_BUFFER_BYTES_MIN << (WEIR_BOUNCE_BUFFER_ORDERS - 1) ==
		       WEIR_BOUNCE_BUFFER_BYTES_MAX,
	       "the last order is a whole block");
_Static_assert(PIECES_MAX <= 16, "bits of a block's free pieces");

struct weir_bounce_slab {
	struct weir_bounce_slab *next;
	struct weir_bounce_block blocks[WEIR_BOUNCE_POOL_BLOCKS];
};

void weir_bounce_pool_init(struct weir_bounce_pool *buffers)
{
	unsigned int i;

	pthread_mutex_init(&buffers->growing, NULL);
	weir_list_init(&buffers->whole);
	for (i = 0; i < WEIR_BOUNCE_BUFFER_ORDERS; i++)
		weir_list_init(&buffers->parts[i]);
}

void weir_bounce_pool_fini(struct weir_bounce_pool *buffers)
{
	struct weir_bounce_slab *slab;

	while ((slab = buffers->slabs)) {
		buffers->slabs = slab->next;
		free(slab);
	}
	pthread_mutex_destroy(&buffers->growing);
}

static unsigned int order_of(uint32_t bytes)
{
	unsigned int order = 0;

	while (WEIR_BOUNCE_BUFFER_BYTES_MIN << order < bytes)
		order++;
	return order;
}

static size_t piece_bytes(unsigned int order)
{
	return (size_t)WEIR_BOUNCE_BUFFER_BYTES_MIN << order;
}

/* The bits of all pieces of a block. */
static uint16_t all_pieces_mask(unsigned int order)
{
	return (uint16_t)((1u << (PIECES_MAX >> order)) - 1);
}

/* Down to return_piece(): with the lock held. */
static struct weir_bounce_block *block_with_room(struct weir_bounce_pool *buffers,
						 unsigned int order)
{
	struct weir_list *parts = &buffers->parts[order];
	struct weir_bounce_block *block;

	if (!weir_list_is_empty(parts))
		return weir_list_entry(parts->next, struct weir_bounce_block, link);
	if (weir_list_is_empty(&buffers->whole))
		return NULL;
	block = weir_list_entry(buffers->whole.next, struct weir_bounce_block, link);
	weir_list_del(&block->link);
	weir_list_add(parts, &block->link);
	block->order = (uint16_t)order;
	block->free = all_pieces_mask(order);
	return block;
}

static bool take_piece(struct weir_bounce_pool *buffers, unsigned int order,
		       struct weir_bounce_buffer *buffer)
{
	struct weir_bounce_block *block = block_with_room(buffers, order);
	unsigned int piece;

	if (!block)
		return false;
	piece = (unsigned int)__builtin_ctz(block->free);
	block->free &= (uint16_t)(block->free - 1);
	if (!block->free)
		weir_list_del(&block->link);
	*buffer = (struct weir_bounce_buffer){ block->base + piece * piece_bytes(order), block };
	return true;
}

static void return_piece(struct weir_bounce_pool *buffers, const struct weir_bounce_buffer *buffer)
{
	struct weir_bounce_block *block = buffer->block;
	bool was_out = !block->free;

	block->free |= (uint16_t)(1u << ((size_t)(buffer->addr - block->base) /
					 piece_bytes(block->order)));
	if (block->free == all_pieces_mask(block->order)) {
		weir_list_del(&block->link);
		weir_list_add(&buffers->whole, &block->link);
	} else if (was_out) {
		weir_list_add(&buffers->parts[block->order], &block->link);
	}
}

/* Return: number of buffers for @bytes; 0: not enough, and none was taken. */
static int take_for_request(struct weir_bounce_pool *buffers, uint32_t bytes,
			    struct weir_bounce_buffer *out)
{
	uint32_t left = bytes, part;
	int taken = 0;

	weir_spinlock_lock(&buffers->lock);
	while (left) {
		part = left < WEIR_BOUNCE_BUFFER_BYTES_MAX ? left : WEIR_BOUNCE_BUFFER_BYTES_MAX;
		if (!take_piece(buffers, order_of(part), &out[taken]))
			break;
		taken++;
		left -= part;
	}
	while (left && taken)
		return_piece(buffers, &out[--taken]);
	weir_spinlock_unlock(&buffers->lock);
	return taken;
}

static void add_block(struct weir_bounce_pool *buffers, struct weir_bounce_slab *slab, char *base,
		      uint32_t lkey)
{
	unsigned int i;

	slab->next = buffers->slabs;
	buffers->slabs = slab;
	weir_spinlock_lock(&buffers->lock);
	for (i = 0; i < WEIR_BOUNCE_POOL_BLOCKS; i++) {
		struct weir_bounce_block *block = &slab->blocks[i];

		block->base = base + (size_t)i * WEIR_BOUNCE_BUFFER_BYTES_MAX;
		block->lkey = lkey;
		block->free = 0;
		weir_list_add_tail(&buffers->whole, &block->link);
	}
	weir_spinlock_unlock(&buffers->lock);
	__atomic_store_n(&buffers->bytes, buffers->bytes + WEIR_BOUNCE_POOL_BYTES,
			 __ATOMIC_RELAXED);
}

/*
 * With @growing held. After a failure, further attempts are suppressed for a while: each takes
 * long, and all callers would queue. Return: 0 blocks were added; -EAGAIN; -ENOMEM.
 */
static int add_slab(struct weir_session *session)
{
	struct weir_bounce_pool *buffers = &session->buffers;
	struct weir_bounce_slab *slab;
	struct weir_pool *pool;

	if (session->tuning.pool_bytes_max - buffers->bytes < WEIR_BOUNCE_POOL_BYTES)
		return -EAGAIN;
	if (weir_now_ns() < buffers->again_ns)
		return buffers->bytes ? -EAGAIN : -ENOMEM;
	slab = malloc(sizeof(*slab));
	if (!slab || weir_pool_create(session, WEIR_BOUNCE_POOL_BYTES, 1, &pool, NULL)) {
		free(slab);
		buffers->again_ns = weir_now_ns() + AGAIN_NS;
		return buffers->bytes ? -EAGAIN : -ENOMEM;
	}
	add_block(buffers, slab, weir_pool_get(pool), weir_pool_memory(pool)->lkey);
	return 0;
}

int weir_bounce_pool_get(struct weir_session *session, uint32_t bytes,
			 struct weir_bounce_buffer *out)
{
	struct weir_bounce_pool *buffers = &session->buffers;
	int taken = take_for_request(buffers, bytes, out), rc = 0;

	if (taken)
		return taken;
	pthread_mutex_lock(&buffers->growing);
	/* Tries first: other threads may have grown the pool, or emptied it again. */
	while (!rc && !(taken = take_for_request(buffers, bytes, out)))
		rc = add_slab(session);
	pthread_mutex_unlock(&buffers->growing);
	return rc ? rc : taken;
}

uint32_t weir_bounce_pool_begin_wait(struct weir_bounce_pool *buffers)
{
	uint32_t returns;

	weir_spinlock_lock(&buffers->lock);
	buffers->waiters++;
	returns = buffers->returns;
	weir_spinlock_unlock(&buffers->lock);
	return returns;
}

void weir_bounce_pool_end_wait(struct weir_bounce_pool *buffers)
{
	weir_spinlock_lock(&buffers->lock);
	buffers->waiters--;
	weir_spinlock_unlock(&buffers->lock);
}

uint32_t weir_bounce_pool_wait(struct weir_bounce_pool *buffers, uint32_t returns,
			       uint64_t deadline_ns)
{
	weir_futex_wait(&buffers->returns, returns, deadline_ns);
	return __atomic_load_n(&buffers->returns, __ATOMIC_ACQUIRE);
}

void weir_bounce_pool_put(struct weir_bounce_pool *buffers, const struct weir_bounce_buffer *buffer)
{
	bool is_wanted;

	weir_spinlock_lock(&buffers->lock);
	is_wanted = buffers->waiters;
	if (is_wanted)
		__atomic_store_n(&buffers->returns, buffers->returns + 1, __ATOMIC_RELEASE);
	return_piece(buffers, buffer);
	weir_spinlock_unlock(&buffers->lock);
	if (is_wanted)
		weir_futex_wake(&buffers->returns, INT_MAX);
}
