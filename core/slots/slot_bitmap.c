/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All work goes by words: what differs, what agrees and what has changed are one operation for 64
 * slots. Only the slots that a look tells something new of are visited one by one.
 */
#include "core/slots/slot_bitmap.h"

static uint64_t mask_of(uint32_t slot)
{
	return 1ull << (slot % 64);
}

/* The bits of word @word that stand for slots. */
static uint64_t valid(uint32_t slots, uint32_t word)
{
	uint32_t left = slots - word * 64;

	return left >= 64 ? ~0ull : (1ull << left) - 1;
}

static uint32_t count(uint64_t word)
{
	uint32_t n = 0;

	for (; word; word &= word - 1)
		n++;
	return n;
}

static uint32_t lowest(uint64_t word)
{
	return (uint32_t)__builtin_ctzll(word);
}

/* Everything before it, the data included, comes before whoever sees it. */
static void flip(uint64_t *word, uint64_t mask)
{
	weir_store_release(word, *word ^ mask);
}

static bool has(const uint64_t *words, uint32_t slot)
{
	return words[slot / 64] & mask_of(slot);
}

size_t weir_confirm_out_bytes(uint32_t slots)
{
	return 4 * weir_confirm_words(slots) * sizeof(uint64_t) + slots * sizeof(uint32_t);
}

void weir_confirm_out_init(struct weir_confirm_out *o, uint32_t slots, uint64_t *bits, void *memory)
{
	memset(o, 0, sizeof(*o));
	o->bits = bits;
	o->seen = memory;
	o->told = o->seen + weir_confirm_words(slots);
	o->held = o->told + weir_confirm_words(slots);
	o->going = o->held + weir_confirm_words(slots);
	o->sent = (uint32_t *)(o->going + weir_confirm_words(slots));
	o->slots = slots;
	o->free = slots;
}

/* Of one word, the slots that the peer has. */
static uint64_t full_of(const struct weir_confirm_out *o, uint32_t word)
{
	return o->bits[word] ^ o->told[word] ^ o->seen[word];
}

/* Those that can be acquired. */
static uint64_t free_of(const struct weir_confirm_out *o, uint32_t word)
{
	return ~(full_of(o, word) | o->held[word] | o->going[word]) & valid(o->slots, word);
}

int weir_confirm_out_acquire(struct weir_confirm_out *o)
{
	uint32_t words = weir_confirm_words(o->slots);
	uint64_t found;

	if (!o->free)
		return -EAGAIN;
	while (!(found = free_of(o, o->word)))
		o->word = (o->word + 1) % words;
	o->held[o->word] |= found & -found;
	o->free--;
	return (int)(o->word * 64 + lowest(found));
}

bool weir_confirm_out_is_held(const struct weir_confirm_out *o, uint32_t slot)
{
	return slot < o->slots && has(o->held, slot);
}

bool weir_confirm_out_is_full(const struct weir_confirm_out *o, uint32_t slot)
{
	return (full_of(o, slot / 64) | o->going[slot / 64]) & mask_of(slot);
}

void weir_confirm_out_abandon(struct weir_confirm_out *o, uint32_t slot)
{
	if (weir_bug(!weir_confirm_out_is_held(o, slot)))
		return;
	o->held[slot / 64] &= ~mask_of(slot);
	o->free++;
}

void weir_confirm_out_commit(struct weir_confirm_out *o, uint32_t slot)
{
	if (weir_bug(!weir_confirm_out_is_held(o, slot)))
		return;
	o->held[slot / 64] &= ~mask_of(slot);
	o->going[slot / 64] |= mask_of(slot);
	o->sent[o->committed++ % o->slots] = slot;
}

void weir_confirm_out_look(struct weir_confirm_out *o)
{
	o->covered = o->committed;
}

