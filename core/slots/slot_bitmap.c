/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All work is done by words of 64 slots. Single slots are visited only when a READ reveals a
 * change.
 */
#include "core/slots/slot_bitmap.h"

static uint64_t mask_of(uint32_t slot)
{
	return 1ull << (slot % 64);
}

/* The bits of word @word that stand for slots. */
static uint64_t valid_slots(uint32_t slots, uint32_t word)
{
	uint32_t left = slots - word * 64;

	return left >= 64 ? ~0ull : (1ull << left) - 1;
}

static uint32_t count_bits(uint64_t word)
{
	uint32_t n = 0;

	for (; word; word &= word - 1)
		n++;
	return n;
}

static uint32_t lowest_bit(uint64_t word)
{
	return (uint32_t)__builtin_ctzll(word);
}

/* Release: a peer that reads the flip also sees everything stored before, including the data. */
static void flip_bits(uint64_t *word, uint64_t mask)
{
	weir_store_release(word, *word ^ mask);
}

static bool bit_is_set(const uint64_t *words, uint32_t slot)
{
	return words[slot / 64] & mask_of(slot);
}

size_t weir_slot_bitmap_tx_bytes(uint32_t slots)
{
	return 4 * weir_slot_bitmap_words(slots) * sizeof(uint64_t) + slots * sizeof(uint32_t);
}

void weir_slot_bitmap_tx_init(struct weir_slot_bitmap_tx *o, uint32_t slots, uint64_t *bits,
			      void *memory)
{
	memset(o, 0, sizeof(*o));
	o->bits = bits;
	o->seen = memory;
	o->notified = o->seen + weir_slot_bitmap_words(slots);
	o->held = o->notified + weir_slot_bitmap_words(slots);
	o->in_flight = o->held + weir_slot_bitmap_words(slots);
	o->sent = (uint32_t *)(o->in_flight + weir_slot_bitmap_words(slots));
	o->slots = slots;
	o->free = slots;
}

/* Full slots in one word. */
static uint64_t full_slots(const struct weir_slot_bitmap_tx *o, uint32_t word)
{
	return o->bits[word] ^ o->notified[word] ^ o->seen[word];
}

/* Free slots in one word. */
static uint64_t free_slots(const struct weir_slot_bitmap_tx *o, uint32_t word)
{
	return ~(full_slots(o, word) | o->held[word] | o->in_flight[word]) &
	       valid_slots(o->slots, word);
}

int weir_slot_bitmap_tx_acquire(struct weir_slot_bitmap_tx *o)
{
	uint32_t words = weir_slot_bitmap_words(o->slots);
	uint64_t found;

	if (!o->free)
		return -EAGAIN;
	while (!(found = free_slots(o, o->word)))
		o->word = (o->word + 1) % words;
	o->held[o->word] |= found & -found;
	o->free--;
	return (int)(o->word * 64 + lowest_bit(found));
}

bool weir_slot_bitmap_tx_is_held(const struct weir_slot_bitmap_tx *o, uint32_t slot)
{
	return slot < o->slots && bit_is_set(o->held, slot);
}

bool weir_slot_bitmap_tx_is_full(const struct weir_slot_bitmap_tx *o, uint32_t slot)
{
	return (full_slots(o, slot / 64) | o->in_flight[slot / 64]) & mask_of(slot);
}

void weir_slot_bitmap_tx_abandon(struct weir_slot_bitmap_tx *o, uint32_t slot)
{
	if (weir_bug(!weir_slot_bitmap_tx_is_held(o, slot)))
		return;
	o->held[slot / 64] &= ~mask_of(slot);
	o->free++;
}

void weir_slot_bitmap_tx_commit(struct weir_slot_bitmap_tx *o, uint32_t slot)
{
	if (weir_bug(!weir_slot_bitmap_tx_is_held(o, slot)))
		return;
	o->held[slot / 64] &= ~mask_of(slot);
	o->in_flight[slot / 64] |= mask_of(slot);
	o->sent[o->committed++ % o->slots] = slot;
}

void weir_slot_bitmap_tx_read_posted(struct weir_slot_bitmap_tx *o)
{
	o->covered = o->committed;
}

