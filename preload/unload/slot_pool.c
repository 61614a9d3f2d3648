/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chunks of one huge page each, never unmapped: reserved huge pages, or ordinary memory that may
 * become huge. The first piece of a chunk is its head, so the address of a piece leads to the
 * chunk.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/huge_map.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/slot_pool.h"

#define PIECES (WEIR_HUGE_BYTES / SLOT_POOL_BYTES)

/* @free: a stack of the numbers of free pieces, @count of them. */
struct slot_chunk {
	struct slot_chunk *next;
	uint32_t count;
	uint8_t free[PIECES - 1];
};

_Static_assert(sizeof(struct slot_chunk) <= SLOT_POOL_BYTES && PIECES <= UINT8_MAX + 1,
	       "a head fits");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot_chunk *chunks;

/* Context: with lock. */
static struct slot_chunk *chunk_make(void)
{
	bool is_reserved;
	struct slot_chunk *chunk =
		(struct slot_chunk *)weir_huge_map(WEIR_HUGE_BYTES, &is_reserved);
	uint32_t i;

	if (!chunk)
		return NULL;
	for (i = 1; i < PIECES; i++)
		chunk->free[chunk->count++] = (uint8_t)(PIECES - i);
	chunk->next = chunks;
	chunks = chunk;
	return chunk;
}

struct wire_unload_slot *slot_pool_take(void)
{
	struct slot_chunk *chunk;
	char *slots = NULL;

	pthread_mutex_lock(&lock);
	for (chunk = chunks; chunk && !chunk->count; chunk = chunk->next)
		;
	if (!chunk)
		chunk = chunk_make();
	if (chunk)
		slots = (char *)chunk + chunk->free[--chunk->count] * SLOT_POOL_BYTES;
	pthread_mutex_unlock(&lock);
	if (slots)
		memset(slots, 0, SLOT_POOL_BYTES);
	return (struct wire_unload_slot *)slots;
}

void slot_pool_give(struct wire_unload_slot *slots)
{
	struct slot_chunk *chunk = (struct slot_chunk *)((uintptr_t)slots & ~(WEIR_HUGE_BYTES - 1));

	if (!slots)
		return;
	pthread_mutex_lock(&lock);
	chunk->free[chunk->count++] =
		(uint8_t)(((uintptr_t)slots - (uintptr_t)chunk) / SLOT_POOL_BYTES);
	pthread_mutex_unlock(&lock);
}

void slot_pool_forget(void)
{
	chunks = NULL;
	pthread_mutex_init(&lock, NULL);
}
