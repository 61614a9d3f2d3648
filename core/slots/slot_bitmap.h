/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which slots are full, which are free (HiPower, section 3.1).
 *
 * A pool of slots lies at the end that sends, and its mirror at the end that receives. Each end has
 * a bit for each slot, in memory of its own that only it writes and the other one reads. A slot is
 * free where the two agree, and full where they differ. The sender flips its bit when the data is in
 * the mirror, the receiver flips its own when it needs the slot no more. So a bit is flipped by turns,
 * and one read of the peer's bits, a look, tells of all slots at once.
 *
 *	sender                                    receiver
 *	acquire: a slot whose bits agree
 *	write its data; commit
 *	a look, posted behind the writes          a look
 *	it is back: looked(): flip what it        it is back: looked(): what differs is full
 *	  followed; what agrees is free           find each; read its data
 *	                                          release: flip
 *
 * Why nobody sees a bit before its data. A look is a READ on the same reliable connection as the
 * writes before it. The responder executes it after them, and its answer cannot leave that host's
 * memory before they are in it: a device's read pushes its own writes before it. So when the
 * answer is back, everything committed before the look was posted is in the mirror; only then does
 * the sender flip. A receiver whose look sees the flip has therefore had the data all along. The
 * completion of a WRITE alone would not do: it says that the peer's device has it.
 *
 * Why a look that is late does no harm. One look of an end is under way at a time, so what it saw
 * is applied once, and in the order seen. A bit of the peer's that changes after the look has passed
 * shows the older value: to the sender a slot as full that is free already, to the receiver one as
 * empty that is full. A value from two flips ago, which would look like the newest, cannot be seen:
 * the second flip of a slot waits for the other end's flip in between, which that end makes only
 * after a look that came later. A peer whose bits change out of turn breaks the rules, and is
 * found out.
 *
 * Slots may be told of instead: by an immediate, with the number of the last one. It is heard after the
 * data of all writes before it on the connection is there, so no look has to follow; and no bit may tell
 * of those slots, for that would be seen before, or be taken for news once more. So what is told changes
 * no bit that the peer reads: each end keeps the difference, in words of its own. The receiver gives such
 * a slot back as any other.
 *
 * Bits are changed by one aligned store a word, however many slots it tells of: wait-free. The host owns
 * the memory, the reads, and the time.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SLOTS_SLOT_BITMAP_H
#define WEIR_CORE_SLOTS_SLOT_BITMAP_H

#include "core/base/platform.h"

#define WEIR_SLOT_BITMAP_SLOTS_MAX 65536u

/* Words of 64 bits that the bits of @slots slots take. */
static inline uint32_t weir_slot_bitmap_words(uint32_t slots)
{
	return (slots + 63) / 64;
}

/**
 * struct weir_slot_bitmap_tx - the end that sends
 * @bits: its bits; the peer reads them
 * @seen: the peer's, as of the last look
 * @told: what its bits would differ by if they were flipped for what is told, too
 * @held: slots acquired, and neither committed nor abandoned
 * @in_flight: slots committed, and not flipped yet
 * @sent: slots committed and not flipped yet, by number modulo @slots
 * @slots: 1 to WEIR_SLOT_BITMAP_SLOTS_MAX
 * @free: how many can be acquired
 * @word: where the search for a free one begins
 * @committed, @covered, @arrived: slots committed so far; of them, those before the last look;
 *	and those known to be in the mirror
 * @freed: slots that the peer has given back so far
 */
struct weir_slot_bitmap_tx {
	uint64_t *bits;
	uint64_t *seen;
	uint64_t *told;
	uint64_t *held;
	uint64_t *in_flight;
	uint32_t *sent;
	uint32_t slots;
	uint32_t free;
	uint32_t word;
	uint64_t committed, covered, arrived;
	uint64_t freed;
};

/* Bytes of memory that weir_slot_bitmap_tx_init() wants besides the bits. */
size_t weir_slot_bitmap_tx_bytes(uint32_t slots);

/**
 * weir_slot_bitmap_tx_init() - all slots are free
 * @o: to be initialised
 * @slots: 1 to WEIR_SLOT_BITMAP_SLOTS_MAX
 * @bits: *kept*: weir_slot_bitmap_words() of zeros, which the peer reads
 * @memory: *kept*: zeros, aligned to 8
 */
