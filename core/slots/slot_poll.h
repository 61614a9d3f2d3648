/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When an end of an exchange reads its peer's bits (core/slots/slot_bitmap.h), and when
 * notifications are better.
 *
 * Bits alone wake no thread. After fruitless READs, an end sends a request to the peer and reads
 * once more: after one, if READs take long or if slots come further apart than READs take. The peer
 * flips bits before checking for requests. So either the last READ sees the flip, or the peer sees
 * the request and answers with a wake-up. Or the peer notifies the next slots by immediates, up to
 * a limit a request. One immediate covers all slots not shown yet, so neither end needs a READ. A
 * lone slot is notified at once; frequent slots are notified together.
 *
 * The host owns the READs, requests, wake-ups and the time. A one-way end ignores the other half.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SLOTS_SLOT_POLL_H
#define WEIR_CORE_SLOTS_SLOT_POLL_H

#include "core/slots/slot_bitmap.h"
#include "core/slots/moderation.h"

/* What an end waits for. */
#define WEIR_SLOT_POLL_NEWS 1u
#define WEIR_SLOT_POLL_ROOM 2u

#define WEIR_SLOT_POLL_NOTIFIES_MAX 64u /* immediates that a request allows */
#define WEIR_SLOT_POLL_COALESCED_MAX 32768u /* slots that one immediate covers, at most */
#define WEIR_SLOT_POLL_CONFIRM_NS \
	512000u /* longest time that a slot stays unconfirmed while more are put */
#define WEIR_SLOT_POLL_CONFIRM_NS_MAX 8000000u /* the same, where a READ takes long */
#define WEIR_SLOT_POLL_SLOW_NS 32000u /* with READs this slow, notifications are better */

/**
 * struct weir_slot_poll_request - the peer's current request for news
 * @number: differs from the request before; 0: none, or answered
 * @notices_left: notifications that the peer still accepts
 * @delay_ns_max: longest delay of a notification
 */
struct weir_slot_poll_request {
	uint64_t number;
	uint32_t notices_left;
	uint64_t delay_ns_max;
};

/**
 * struct weir_slot_poll_coalescing - whether slots come alone, to a peer that sent a request
 * @expected: recent number of slots in a notification
 * @is_sparse: few are expected: notify each slot at once
 * @trials: consecutive trials that found slots sparse
 * @since: slots committed when the rate measurement began
 * @since_ns: when the rate measurement began
 */
struct weir_slot_poll_coalescing {
	uint32_t expected;
	uint32_t trials;
	uint64_t since;
	uint64_t since_ns;
	bool is_sparse;
};

/**
 * struct weir_slot_poll - the polling state of one end
 * @confirm: moderation of READs to confirm sent slots
 * @news: moderation of READs for received slots
 * @room: moderation of READs for free slots
 * @percent_min: as passed to weir_slot_poll_init()
 * @put_bytes: bytes put so far
 * @covered_bytes: bytes put before the last READ
 * @shown_bytes: bytes that the peer can find, or was notified of
 * @each_bytes: recent mean size of a slot
 * @is_reading: a READ is in flight
 * @is_woken: the peer has sent a wake-up: the next READ will find something
 * @asked_ns: when the READ in flight was posted
 * @polled_ns: when the READ in flight was last found incomplete
 * @took_ns: recent mean time of a READ; 0: unknown
 * @free_seen: slots free when the last READ found no more; more than exist if it found some
 * @requested: the request sent and not answered, as WEIR_SLOT_POLL_ bits
 * @notices: notifications received so far
 * @notices_before: notifications received before the last request
 * @pause: READs without news before the next request for thin traffic, as the last request was in
 *	vain: no notification came. @paused: of these, still to come
 * @coalescing: of sent slots
 */
struct weir_slot_poll {
	struct weir_moderation confirm, news, room;
	uint32_t percent_min;
	uint64_t put_bytes, covered_bytes, shown_bytes, each_bytes;
	bool is_reading, is_woken;
	uint64_t asked_ns, polled_ns, took_ns;
	uint32_t free_seen;
	unsigned int requested;
	uint32_t notices, notices_before;
	uint32_t pause, paused;
	struct weir_slot_poll_coalescing coalescing;
};

