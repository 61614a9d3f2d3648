/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When an end of an exchange looks at its peer's bits (core/slots/slot_bitmap.h), and when it is better told.
 *
 * Nothing comes by itself where bits confirm. So who has looked in vain, or whose looks take long,
 * rings at the peer, and looks once more. The peer flips bits first and hears the ring then: either
 * that last look sees the flip, or the peer hears of the ring and gives one sign. Or it tells of what
 * it puts next by an immediate, up to so many for a ring: one tells of all slots that were put
 * before it and not shown yet, so who waits needs no look, nor does who tells. What comes alone is told
 * of at once; of many, together as many as a look would show.
 *
 * The host owns the reads, the rings and the signs, and the time. An end sends and receives; one
 * that does only one of both leaves the rest alone.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SLOTS_SLOT_POLL_H
#define WEIR_CORE_SLOTS_SLOT_POLL_H

#include "core/slots/slot_bitmap.h"
#include "core/slots/moderation.h"

/* What an end waits for. */
#define WEIR_SLOT_POLL_NEWS 1u
#define WEIR_SLOT_POLL_ROOM 2u

#define WEIR_SLOT_POLL_NOTIFIES_MAX 64u /* immediates that a ring allows */
#define WEIR_SLOT_POLL_COALESCED_MAX 32768u /* slots that one tells of */
#define WEIR_SLOT_POLL_CONFIRM_NS \
	512000u /* while more is put, what was put is unconfirmed no longer */
#define WEIR_SLOT_POLL_CONFIRM_NS_MAX 8000000u /* the same, where a look itself takes long */
#define WEIR_SLOT_POLL_SLOW_NS 32000u /* who looks for as long had better be told */

/**
 * struct weir_slot_poll_request - for news, of the peer, as it stands now
 * @number: other than that of the one before; 0: none, or it has been answered
 * @tells: how often the peer may be told now
 * @patience_ns: it may wait so long for what comes to be told of together
 */
struct weir_slot_poll_request {
	uint64_t number;
	uint32_t tells;
	uint64_t patience_ns;
};

/**
 * struct weir_slot_poll_coalescing - whether slots come alone, to a peer that has rung
 * @expected: slots that are told of together, lately
 * @is_sparse: few are expected: each is told of at once
 * @trials: one after the other, that have shown that
 * @since, @since_ns: slots committed, and when, as it began to be watched how fast they come
 */
struct weir_slot_poll_coalescing {
	uint32_t expected;
	uint32_t trials;
	uint64_t since;
	uint64_t since_ns;
	bool is_sparse;
};

/**
 * struct weir_slot_poll - one end's
 * @confirm, @news, @room: when one is due for what was sent, for what comes, for free slots
 * @percent_min: as weir_slot_poll_init() was told
 * @put_bytes: so far; @covered_bytes: of them, those before the last look; @shown_bytes: and those that the
 *	peer finds, or was told of
 * @each_bytes: of a slot, lately
 * @is_looking: one is under way
 * @is_woken: the peer has given a sign: the next one will find something
 * @asked_ns, @polled_ns: when the one under way was posted, and last not back yet
 * @took_ns: that they take, lately; 0: not known
 * @free_seen: slots free when the last one found no more; of one that did, more than there are
 * @rung: what the peer was asked to give a sign of, and has not
 * @heard: immediates by which the peer has told, so far; @heard_before: of them, before the last ring
 * @coalescing: of what is sent
 */
struct weir_slot_poll {
	struct weir_moderation confirm, news, room;
	uint32_t percent_min;
	uint64_t put_bytes, covered_bytes, shown_bytes, each_bytes;
	bool is_looking, is_woken;
	uint64_t asked_ns, polled_ns, took_ns;
	uint32_t free_seen;
	unsigned int rung;
	uint32_t heard, heard_before;
	struct weir_slot_poll_coalescing coalescing;
};

/**
 * weir_slot_poll_init() - nothing is known yet
 * @l: to be initialised
 * @slots: to send from
 * @percent_min: with fewer of them free than this, free ones are looked for
 */
void weir_slot_poll_init(struct weir_slot_poll *l, uint32_t slots, uint32_t percent_min);

/* A slot is committed, with so many bytes in it. */
void weir_slot_poll_put(struct weir_slot_poll *l, uint64_t bytes);

/* One is posted; it is not back yet. */
void weir_slot_poll_posted(struct weir_slot_poll *l, uint64_t now_ns);
void weir_slot_poll_polled(struct weir_slot_poll *l, uint64_t now_ns);

/**
 * weir_slot_poll_read_done() - it is, and was applied to @o
 * @found, @freed: slots that it has found full, and free
 * @shown: slots of @o's that have arrived by it
 */
void weir_slot_poll_read_done(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			      uint32_t found, uint32_t freed, uint32_t shown, uint64_t now_ns);

/* What it finds out of how long looks take, says how long what comes may wait for coalescing. */
uint64_t weir_slot_poll_patience_ns(const struct weir_slot_poll *l);

/* They take so long that to be told is better. */
static inline bool weir_slot_poll_is_slow(const struct weir_slot_poll *l)
{
	return l->took_ns >= WEIR_SLOT_POLL_SLOW_NS;
}

/* Of what was put, what the peer does not find unless this end looks. */
static inline uint64_t weir_slot_poll_unshown(const struct weir_slot_bitmap_tx *o)
{
	return o->committed - o->arrived;
}

/*
 * Who sends: whether the last of the slots that are being sent, which are committed, tells of all that
 * are not shown; and it does, of @together.
 */
bool weir_slot_poll_must_notify(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
				struct weir_slot_poll_request ring, uint64_t now_ns);
void weir_slot_poll_notified(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			     uint64_t together, uint64_t now_ns);

/* After that: whether they are to be followed by a look. */
bool weir_slot_poll_is_due(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			   struct weir_slot_poll_request ring, uint64_t now_ns);

/* Who waits, of the peer that does so, too: whether it can be told of what is not shown. */
static inline bool weir_slot_poll_can_notify(const struct weir_slot_bitmap_tx *o,
					     struct weir_slot_poll_request ring)
{
	return ring.tells && weir_slot_poll_unshown(o) &&
	       weir_slot_poll_unshown(o) <= WEIR_SLOT_POLL_COALESCED_MAX;
}

/**
 * weir_slot_poll_is_wanted() - by who waits
 * @want: WEIR_SLOT_POLL_NEWS or _ROOM: of the latter nothing is left
 * @owes: something that was put has to be looked for before
 */
bool weir_slot_poll_is_wanted(const struct weir_slot_poll *l, unsigned int want, bool owes,
			      uint64_t now_ns);

/* The peer was asked for a sign of @want, and the look behind that found none. */
static inline bool weir_slot_poll_has_requested(const struct weir_slot_poll *l, unsigned int want,
						bool owes)
{
	return l->rung & want && !l->is_looking && !owes;
}

/* A look that takes long found nothing: what comes is told of sooner than another would find it. */
static inline bool weir_slot_poll_prefers_notify(const struct weir_slot_poll *l)
{
	return weir_slot_poll_is_slow(l) && l->news.found_ns != l->news.looked_ns && !l->is_woken;
}

/* The peer is asked for a sign of @want, and may tell WEIR_SLOT_POLL_NOTIFIES_MAX times from now on. */
void weir_slot_poll_requested(struct weir_slot_poll *l, unsigned int want);

/* It has given the sign; it has told. */
void weir_slot_poll_woken(struct weir_slot_poll *l);
void weir_slot_poll_was_notified(struct weir_slot_poll *l);

#endif
