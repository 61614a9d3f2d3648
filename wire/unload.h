/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unloaded writes. A target names a ring of slots: the donor in the WELCOME of channel
 * WIRE_CHANNEL_UNLOAD, a program under "weir run --unload" in its answer to an offer: see
 * discovery.h. The initiator writes into the slots in order, with immediate: the target address and
 * the data. The immediate is the region's rkey; the length is that of the write. The target checks
 * and copies the writes in order of arrival, and reports the number done in a return. An initiator
 * has at most as many writes in flight as there are slots.
 *
 * A return to a client is the immediate of an empty message. The client posts as many receives as
 * there are slots before the first write, and reposts each before it uses the slots that the return
 * frees. A return to a program is a word, written by RDMA.
 *
 * A refused slot ends the buffer: all slots before are done, and no later slot ever is. The channel
 * or the offer that replaces this one gets a new buffer.
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
 * @pause_ms: the target's CPU has no time for unloaded writes for this long
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

/* A return as a word: with its complement, because devices only promise that bytes arrive. */
static inline uint64_t wire_unload_return_word(const struct wire_unload_return *r)
{
	uint32_t word = wire_unload_return_encode(r);

	return word | (uint64_t)~word << 32;
}

/* Return: true if all of a return has arrived in @word; then @out holds the return. */
static inline bool wire_unload_return_is_whole(uint64_t word, struct wire_unload_return *out)
{
	if ((uint32_t)word != ~(uint32_t)(word >> 32))
		return false;
	*out = wire_unload_return_decode((uint32_t)word);
	return true;
}

#endif
