/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the connections' rings, for many at a time: a registration each would be many entries
 * of the NIC's translation cache, which sharing is to spare. The device reads the rings
 * out; the rings in are the CPU's alone. Chunks stay until the mux is closed.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/mux/mux.h"

#define ALL_TAKEN ((1u << WEIR_CHUNK_CONNS) - 1)

static void chunk_free(struct weir_chunk *chunk)
{
	if (chunk->mr)
		ibv_dereg_mr(chunk->mr);
	if (chunk->base)
		munmap(chunk->base, chunk->length);
	weir_list_del(&chunk->link);
	free(chunk);
}

static int chunk_map(struct weir_mux *mux, struct weir_chunk *chunk)
{
	size_t rings = (size_t)mux->options.ring_bytes * WEIR_CHUNK_CONNS;

	chunk->length = 2 * rings + 2 * WEIR_CHUNK_CONNS * sizeof(struct weir_ring);
	chunk->base = mmap(NULL, chunk->length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk->base == MAP_FAILED) {
		chunk->base = NULL;
		return -ENOMEM;
	}
	chunk->rings = (void *)(chunk->base + 2 * rings);
	chunk->mr = ibv_reg_mr(mux->pd, chunk->base, rings, IBV_ACCESS_LOCAL_WRITE);
	return chunk->mr ? 0 : -ENOMEM;
}

static int chunk_new(struct weir_mux *mux, struct weir_chunk **out)
{
	struct weir_chunk *chunk = calloc(1, sizeof(*chunk));
	int rc;

	if (!chunk)
		return -ENOMEM;
	weir_list_init(&chunk->link);
	rc = chunk_map(mux, chunk);
	if (rc) {
		chunk_free(chunk);
		return rc;
	}
	weir_list_add(&mux->chunks, &chunk->link);
	*out = chunk;
	return 0;
}

/* Those with room stand before those without. */
static struct weir_chunk *chunk_with_room(const struct weir_mux *mux)
{
	struct weir_chunk *chunk = weir_list_entry(mux->chunks.next, struct weir_chunk, link);

	if (weir_list_is_empty(&mux->chunks) || chunk->taken == ALL_TAKEN)
		return NULL;
	return chunk;
}

int weir_chunk_take(struct weir_mux *mux, struct weir_conn *conn)
{
	struct weir_chunk *chunk = chunk_with_room(mux);
	size_t size = mux->options.ring_bytes;
	unsigned int slot;
	int rc = chunk ? 0 : chunk_new(mux, &chunk);

	if (rc)
		return rc;
	slot = (unsigned int)__builtin_ctz(~chunk->taken);
	chunk->taken |= 1u << slot;
	memset(&chunk->rings[2 * slot], 0, 2 * sizeof(struct weir_ring));
	conn->chunk = chunk;
	conn->slot = slot;
	conn->out = (struct weir_ring_end){ &chunk->rings[2 * slot], chunk->base + slot * size,
					    (uint32_t)size, 0 };
	conn->in = (struct weir_ring_end){ &chunk->rings[2 * slot + 1],
					   chunk->base + (WEIR_CHUNK_CONNS + slot) * size,
					   (uint32_t)size, 0 };
	conn->leaving = conn->out;
	conn->arriving = conn->in;
	if (chunk->taken == ALL_TAKEN) {
		weir_list_del(&chunk->link);
		weir_list_add_tail(&mux->chunks, &chunk->link);
	}
	return 0;
}

void weir_chunk_give(struct weir_conn *conn)
{
	struct weir_chunk *chunk = conn->chunk;

	if (!chunk)
		return;
	chunk->taken &= ~(1u << conn->slot);
	weir_list_del(&chunk->link);
	weir_list_add(&conn->mux->chunks, &chunk->link);
}

void weir_chunks_free(struct weir_mux *mux)
{
	while (!weir_list_is_empty(&mux->chunks))
		chunk_free(weir_list_entry(mux->chunks.next, struct weir_chunk, link));
}
