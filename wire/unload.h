/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unloaded writes: what goes over the channel WIRE_CHANNEL_UNLOAD.
 *
 * A client writes, with immediate, into the slots of a buffer that its WELCOME named, one after the
 * other, round and round: where the data belong, and the data. The immediate is the region's rkey.
 * The length is that of the write. The donor checks and copies in the order of arrival, and tells
 * how many are done by an empty message whose immediate is a return. A client has at most as many
 * under way as there are slots, and posts as many receives before the first; it gives each one back
 * before it uses the slots that a return frees.
 *
 * A slot that is refused ends the buffer: those before it are done, none behind it ever is. The
 * channel that replaces it gets another.
 */
#ifndef WEIR_WIRE_UNLOAD_H
#define WEIR_WIRE_UNLOAD_H

#include "wire/platform.h"

#define WIRE_UNLOAD_SLOTS 64
#define WIRE_UNLOAD_SLOT_BYTES 256

struct wire_unload_slot {
	uint64_t addr; /* where the data belong */
	uint8_t data[WIRE_UNLOAD_SLOT_BYTES - 8];
};
static_assert(sizeof(struct wire_unload_slot) == WIRE_UNLOAD_SLOT_BYTES, "wire_unload_slot");

/**
 * struct wire_unload_return - what a return says
 * @done: writes copied since the channel came up, modulo 2^16
 * @is_refused: the one after those is refused, and nothing more is copied
 * @pause_ms: the donor's CPU has no time for more for so long
 */
struct wire_unload_return {
	uint16_t done;
	bool is_refused;
	uint8_t pause_ms;
};

/*
 * What a slot says of which @length bytes were written. @addr: where the data belong, looked at
 * once, for whoever filled the slot may do so again. Return: how many bytes they are; 0: there are
 * none, or more than there is room for.
 */
static inline uint32_t wire_unload_slot_decode(const struct wire_unload_slot *slot, uint32_t length,
					       uint64_t *addr)
{
	*addr = __atomic_load_n(&slot->addr, __ATOMIC_RELAXED);
	return length <= sizeof(*slot) && length > sizeof(slot->addr) ?
		       length - sizeof(slot->addr) :
		       0;
}

/* To the immediate, in host order, and back; bits that mean nothing are ignored. */
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
