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
#define WEIR_LOOK_NEWS 1u
#define WEIR_LOOK_ROOM 2u

#define WEIR_LOOK_TELLS_MAX 64u /* immediates that a ring allows */
#define WEIR_LOOK_TOGETHER_MAX 32768u /* slots that one tells of */
#define WEIR_LOOK_CONFIRM_NS 512000u /* while more is put, what was put is unconfirmed no longer */
#define WEIR_LOOK_CONFIRM_NS_MAX 8000000u /* the same, where a look itself takes long */
#define WEIR_LOOK_SLOW_NS 32000u /* who looks for as long had better be told */

/**
 * struct weir_look_ring - for news, of the peer, as it stands now
 * @number: other than that of the one before; 0: none, or it has been answered
 * @tells: how often the peer may be told now
 * @patience_ns: it may wait so long for what comes to be told of together
 */
struct weir_look_ring {
	uint64_t number;
	uint32_t tells;
	uint64_t patience_ns;
};

/**
 * struct weir_look_company - whether slots come alone, to a peer that has rung
 * @expected: slots that are told of together, lately
 * @is_lone: few are expected: each is told of at once
 * @trials: one after the other, that have shown that
 * @since, @since_ns: slots committed, and when, as it began to be watched how fast they come
 */
struct weir_look_company {
	uint32_t expected;
	uint32_t trials;
	uint64_t since;
	uint64_t since_ns;
	bool is_lone;
};

/**
 * struct weir_look - one end's
 * @confirm, @news, @room: when one is due for what was sent, for what comes, for free slots
 * @percent_min: as weir_look_init() was told
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
 * @company: of what is sent
 */
struct weir_look {
	struct weir_pace confirm, news, room;
	uint32_t percent_min;
	uint64_t put_bytes, covered_bytes, shown_bytes, each_bytes;
	bool is_looking, is_woken;
	uint64_t asked_ns, polled_ns, took_ns;
	uint32_t free_seen;
	unsigned int rung;
	uint32_t heard, heard_before;
	struct weir_look_company company;
};

/**
 * weir_look_init() - nothing is known yet
 * @l: to be initialised
 * @slots: to send from
 * @percent_min: with fewer of them free than this, free ones are looked for
 */
void weir_look_init(struct weir_look *l, uint32_t slots, uint32_t percent_min);

/* A slot is committed, with so many bytes in it. */
void weir_look_put(struct weir_look *l, uint64_t bytes);

/* One is posted; it is not back yet. */
void weir_look_posted(struct weir_look *l, uint64_t now_ns);
void weir_look_polled(struct weir_look *l, uint64_t now_ns);

/**
 * weir_look_back() - it is, and was applied to @o
 * @found, @freed: slots that it has found full, and free
 * @shown: slots of @o's that have arrived by it
 */
void weir_look_back(struct weir_look *l, const struct weir_confirm_out *o, uint32_t found,
		    uint32_t freed, uint32_t shown, uint64_t now_ns);

/* What it finds out of how long looks take, says how long what comes may wait for company. */
uint64_t weir_look_patience_ns(const struct weir_look *l);

/* They take so long that to be told is better. */
static inline bool weir_look_is_slow(const struct weir_look *l)
{
	return l->took_ns >= WEIR_LOOK_SLOW_NS;
}

/* Of what was put, what the peer does not find unless this end looks. */
static inline uint64_t weir_look_unshown(const struct weir_confirm_out *o)
{
	return o->committed - o->arrived;
}

/*
 * Who sends: whether the last of the slots that are being sent, which are committed, tells of all that
 * are not shown; and it does, of @together.
 */
bool weir_look_is_to_tell(struct weir_look *l, const struct weir_confirm_out *o,
			  struct weir_look_ring ring, uint64_t now_ns);
void weir_look_tells(struct weir_look *l, const struct weir_confirm_out *o, uint64_t together,
		     uint64_t now_ns);

/* After that: whether they are to be followed by a look. */
bool weir_look_is_due(const struct weir_look *l, const struct weir_confirm_out *o,
		      struct weir_look_ring ring, uint64_t now_ns);

/* Who waits, of the peer that does so, too: whether it can be told of what is not shown. */
static inline bool weir_look_can_tell(const struct weir_confirm_out *o, struct weir_look_ring ring)
{
	return ring.tells && weir_look_unshown(o) && weir_look_unshown(o) <= WEIR_LOOK_TOGETHER_MAX;
}

/**
 * weir_look_is_wanted() - by who waits
 * @want: WEIR_LOOK_NEWS or _ROOM: of the latter nothing is left
 * @owes: something that was put has to be looked for before
 */
bool weir_look_is_wanted(const struct weir_look *l, unsigned int want, bool owes, uint64_t now_ns);

/* The peer was asked for a sign of @want, and the look behind that found none. */
static inline bool weir_look_has_asked(const struct weir_look *l, unsigned int want, bool owes)
{
	return l->rung & want && !l->is_looking && !owes;
}

/* A look that takes long found nothing: what comes is told of sooner than another would find it. */
static inline bool weir_look_is_better_told(const struct weir_look *l)
{
	return weir_look_is_slow(l) && l->news.found_ns != l->news.looked_ns && !l->is_woken;
}

/* The peer is asked for a sign of @want, and may tell WEIR_LOOK_TELLS_MAX times from now on. */
void weir_look_rung(struct weir_look *l, unsigned int want);

/* It has given the sign; it has told. */
void weir_look_woken(struct weir_look *l);
void weir_look_told(struct weir_look *l);

#endif
