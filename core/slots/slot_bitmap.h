/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bitmap ownership of slots: which are full, which are free (HiPower, section 3.1).
 *
 * The sender has a pool of slots, and the receiver has a mirror of the pool. Each end has a bit for
 * each slot, written by this end only and read by the peer. A slot is free where the two bits
 * agree, and full where they differ. The sender flips when the data is in the mirror; the receiver
 * flips when finished with the slot. So the ends flip in turn, and one RDMA READ of the peer's bits
 * shows the state of all slots.
 *
 *	sender                                    receiver
 *	acquire: a slot whose bits agree
 *	write its data; commit
 *	READ, posted behind the writes            READ
 *	read_done(): flip the slots committed     read_done(): slots that differ are full
 *	  before; slots that agree are free       next_full(): each one; use its data
 *	                                          release(): flip
 *
 * Why a bit is never seen before its data. The READ follows the writes on the same reliable
 * connection. The responder executes the READ after the writes. The response cannot leave host
 * memory before the data is there, because a device's read pushes the device's earlier writes. Only
 * when the READ completes, so with all data in the mirror, does the sender flip. A receiver that
 * sees the flip therefore has the data. The completion of a WRITE only proves that the peer's
 * device has the data.
 *
 * Why a late READ does no harm. Each end has one READ in flight at a time, so results apply once
 * and in order. If the peer flips after the READ has passed, the result is older: the sender takes
 * a free slot for full, or the receiver a full slot for empty. A value from two flips ago would
 * look current, but is impossible: the second flip waits for the other end's flip in between, which
 * follows a later READ. A peer that flips out of turn is detected.
 *
 * Notified slots. Instead of flipping bits, the sender can send an immediate with the number of the
 * last slot. The immediate arrives after the data of all earlier writes, so no READ has to follow.
 * No bit may announce these slots as well: the peer could see the bit first, or count the slot
 * twice. Each end therefore keeps notified slots as a private difference. The receiver releases
 * such a slot like any other.
 *
 * Bits change by one aligned store a word, for any number of slots: wait-free. The host owns the
 * memory, the READs and the time.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SLOTS_SLOT_BITMAP_H
#define WEIR_CORE_SLOTS_SLOT_BITMAP_H

#include "core/base/platform.h"

#define WEIR_SLOT_BITMAP_SLOTS_MAX 65536u

/* Words of 64 bits for @slots slots. */
static inline uint32_t weir_slot_bitmap_words(uint32_t slots)
{
	return (slots + 63) / 64;
}

/**
 * struct weir_slot_bitmap_tx - the sender's end
 * @bits: own bits; the peer reads this memory
 * @seen: the peer's bits, as of the last READ
 * @notified: difference for notified slots: @bits ^ @notified is the true state
 * @held: slots acquired, and neither committed nor abandoned
 * @in_flight: slots committed, and not flipped yet
 * @sent: ring of the slots in @in_flight, by commit number modulo @slots
 * @slots: 1 to WEIR_SLOT_BITMAP_SLOTS_MAX
 * @free: slots that can be acquired
 * @word: where the search for a free slot begins
 * @committed: slots committed so far
 * @covered: slots committed before the last READ
 * @arrived: slots known to be in the mirror
 * @freed: slots that the peer has released so far
 */
struct weir_slot_bitmap_tx {
	uint64_t *bits;
	uint64_t *seen;
	uint64_t *notified;
	uint64_t *held;
	uint64_t *in_flight;
	uint32_t *sent;
	uint32_t slots;
	uint32_t free;
	uint32_t word;
	uint64_t committed, covered, arrived;
	uint64_t freed;
};

/* Bytes of memory that weir_slot_bitmap_tx_init() needs besides the bits. */
size_t weir_slot_bitmap_tx_bytes(uint32_t slots);

/**
 * weir_slot_bitmap_tx_init() - start with all slots free
 * @o: to be initialised
 * @slots: 1 to WEIR_SLOT_BITMAP_SLOTS_MAX
 * @bits: *kept*: weir_slot_bitmap_words() zero words, which the peer reads
 * @memory: *kept*: zeroed, aligned to 8
 */
void weir_slot_bitmap_tx_init(struct weir_slot_bitmap_tx *o, uint32_t slots, uint64_t *bits,
			      void *memory);

/**
 * weir_slot_bitmap_tx_acquire() - acquire a free slot
 *
 * The caller owes a commit or an abandon. Return: its number; -EAGAIN if no slot is free.
 */
