/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chunks of one huge page each, never unmapped: reserved huge pages, or ordinary memory that may
 * become huge. The first piece of a chunk is its head, so the address of a piece leads to the
 * chunk.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/unload/hooks/fork.h"
#include "preload/unload/slot_pool.h"

#define HUGE_SHIFT 21
#define HUGE (1ul << HUGE_SHIFT)
#define PIECES (HUGE / SLOT_POOL_BYTES)

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

static void *map(size_t length, int flags)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			-1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A huge page starts at a multiple of its size; memory mapped around the page is unmapped again. */
static char *map_aligned(void)
{
	char *base = map(2 * HUGE, 0), *at;

	if (!base)
		return NULL;
	at = (char *)(((uintptr_t)base + HUGE - 1) & ~(HUGE - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	munmap(at + HUGE, (size_t)(base + HUGE - at));
	madvise(at, HUGE, MADV_HUGEPAGE);
	return at;
}

/* Context: with lock. */
static struct slot_chunk *chunk_make(void)
{
	struct slot_chunk *chunk = map(HUGE, MAP_HUGETLB | HUGE_SHIFT << MAP_HUGE_SHIFT);
	uint32_t i;

	if (!chunk)
		chunk = (struct slot_chunk *)map_aligned();
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
	struct slot_chunk *chunk = (struct slot_chunk *)((uintptr_t)slots & ~(HUGE - 1));

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
