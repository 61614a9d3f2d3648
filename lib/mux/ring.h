/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring of bytes between the one who writes and the one who reads, without locks. Either end may
 * be in another process, and believes nothing of what the other says: each keeps its own
 * position to itself, publishes it here for the other, and checks the other's against its own.
 * So a wrong index harms who wrote it: he gets -EPROTO, and nobody reads or writes outside.
 *
 * Positions count bytes from the beginning and never wrap; in the memory they do, at the
 * ring's size, a power of two.
 */
#ifndef WEIR_LIB_MUX_RING_H
#define WEIR_LIB_MUX_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WEIR_MUX_RING_MIN 4096u
#define WEIR_MUX_RING_MAX (1u << 30)

/**
 * struct weir_mux_ring - what both ends see
 * @tail: what has been written, the writer's; @head: what has been read, the reader's
 * @armed: who waits for a change: bits of the waiters; 0: nobody
 * @wanted: the other's position that they wait for; what comes before it is not worth a wake-up
 *
 * Each on a cache line of its own, but the last two on one.
 */
struct weir_mux_ring {
	_Alignas(64) uint64_t tail;
	_Alignas(64) uint64_t head;
	_Alignas(64) uint32_t armed;
	uint64_t wanted;
};

/* One end's view: the memory, and its own position. @size: bytes, a power of two. */
struct weir_mux_ring_end {
	struct weir_mux_ring *ring;
	char *bytes;
	uint32_t size;
	uint64_t position;
};

/**
 * weir_mux_ring_readable() - what is there to be read
 * @end: the reader's
 * @tail: receives the writer's position: from @end->position up to it, the bytes are there
 *
 * Acquires: what was written before it was published is seen.
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
 * weir_mux_ring_writable() - what room there is
 * @end: the writer's
 * @bytes: receives it
 *
 * Acquires: what is overwritten has been read.
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

/* Where a position lies, and how many bytes there are from it to the end of the memory. */
static inline char *weir_mux_ring_at(const struct weir_mux_ring_end *end, uint64_t position)
{
	return end->bytes + (position & (end->size - 1));
}

static inline uint32_t weir_mux_ring_straight(const struct weir_mux_ring_end *end,
					      uint64_t position)
{
	return end->size - (uint32_t)(position & (end->size - 1));
}

/* Copies in behind the writer's position, and moves it; there is room. Publishes nothing. */
static inline void weir_mux_ring_write(struct weir_mux_ring_end *end, const void *data,
				       uint32_t length)
{
	uint32_t first = weir_mux_ring_straight(end, end->position);

	if (first > length)
		first = length;
	memcpy(weir_mux_ring_at(end, end->position), data, first);
	memcpy(end->bytes, (const char *)data + first, length - first);
	end->position += length;
}

/* Copies out from @position on; it is there. Moves and publishes nothing. */
static inline void weir_mux_ring_peek(const struct weir_mux_ring_end *end, uint64_t position,
				      void *data, uint32_t length)
{
	uint32_t first = weir_mux_ring_straight(end, position);

	if (first > length)
		first = length;
	memcpy(data, weir_mux_ring_at(end, position), first);
	memcpy((char *)data + first, end->bytes, length - first);
}

/* The writer's, or the reader's, position for all to see. Pairs with the acquires above. */
static inline void weir_mux_ring_publish_tail(const struct weir_mux_ring_end *writer)
{
	__atomic_store_n(&writer->ring->tail, writer->position, __ATOMIC_RELEASE);
}

static inline void weir_mux_ring_publish_head(const struct weir_mux_ring_end *reader)
{
	__atomic_store_n(&reader->ring->head, reader->position, __ATOMIC_RELEASE);
}

/*
 * How nobody misses a change. One end publishes, and then disarms: it tells whoever was
 * armed. The other arms, and then looks once more before it sleeps. Both change one word, whose
 * changes have one order: either the arming comes first, and is seen by the disarming; or the
 * disarming does, and the look that follows the arming sees what was published before it.
 *
 * Who arms says before from which position on he is to be told; who publishes what lies before that
 * leaves him armed. So a reader of what is large is woken when much of it is there.
 */

/*
 * @wanted: a position that the other end can come to whatever this one does not do meanwhile.
 * Return: what is armed now, for a futex(2) on @ring->armed.
 */
static inline uint32_t weir_mux_ring_arm(struct weir_mux_ring *ring, uint32_t who, uint64_t wanted)
{
	__atomic_store_n(&ring->wanted, wanted, __ATOMIC_RELAXED);
	return __atomic_or_fetch(&ring->armed, who, __ATOMIC_SEQ_CST);
}

/* Return: who was armed, and has to be told. */
static inline uint32_t weir_mux_ring_disarm(struct weir_mux_ring *ring)
{
	return __atomic_exchange_n(&ring->armed, 0, __ATOMIC_SEQ_CST);
}

/*
 * The same of who has published @position; 0 if that is not what they wait for. The first change
 * changes nothing, and is for the order of both: who sees that one is armed sees what he wants.
 */
static inline uint32_t weir_mux_ring_disarm_at(struct weir_mux_ring *ring, uint64_t position)
{
	if (!__atomic_fetch_or(&ring->armed, 0, __ATOMIC_SEQ_CST) ||
	    (int64_t)(position - __atomic_load_n(&ring->wanted, __ATOMIC_RELAXED)) < 0)
		return 0;
	return weir_mux_ring_disarm(ring);
}

#endif