/* Flips arrived slots in @words. Slots acquired in sequence usually share a word. */
static void flip_arrived(struct weir_slot_bitmap_tx *o, uint64_t *words)
{
	uint64_t mask = 0;
	uint32_t slot, word = 0;

	for (; o->arrived < o->covered; o->arrived++) {
		slot = o->sent[o->arrived % o->slots];
		if (mask && slot / 64 != word) {
			flip_bits(&words[word], mask);
			mask = 0;
		}
		word = slot / 64;
		mask |= mask_of(slot);
		o->in_flight[word] &= ~mask_of(slot);
	}
	if (mask)
		flip_bits(&words[word], mask);
}

int weir_slot_bitmap_tx_read_done(struct weir_slot_bitmap_tx *o, const uint64_t *fresh)
{
	uint32_t words = weir_slot_bitmap_words(o->slots), word, freed = 0;
	uint64_t changed;

	for (word = 0; word < words; word++) {
		changed = fresh[word] ^ o->seen[word];
		if (changed & ~full_slots(o, word))
			return -EPROTO;
		o->seen[word] ^= changed;
		freed += count_bits(changed);
	}
	o->free += freed;
	o->freed += freed;
	flip_arrived(o, o->bits);
	return (int)freed;
}

void weir_slot_bitmap_tx_notified(struct weir_slot_bitmap_tx *o)
{
	o->covered = o->committed;
	flip_arrived(o, o->notified);
}

int weir_slot_bitmap_tx_slot_returned(struct weir_slot_bitmap_tx *o, uint32_t slot)
{
	if (slot >= o->slots || !(full_slots(o, slot / 64) & mask_of(slot)))
		return -EPROTO;
	o->seen[slot / 64] ^= mask_of(slot);
	o->free++;
	o->freed++;
	return 0;
}

size_t weir_slot_bitmap_rx_bytes(uint32_t slots)
{
	return 3 * weir_slot_bitmap_words(slots) * sizeof(uint64_t);
}

void weir_slot_bitmap_rx_init(struct weir_slot_bitmap_rx *in, uint32_t slots, uint64_t *bits,
			      void *memory)
{
	memset(in, 0, sizeof(*in));
	in->bits = bits;
	in->seen = memory;
	in->notified = in->seen + weir_slot_bitmap_words(slots);
	in->held = in->notified + weir_slot_bitmap_words(slots);
	in->slots = slots;
}

/* Full slots in one word. */
static uint64_t filled_slots(const struct weir_slot_bitmap_rx *in, uint32_t word)
{
	return in->bits[word] ^ in->notified[word] ^ in->seen[word];
}

int weir_slot_bitmap_rx_read_done(struct weir_slot_bitmap_rx *in, const uint64_t *fresh)
{
	uint32_t words = weir_slot_bitmap_words(in->slots), word, found = 0;
	uint64_t changed;

	for (word = 0; word < words; word++) {
		changed = fresh[word] ^ in->seen[word];
		if (changed & (filled_slots(in, word) | ~valid_slots(in->slots, word)))
			return -EPROTO;
		in->seen[word] ^= changed;
		found += count_bits(changed);
	}
	in->full += found;
	return (int)found;
}

int weir_slot_bitmap_rx_next_full(struct weir_slot_bitmap_rx *in)
{
	uint32_t words = weir_slot_bitmap_words(in->slots);
	uint64_t found;

	if (!in->full)
		return -EAGAIN;
	while (!(found = filled_slots(in, in->word) & ~in->held[in->word]))
		in->word = (in->word + 1) % words;
	in->held[in->word] |= found & -found;
	in->full--;
	return (int)(in->word * 64 + lowest_bit(found));
}

int weir_slot_bitmap_rx_slot_filled(struct weir_slot_bitmap_rx *in, uint32_t slot)
{
	if (slot >= in->slots || filled_slots(in, slot / 64) & mask_of(slot))
		return -EPROTO;
	in->notified[slot / 64] ^= mask_of(slot);
	in->held[slot / 64] |= mask_of(slot);
	return 0;
}

bool weir_slot_bitmap_rx_is_held(const struct weir_slot_bitmap_rx *in, uint32_t slot)
{
	return slot < in->slots && bit_is_set(in->held, slot);
}

void weir_slot_bitmap_rx_release(struct weir_slot_bitmap_rx *in, uint32_t slot)
{
	if (weir_bug(!weir_slot_bitmap_rx_is_held(in, slot)))
		return;
	in->held[slot / 64] &= ~mask_of(slot);
	flip_bits(&in->bits[slot / 64], mask_of(slot));
}