/* In @words. Slots that were acquired one after the other lie in one word more often than not. */
static void arrive(struct weir_confirm_out *o, uint64_t *words)
{
	uint64_t mask = 0;
	uint32_t slot, word = 0;

	for (; o->arrived < o->covered; o->arrived++) {
		slot = o->sent[o->arrived % o->slots];
		if (mask && slot / 64 != word) {
			flip(&words[word], mask);
			mask = 0;
		}
		word = slot / 64;
		mask |= mask_of(slot);
		o->going[word] &= ~mask_of(slot);
	}
	if (mask)
		flip(&words[word], mask);
}

int weir_confirm_out_looked(struct weir_confirm_out *o, const uint64_t *fresh)
{
	uint32_t words = weir_confirm_words(o->slots), word, freed = 0;
	uint64_t changed;

	for (word = 0; word < words; word++) {
		changed = fresh[word] ^ o->seen[word];
		if (changed & ~full_of(o, word))
			return -EPROTO;
		o->seen[word] ^= changed;
		freed += count(changed);
	}
	o->free += freed;
	o->freed += freed;
	arrive(o, o->bits);
	return (int)freed;
}

void weir_confirm_out_sent(struct weir_confirm_out *o)
{
	o->covered = o->committed;
	arrive(o, o->told);
}

int weir_confirm_out_told(struct weir_confirm_out *o, uint32_t slot)
{
	if (slot >= o->slots || !(full_of(o, slot / 64) & mask_of(slot)))
		return -EPROTO;
	o->seen[slot / 64] ^= mask_of(slot);
	o->free++;
	o->freed++;
	return 0;
}

size_t weir_confirm_in_bytes(uint32_t slots)
{
	return 3 * weir_confirm_words(slots) * sizeof(uint64_t);
}

void weir_confirm_in_init(struct weir_confirm_in *in, uint32_t slots, uint64_t *bits, void *memory)
{
	memset(in, 0, sizeof(*in));
	in->bits = bits;
	in->seen = memory;
	in->told = in->seen + weir_confirm_words(slots);
	in->held = in->told + weir_confirm_words(slots);
	in->slots = slots;
}

/* Of one word, the slots that are not empty. */
static uint64_t filled_of(const struct weir_confirm_in *in, uint32_t word)
{
	return in->bits[word] ^ in->told[word] ^ in->seen[word];
}

int weir_confirm_in_looked(struct weir_confirm_in *in, const uint64_t *fresh)
{
	uint32_t words = weir_confirm_words(in->slots), word, found = 0;
	uint64_t changed;

	for (word = 0; word < words; word++) {
		changed = fresh[word] ^ in->seen[word];
		if (changed & (filled_of(in, word) | ~valid(in->slots, word)))
			return -EPROTO;
		in->seen[word] ^= changed;
		found += count(changed);
	}
	in->full += found;
	return (int)found;
}

int weir_confirm_in_find(struct weir_confirm_in *in)
{
	uint32_t words = weir_confirm_words(in->slots);
	uint64_t found;

	if (!in->full)
		return -EAGAIN;
	while (!(found = filled_of(in, in->word) & ~in->held[in->word]))
		in->word = (in->word + 1) % words;
	in->held[in->word] |= found & -found;
	in->full--;
	return (int)(in->word * 64 + lowest(found));
}

int weir_confirm_in_told(struct weir_confirm_in *in, uint32_t slot)
{
	if (slot >= in->slots || filled_of(in, slot / 64) & mask_of(slot))
		return -EPROTO;
	in->told[slot / 64] ^= mask_of(slot);
	in->held[slot / 64] |= mask_of(slot);
	return 0;
}

bool weir_confirm_in_is_held(const struct weir_confirm_in *in, uint32_t slot)
{
	return slot < in->slots && has(in->held, slot);
}

void weir_confirm_in_release(struct weir_confirm_in *in, uint32_t slot)
{
	if (weir_bug(!weir_confirm_in_is_held(in, slot)))
		return;
	in->held[slot / 64] &= ~mask_of(slot);
	flip(&in->bits[slot / 64], mask_of(slot));
}
