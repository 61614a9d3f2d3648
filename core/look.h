/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When an end of an exchange looks at its peer's bits (core/confirm.h), and when it is better told.
 *
 * Nothing comes by itself where bits confirm. So who has looked in vain, or whose looks take long,
 * rings at the peer, and looks once more. The peer flips bits first and hears the ring then: either
 * that last look sees the flip, or the peer hears of the ring and gives one sign. Or it tells of
 * what it puts next, slot by slot, with an immediate each, as many as a ring is good for, if that
 * comes alone: to who waits it costs one request then.
 *
 * The host owns the reads, the rings and the signs, and the time. An end sends and receives; one
 * that does only one of both leaves the rest alone.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_LOOK_H
#define WEIR_CORE_LOOK_H

#include "core/confirm.h"
#include "core/pace.h"

/* What an end waits for. */
#define WEIR_LOOK_NEWS 1u
#define WEIR_LOOK_ROOM 2u

#define WEIR_LOOK_TELLS_MAX 64u /* slots that a ring allows to be told of */
#define WEIR_LOOK_CONFIRM_NS 512000u /* while more is put, what was put is unconfirmed no longer */
#define WEIR_LOOK_CONFIRM_NS_MAX 8000000u /* the same, where a look itself takes long */
#define WEIR_LOOK_SLOW_NS 32000u /* who looks for as long is cheaper told of each message */

/**
 * struct weir_look_ring - for news, of the peer, as it stands now
 * @number: other than that of the one before; 0: none, or it has been answered
 * @tells: slots that the peer may be told of now
 */
struct weir_look_ring {
	uint64_t number;
	uint32_t tells;
};

/**
 * struct weir_look_judged - the last ring that was heard
 * @number: its
 * @committed: slots, until then
 * @heard_ns: when
 * @expected: slots between it and the next, as it was lately when none was told of
 * @is_told: what comes is told of, for few are expected
 * @trials: one after the other, that have shown that
 */
struct weir_look_judged {
	uint64_t number;
	uint64_t committed;
	uint64_t heard_ns;
	uint32_t expected;
	uint32_t trials;
	bool is_told;
};

/**
 * struct weir_look - one end's
 * @confirm, @news, @room: when one is due for what was sent, for what comes, for free slots
 * @slot_bytes, @percent_min: as weir_look_init() was told
 * @is_looking: one is under way
 * @is_woken: the peer has given a sign: the next one will find something
 * @asked_ns, @polled_ns: when the one under way was posted, and last not back yet
 * @took_ns: that they take, lately; 0: not known
 * @free_seen: slots free when the last one found no more; of one that did, more than there are
 * @rung: what the peer was asked to give a sign of, and has not
 * @heard: slots that the peer has told of, so far; @heard_before: of them, before the last ring
 * @last: what the peer has rung
 */
struct weir_look {
	struct weir_pace confirm, news, room;
	uint64_t slot_bytes;
	uint32_t percent_min;
	bool is_looking, is_woken;
	uint64_t asked_ns, polled_ns, took_ns;
	uint32_t free_seen;
	unsigned int rung;
	uint32_t heard, heard_before;
	struct weir_look_judged last;
};

/**
 * weir_look_init() - nothing is known yet
 * @l: to be initialised
 * @slots: to send from
 * @slot_bytes: of each
 * @percent_min: with fewer of them free than this, free ones are looked for
 */
void weir_look_init(struct weir_look *l, uint32_t slots, uint64_t slot_bytes, uint32_t percent_min);

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

/* They take so long that to be told of each message is cheaper. */
static inline bool weir_look_is_slow(const struct weir_look *l)
{
	return l->took_ns >= WEIR_LOOK_SLOW_NS;
}

/* Of what was put, what the peer does not find unless this end looks. */
static inline uint64_t weir_look_unshown(const struct weir_confirm_out *o)
{
	return o->committed - o->arrived;
}

/* Who sends: whether slots that are being sent are to be followed by one. */
bool weir_look_is_due(const struct weir_look *l, const struct weir_confirm_out *o,
		      struct weir_look_ring ring, uint64_t now_ns);

/* Of @count slots that are about to be sent, the first so many are to be told of. */
unsigned int weir_look_tells(struct weir_look *l, const struct weir_confirm_out *o,
			     struct weir_look_ring ring, unsigned int count, uint64_t now_ns);

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

/* The peer is asked for a sign of @want, and may tell of WEIR_LOOK_TELLS_MAX slots from now on. */
void weir_look_rung(struct weir_look *l, unsigned int want);

/* It has given the sign; it has told of a slot. */
void weir_look_woken(struct weir_look *l);
void weir_look_told(struct weir_look *l);

#endif