void weir_slot_bitmap_tx_init(struct weir_slot_bitmap_tx *o, uint32_t slots, uint64_t *bits,
			      void *memory);

/**
 * weir_slot_bitmap_tx_acquire() - a free slot
 *
 * The caller owes a commit or an abandon. Return: its number; -EAGAIN there is none.
 */
int weir_slot_bitmap_tx_acquire(struct weir_slot_bitmap_tx *o);

/* Whether @slot was acquired, and neither committed nor abandoned. */
bool weir_slot_bitmap_tx_is_held(const struct weir_slot_bitmap_tx *o, uint32_t slot);

/* Whether @slot is at the peer, or under way to it. */
bool weir_slot_bitmap_tx_is_full(const struct weir_slot_bitmap_tx *o, uint32_t slot);

/* It is free again, unused. */
void weir_slot_bitmap_tx_abandon(struct weir_slot_bitmap_tx *o, uint32_t slot);

/* Its write is posted, before any look that follows. It is the @o->committed'th, counted from 0. */
void weir_slot_bitmap_tx_commit(struct weir_slot_bitmap_tx *o, uint32_t slot);

/* The slot that was committed last; there is one. */
static inline uint32_t weir_slot_bitmap_tx_last(const struct weir_slot_bitmap_tx *o)
{
	return o->sent[(o->committed - 1) % o->slots];
}

/* A look is posted. */
void weir_slot_bitmap_tx_read_posted(struct weir_slot_bitmap_tx *o);

/**
 * weir_slot_bitmap_tx_read_done() - the look is back: flip what it followed, free what the peer gave back
 * @fresh: the peer's bits, as seen
 *
 * Return: slots that the peer has given back since the last look; -EPROTO it flipped one that
 * it did not have.
 */
int weir_slot_bitmap_tx_read_done(struct weir_slot_bitmap_tx *o, const uint64_t *fresh);

/**
 * weir_slot_bitmap_tx_notified() - all that is committed and not flipped yet is told of
 *
 * An immediate comes behind the last one's write, or with it. All count as full, and as arrived, at
 * once; a look under way that follows some of them flips nothing for those.
 */
void weir_slot_bitmap_tx_notified(struct weir_slot_bitmap_tx *o);

/* The peer says that it has given @slot back. Return: 0; -EPROTO it did not have it. */
int weir_slot_bitmap_tx_slot_returned(struct weir_slot_bitmap_tx *o, uint32_t slot);

/**
 * struct weir_slot_bitmap_rx - the end that receives
 * @bits: its bits; the peer reads them
 * @seen: the peer's, as of the last look
 * @told: what they would differ by if they were flipped for what was told, too
 * @held: full slots that were found and not released
 * @slots: 1 to WEIR_SLOT_BITMAP_SLOTS_MAX
 * @full: full, and not found yet
 * @word: where the search for them begins
 */
struct weir_slot_bitmap_rx {
	uint64_t *bits;
	uint64_t *seen;
	uint64_t *told;
	uint64_t *held;
	uint32_t slots;
	uint32_t full;
	uint32_t word;
};

size_t weir_slot_bitmap_rx_bytes(uint32_t slots);

/* As weir_slot_bitmap_tx_init(): all slots are empty. */
void weir_slot_bitmap_rx_init(struct weir_slot_bitmap_rx *in, uint32_t slots, uint64_t *bits,
			      void *memory);

/**
 * weir_slot_bitmap_rx_read_done() - a look is back
 * @fresh: the peer's bits, as seen
 *
 * Return: slots that have become full since the last look; -EPROTO one was that was not empty.
 */
int weir_slot_bitmap_rx_read_done(struct weir_slot_bitmap_rx *in, const uint64_t *fresh);

/* One of the full slots that were not found yet; it is owed a release. Return: its number; -EAGAIN. */
int weir_slot_bitmap_rx_next_full(struct weir_slot_bitmap_rx *in);

/* The peer says that @slot is full; as if found. Return: 0; -EPROTO it was not empty. */
int weir_slot_bitmap_rx_slot_filled(struct weir_slot_bitmap_rx *in, uint32_t slot);

/* Whether @slot was found and not released. */
bool weir_slot_bitmap_rx_is_held(const struct weir_slot_bitmap_rx *in, uint32_t slot);

/* @slot is free again: the peer may write to it as soon as it sees that. */
void weir_slot_bitmap_rx_release(struct weir_slot_bitmap_rx *in, uint32_t slot);

#endif
