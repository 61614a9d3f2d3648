/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the connections' rings, for many at a time: a registration each would be many entries
 * of the NIC's translation cache, which sharing is to spare. The device reads the rings
 * out, and writes the rings in, of all connections by one key: the muxes that have it have proven
 * theirs. Chunks stay as long as their owner does.
 *
 * A device may take milliseconds to register one: nobody holds the lock meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/mux/local/local.h"

#define ALL_TAKEN ((1u << WEIR_CHUNK_CONNS) - 1)

static void chunk_destroy(struct weir_chunk *chunk)
{
	if (chunk->mr)
		ibv_dereg_mr(chunk->mr);
	if (chunk->mr_in)
		ibv_dereg_mr(chunk->mr_in);
	if (chunk->base)
		munmap(chunk->base, chunk->length);
	weir_fd_close(&chunk->fd);
	weir_list_del(&chunk->link);
	free(chunk);
}

static int chunk_map(struct weir_owner *owner, struct weir_chunk *chunk)
{
	size_t rings = (size_t)owner->hub->options.ring_bytes * WEIR_CHUNK_CONNS;

	chunk->base = weir_rings_map(chunk->length, &chunk->fd);
	if (!chunk->base || (owner->is_shared && chunk->fd < 0))
		return -ENOMEM;
	chunk->mr = ibv_reg_mr(owner->hub->pd, chunk->base, rings, IBV_ACCESS_LOCAL_WRITE);
	if (chunk->mr)
		chunk->mr_in = ibv_reg_mr(owner->hub->pd, chunk->base + rings, rings,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!owner->is_shared)
		weir_fd_close(&chunk->fd);
	return chunk->mr_in ? 0 : -ENOMEM;
}

/* It is in no list, and not counted. Without hub->lock. NULL: no memory. */
static struct weir_chunk *chunk_new(struct weir_owner *owner, size_t length)
{
	struct weir_chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return NULL;
	weir_list_init(&chunk->link);
	chunk->owner = owner;
	chunk->fd = -1;
	chunk->length = length;
	if (!chunk_map(owner, chunk))
		return chunk;
	chunk_destroy(chunk);
	return NULL;
}

int weir_chunk_make(struct weir_owner *owner, uint64_t deadline_ns)
{
	struct weir_hub *hub = owner->hub;
	const size_t length = weir_chunk_length(hub->options.ring_bytes);
	struct weir_chunk *chunk;
	int rc;

	/* One at a time: in what one makes others may find room. */
	if (owner->is_making)
		return weir_owner_wait(owner, &owner->changed, deadline_ns);
	rc = weir_owner_take_bytes(owner, length);
	if (rc)
		return rc;
	owner->is_making = true;
	pthread_mutex_unlock(&hub->lock);
	chunk = chunk_new(owner, length);
	pthread_mutex_lock(&hub->lock);
	owner->is_making = false;
	if (chunk) {
		chunk->number = owner->nr_chunks++;
		weir_list_add(&owner->chunks, &chunk->link);
	} else {
		weir_owner_give_bytes(owner, length);
	}
	pthread_cond_broadcast(&owner->changed);
	return chunk ? 0 : -ENOMEM;
}

void weir_chunk_free(struct weir_chunk *chunk)
{
	struct weir_owner *owner = chunk->owner;
	const size_t length = chunk->length;

	chunk_destroy(chunk);
	pthread_mutex_lock(&owner->hub->lock);
	weir_owner_give_bytes(owner, length);
	pthread_mutex_unlock(&owner->hub->lock);
}

/* The bits of @slots from @first on. */
static uint32_t bits_of(unsigned int first, unsigned int slots)
{
	return ((1u << slots) - 1) << first;
}

/* A place for @slots in a row, which begins at a multiple of them. -1: there is none. */
static int place_find(const struct weir_chunk *chunk, unsigned int slots)
{
	unsigned int first;

	for (first = 0; first < WEIR_CHUNK_CONNS; first += slots)
		if (!(chunk->taken & bits_of(first, slots)))
			return (int)first;
	return -1;
}

/* Those with room stand before those without. */
static struct weir_chunk *chunk_with_room(const struct weir_owner *owner, unsigned int slots)
{
	struct weir_list *at;

	for (at = owner->chunks.next; at != &owner->chunks; at = at->next) {
		struct weir_chunk *chunk = weir_list_entry(at, struct weir_chunk, link);

		if (chunk->taken == ALL_TAKEN)
			break;
		if (place_find(chunk, slots) >= 0)
			return chunk;
	}
	return NULL;
}

size_t weir_chunk_length(uint32_t size)
{
	return WEIR_CHUNK_CONNS * (2 * (size_t)size + sizeof(struct weir_door));
}

struct weir_door *weir_chunk_door(char *base, unsigned int slot, uint32_t size)
{
	return (struct weir_door *)(base + WEIR_CHUNK_CONNS * 2 * (size_t)size) + slot;
}

void weir_chunk_ends(char *base, unsigned int slot, uint32_t size, uint32_t length,
		     struct weir_ring_end *out, struct weir_ring_end *in)
{
	struct weir_door *door = weir_chunk_door(base, slot, size);

	*out = (struct weir_ring_end){ &door->out, base + (size_t)slot * size, length, 0 };
	*in = (struct weir_ring_end){ &door->in, base + (size_t)(WEIR_CHUNK_CONNS + slot) * size,
				      length, 0 };
}

int weir_chunk_take(struct weir_owner *owner, struct weir_circuit *conn, unsigned int slots)
{
	const uint32_t size = owner->hub->options.ring_bytes;
	struct weir_chunk *chunk = chunk_with_room(owner, slots);

	if (!chunk)
		return -EAGAIN;
	conn->chunk = chunk;
	conn->slot = (unsigned int)place_find(chunk, slots);
	conn->nr_slots = slots;
	conn->size = size * slots;
	conn->door = weir_chunk_door(chunk->base, conn->slot, size);
	memset(conn->door, 0, sizeof(*conn->door));
	weir_chunk_ends(chunk->base, conn->slot, size, conn->size, &conn->leaving,
			&conn->arriving);
	conn->app.door = conn->door;
	conn->app.out = conn->leaving;
	conn->app.in = conn->arriving;
	chunk->taken |= bits_of(conn->slot, slots);
	if (chunk->taken == ALL_TAKEN) {
		weir_list_del(&chunk->link);
		weir_list_add_tail(&owner->chunks, &chunk->link);
	}
	return 0;
}

void weir_chunk_give(struct weir_circuit *conn)
{
	struct weir_chunk *chunk = conn->chunk;

	if (!chunk)
		return;
	chunk->taken &= ~bits_of(conn->slot, conn->nr_slots);
	weir_list_del(&chunk->link);
	weir_list_add(&conn->owner->chunks, &chunk->link);
}