int weir_slot_bitmap_tx_acquire(struct weir_slot_bitmap_tx *o);

/* Whether @slot was acquired, and neither committed nor abandoned. */
bool weir_slot_bitmap_tx_is_held(const struct weir_slot_bitmap_tx *o, uint32_t slot);

/* Whether @slot is at the peer, or on its way there. */
bool weir_slot_bitmap_tx_is_full(const struct weir_slot_bitmap_tx *o, uint32_t slot);

/* Returns an acquired slot unused. */
void weir_slot_bitmap_tx_abandon(struct weir_slot_bitmap_tx *o, uint32_t slot);

/*
 * The write of @slot is posted, before any later READ. Commits are numbered from 0: this one is
 * number @o->committed.
 */
void weir_slot_bitmap_tx_commit(struct weir_slot_bitmap_tx *o, uint32_t slot);

/* The slot committed last. At least one must have been committed. */
static inline uint32_t weir_slot_bitmap_tx_last(const struct weir_slot_bitmap_tx *o)
{
	return o->sent[(o->committed - 1) % o->slots];
}

/* The READ is posted. */
void weir_slot_bitmap_tx_read_posted(struct weir_slot_bitmap_tx *o);

/**
 * weir_slot_bitmap_tx_read_done() - the READ is done: flip arrived slots, free released slots
 * @fresh: the peer's bits, as read
 *
 * Return: slots that the peer has released since the last READ; -EPROTO if the peer flipped a slot
 *	that it did not have.
 */
int weir_slot_bitmap_tx_read_done(struct weir_slot_bitmap_tx *o, const uint64_t *fresh);

/**
 * weir_slot_bitmap_tx_notified() - an immediate covers all committed slots not flipped yet
 *
 * The immediate follows the last slot's write, or goes with it. All these slots count as full and
 * arrived at once. A READ in flight flips nothing for them.
 */
void weir_slot_bitmap_tx_notified(struct weir_slot_bitmap_tx *o);

/*
 * The peer has released @slot by a message. Return: 0; -EPROTO if the peer did not have the slot.
 */
int weir_slot_bitmap_tx_slot_returned(struct weir_slot_bitmap_tx *o, uint32_t slot);

/**
 * struct weir_slot_bitmap_rx - the receiver's end
 * @bits: own bits; the peer reads this memory
 * @seen: the peer's bits, as of the last READ
 * @notified: difference for notified slots: @bits ^ @notified is the true state
 * @held: full slots found and not released
 * @slots: 1 to WEIR_SLOT_BITMAP_SLOTS_MAX
 * @full: full slots not found yet
 * @word: where the search for a full slot begins
 */
struct weir_slot_bitmap_rx {
	uint64_t *bits;
	uint64_t *seen;
	uint64_t *notified;
	uint64_t *held;
	uint32_t slots;
	uint32_t full;
	uint32_t word;
};

size_t weir_slot_bitmap_rx_bytes(uint32_t slots);

/* As weir_slot_bitmap_tx_init(): starts with all slots empty. */
void weir_slot_bitmap_rx_init(struct weir_slot_bitmap_rx *in, uint32_t slots, uint64_t *bits,
			      void *memory);

/**
 * weir_slot_bitmap_rx_read_done() - the READ is done
 * @fresh: the peer's bits, as read
 *
 * Return: slots filled since the last READ; -EPROTO if the peer filled a slot that was not empty.
 */
int weir_slot_bitmap_rx_read_done(struct weir_slot_bitmap_rx *in, const uint64_t *fresh);

/*
 * Finds the next full slot; the caller owes a release. Return: its number; -EAGAIN if there is
 * none.
 */
int weir_slot_bitmap_rx_next_full(struct weir_slot_bitmap_rx *in);

/*
 * The peer has filled @slot, by a notification; counts as found. Return: 0; -EPROTO if not empty.
 */
int weir_slot_bitmap_rx_slot_filled(struct weir_slot_bitmap_rx *in, uint32_t slot);

/* Whether @slot was found and not released. */
bool weir_slot_bitmap_rx_is_held(const struct weir_slot_bitmap_rx *in, uint32_t slot);

/* Frees @slot: the peer may write there as soon as it reads the flip. */
void weir_slot_bitmap_rx_release(struct weir_slot_bitmap_rx *in, uint32_t slot);

#endif