/**
 * weir_slot_poll_init() - start without history
 * @l: to be initialised
 * @slots: slots to send from
 * @percent_min: read for free slots when fewer than this percentage are free
 */
void weir_slot_poll_init(struct weir_slot_poll *l, uint32_t slots, uint32_t percent_min);

/* A slot with this many bytes is committed. */
void weir_slot_poll_put(struct weir_slot_poll *l, uint64_t bytes);

/* A READ is posted; a READ was found incomplete. */
void weir_slot_poll_posted(struct weir_slot_poll *l, uint64_t now_ns);
void weir_slot_poll_polled(struct weir_slot_poll *l, uint64_t now_ns);

/**
 * weir_slot_poll_read_done() - a READ is done and was applied to @o
 * @found: slots found full
 * @freed: slots found free
 * @shown: slots of @o that arrived by this READ
 */
void weir_slot_poll_read_done(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			      uint32_t found, uint32_t freed, uint32_t shown, uint64_t now_ns);

/* How long the peer's slots may wait to be notified together, from the READ time. */
uint64_t weir_slot_poll_delay_ns_max(const struct weir_slot_poll *l);

/* Whether READs are so slow that notifications are better. */
static inline bool weir_slot_poll_is_slow(const struct weir_slot_poll *l)
{
	return l->took_ns >= WEIR_SLOT_POLL_SLOW_NS;
}

/* Slots put but not shown: the peer finds them only after a READ by this end. */
static inline uint64_t weir_slot_poll_unshown(const struct weir_slot_bitmap_tx *o)
{
	return o->committed - o->arrived;
}

/*
 * Whether the last slot being sent, already committed, should notify all slots not shown. If so,
 * the host calls weir_slot_poll_notified() with their number as @together.
 */
bool weir_slot_poll_must_notify(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
				struct weir_slot_poll_request request, uint64_t now_ns);
void weir_slot_poll_notified(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			     uint64_t together, uint64_t now_ns);

/* After that: whether a READ should follow the slots. */
bool weir_slot_poll_is_due(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			   struct weir_slot_poll_request request, uint64_t now_ns);

/* Whether a waiting peer can be notified of the slots not shown. */
static inline bool weir_slot_poll_can_notify(const struct weir_slot_bitmap_tx *o,
					     struct weir_slot_poll_request request)
{
	return request.notices_left && weir_slot_poll_unshown(o) &&
	       weir_slot_poll_unshown(o) <= WEIR_SLOT_POLL_COALESCED_MAX;
}

/**
 * weir_slot_poll_is_wanted() - whether a waiting end should read
 * @want: WEIR_SLOT_POLL_NEWS, or WEIR_SLOT_POLL_ROOM if no slot is free
 * @owes: a slot put must be confirmed first
 */
bool weir_slot_poll_is_wanted(const struct weir_slot_poll *l, unsigned int want, bool owes,
			      uint64_t now_ns);

/* Whether the peer was asked for @want, and the READ after the request found nothing. */
static inline bool weir_slot_poll_has_requested(const struct weir_slot_poll *l, unsigned int want,
						bool owes)
{
	return l->requested & want && !l->is_reading && !owes;
}

/*
 * Whether slots come further apart than READs take, so that most READs find nothing; not while
 * requests are in vain.
 */
static inline bool weir_slot_poll_is_thin(const struct weir_slot_poll *l)
{
	return l->took_ns && l->news.interval_ns > l->took_ns && !l->paused;
}

/*
 * Whether a READ found nothing, and a notification will arrive before another READ would, or
 * instead of several.
 */
static inline bool weir_slot_poll_prefers_notify(const struct weir_slot_poll *l)
{
	bool is_in_vain = weir_slot_poll_is_slow(l) && l->news.found_ns != l->news.read_ns;

	return (is_in_vain || weir_slot_poll_is_thin(l)) && !l->is_woken;
}

/*
 * The peer is asked for a wake-up for @want, and may now send WEIR_SLOT_POLL_NOTIFIES_MAX
 * notifications.
 */
void weir_slot_poll_requested(struct weir_slot_poll *l, unsigned int want);

/* The peer has sent a wake-up; the peer has sent a notification. */
void weir_slot_poll_woken(struct weir_slot_poll *l);
void weir_slot_poll_was_notified(struct weir_slot_poll *l);

#endif
