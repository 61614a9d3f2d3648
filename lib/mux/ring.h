/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock-free byte ring between one writer and one reader, possibly in different processes that
 * do not trust each other. Each side keeps a private position, publishes a copy here, and checks
 * the peer's copy against its own. A corrupt position makes the checking side fail with -EPROTO;
 * neither side ever accesses memory outside the ring.
 *
 * Positions count bytes since the beginning and never wrap; offsets in memory wrap at the ring's
 * size, a power of two.
 */
#ifndef WEIR_LIB_MUX_RING_H
#define WEIR_LIB_MUX_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WEIR_MUX_RING_MIN 4096u

/**
 * struct weir_mux_ring - the positions, shared by both sides
 * @tail: bytes written; stored by the writer
 * @head: bytes read; stored by the reader
 * @armed: bits of the waiters, 0 if there is none
 * @wanted: position of the other side to wait for; smaller progress wakes nobody
 *
 * Each has its own cache line, except @armed and @wanted, which share.
 */
struct weir_mux_ring {
	_Alignas(64) uint64_t tail;
	_Alignas(64) uint64_t head;
	_Alignas(64) uint32_t armed;
	uint64_t wanted;
};

/* One side's private view: memory, size in bytes (a power of two), own position. */
struct weir_mux_ring_end {
	struct weir_mux_ring *ring;
	char *bytes;
	uint32_t size;
	uint64_t position;
};

/**
 * weir_mux_ring_readable() - find the readable bytes
 * @end: the reader's side
 * @tail: receives the writer's position; bytes from @end->position up to it are readable
 *
 * The acquire pairs with weir_mux_ring_publish_tail(): the bytes are visible.
 * Context: the reader's thread.
 * Return: 0; -EPROTO the writer's position is impossible.
 */
static inline int weir_mux_ring_readable(const struct weir_mux_ring_end *end, uint64_t *tail)
{
	uint64_t at = __atomic_load_n(&end->ring->tail, __ATOMIC_ACQUIRE);

	if (at - end->position > end->size)
		return -EPROTO;
	*tail = at;
	return 0;
}

/**
 * weir_mux_ring_writable() - find the free room
 * @end: the writer's side
 * @bytes: receives the number of free bytes
 *
 * The acquire pairs with weir_mux_ring_publish_head(): the reader is done with the bytes to
 * overwrite.
 * Context: the writer's thread.
 * Return: 0; -EPROTO the reader's position is impossible.
 */
static inline int weir_mux_ring_writable(const struct weir_mux_ring_end *end, uint32_t *bytes)
{
	uint64_t unread = end->position - __atomic_load_n(&end->ring->head, __ATOMIC_ACQUIRE);

	if (unread > end->size)
		return -EPROTO;
	*bytes = end->size - (uint32_t)unread;
	return 0;
}

/* The address of @position, and the number of bytes from there to the end of the memory. */
static inline char *weir_mux_ring_at(const struct weir_mux_ring_end *end, uint64_t position)
{
	return end->bytes + (position & (end->size - 1));
}

static inline uint32_t weir_mux_ring_straight(const struct weir_mux_ring_end *end,
					      uint64_t position)
{
	return end->size - (uint32_t)(position & (end->size - 1));
}

/*
 * Copies @data in at the writer's position and advances it, without publishing. The caller has
 * checked the room.
 */
static inline void weir_mux_ring_write(struct weir_mux_ring_end *end, const void *data,
				       uint32_t length)
{
	uint32_t first = weir_mux_ring_straight(end, end->position);

	if (first > length)
		first = length;
	memcpy(weir_mux_ring_at(end, end->position), data, first);
	if (first < length)
		memcpy(end->bytes, (const char *)data + first, length - first);
	end->position += length;
}

/* Copies out from @position; the caller has checked that the bytes are there. Advances nothing. */
static inline void weir_mux_ring_peek(const struct weir_mux_ring_end *end, uint64_t position,
				      void *data, uint32_t length)
{
	uint32_t first = weir_mux_ring_straight(end, position);

	if (first > length)
		first = length;
	memcpy(data, weir_mux_ring_at(end, position), first);
	if (first < length)
		memcpy((char *)data + first, end->bytes, length - first);
}

/* Publish the writer's or the reader's position. The release pairs with the acquires above. */
static inline void weir_mux_ring_publish_tail(const struct weir_mux_ring_end *writer)
{
	__atomic_store_n(&writer->ring->tail, writer->position, __ATOMIC_RELEASE);
}

static inline void weir_mux_ring_publish_head(const struct weir_mux_ring_end *reader)
{
	__atomic_store_n(&reader->ring->head, reader->position, __ATOMIC_RELEASE);
}

/*
 * No lost wake-ups. One side publishes its position, then disarms, and wakes all waiters that
 * were armed. The other side arms, then checks the position once more before it sleeps. Both
 * modify one word, so the changes have a single order. If arming comes first, the disarming side
 * sees the waiter; if disarming comes first, the second check sees the new position.
 *
 * A waiter first stores the wanted position in @wanted. A publisher that has not reached @wanted
 * leaves the waiter armed, so a reader of a large message wakes when a large part is there.
 */

/*
 * Arms the waiter @who for @wanted. The other side must be able to reach @wanted without further
 * action by the waiter.
 * Return: the armed bits, the value to futex_wait(2) for on @ring->armed.
 */
static inline uint32_t weir_mux_ring_arm(struct weir_mux_ring *ring, uint32_t who, uint64_t wanted)
{
	__atomic_store_n(&ring->wanted, wanted, __ATOMIC_RELAXED);
	return __atomic_or_fetch(&ring->armed, who, __ATOMIC_SEQ_CST);
}

/* Return: the waiters that were armed; the caller wakes them. */
static inline uint32_t weir_mux_ring_disarm(struct weir_mux_ring *ring)
{
	return __atomic_exchange_n(&ring->armed, 0, __ATOMIC_SEQ_CST);
}

/*
 * As weir_mux_ring_disarm(), for a publisher at @position; 0 if @wanted is beyond. The fetch-or
 * with 0 changes nothing, but takes part in the order of the word: if a waiter is seen armed,
 * the load sees the waiter's @wanted.
 */
static inline uint32_t weir_mux_ring_disarm_at(struct weir_mux_ring *ring, uint64_t position)
{
	if (!__atomic_fetch_or(&ring->armed, 0, __ATOMIC_SEQ_CST) ||
	    (int64_t)(position - __atomic_load_n(&ring->wanted, __ATOMIC_RELAXED)) < 0)
		return 0;
	return weir_mux_ring_disarm(ring);
}

#endif
