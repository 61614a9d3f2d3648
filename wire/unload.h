/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unloaded writes: the messages of channel WIRE_CHANNEL_UNLOAD.
 *
 * The WELCOME names a ring of slots. The client writes into the slots in order, with immediate: the
 * target address and the data. The immediate is the region's rkey; the length is that of the write.
 * The donor checks and copies the writes in order of arrival, and reports the number done in the
 * immediate of an empty message, a return. A client has at most as many writes in flight as there
 * are slots. It posts as many receives before the first write, and reposts each before it uses the
 * slots that the return frees.
 *
 * A refused slot ends the buffer: all slots before are done, and no later slot ever is. The channel
 * that replaces this one gets a new buffer.
 */
#ifndef WEIR_WIRE_UNLOAD_H
#define WEIR_WIRE_UNLOAD_H

#include "wire/platform.h"

#define WIRE_UNLOAD_SLOTS 64
#define WIRE_UNLOAD_SLOT_BYTES 256

struct wire_unload_slot {
	uint64_t addr; /* target address */
	uint8_t data[WIRE_UNLOAD_SLOT_BYTES - 8];
};
static_assert(sizeof(struct wire_unload_slot) == WIRE_UNLOAD_SLOT_BYTES, "wire_unload_slot");

/**
 * struct wire_unload_return - contents of a return
 * @done: writes copied since the channel came up, modulo 2^16
 * @is_refused: the next write is refused, and nothing more is copied
 * @pause_ms: the donor's CPU has no time for unloaded writes for this long
 */
struct wire_unload_return {
	uint16_t done;
	bool is_refused;
	uint8_t pause_ms;
};

/*
 * Reads a slot after a write of @length bytes. @addr: receives the target address, read once,
 * because the client may overwrite the slot at any time. Return: the number of data bytes; 0: none,
 * or too many.
 */
static inline uint32_t wire_unload_slot_decode(const struct wire_unload_slot *slot, uint32_t length,
					       uint64_t *addr)
{
	*addr = __atomic_load_n(&slot->addr, __ATOMIC_RELAXED);
	return length <= sizeof(*slot) && length > sizeof(slot->addr) ?
		       length - sizeof(slot->addr) :
		       0;
}

/* Convert to and from the immediate, in host order; unknown bits are ignored. */
static inline uint32_t wire_unload_return_encode(const struct wire_unload_return *r)
{
	return r->done | (uint32_t)r->is_refused << 16 | (uint32_t)r->pause_ms << 24;
}

static inline struct wire_unload_return wire_unload_return_decode(uint32_t immediate)
{
	return (struct wire_unload_return){
		.done = (uint16_t)immediate,
		.is_refused = immediate >> 16 & 1,
		.pause_ms = (uint8_t)(immediate >> 24),
	};
}

#endif
