/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads to confirm, for news and for room are moderated apart. A peer that has sent a request is
 * notified instead; trials decide whether one by one or coalesced.
 */
#include "core/slots/slot_poll.h"

#define BATCH 64u /* changes that a READ should find */
#define CONFIRM_MANY 32u /* slots that are confirmed even if the peer is busy */
/* Of used slots: pools and mirrors of both ways then fit a CPU's cache. */
#define CACHED_BYTES (256u << 10)
#define BUSY_FACTOR 4u /* factor of delay while the peer has slots enough */
#define COALESCE_MIN 2u /* slots in a notification that make waiting for more worthwhile */
#define COALESCE_MAX 32u /* cap on the slots counted */
#define NOTIFY_BYTES \
	(256u << 10) /* bytes notified at once, since an immediate costs little beside
				 * them */
#define RETRY_SLOTS 8u /* slots put before coalescing is tried again */
#define PAUSE_MAX 63u /* fruitless READs between requests that are in vain */
#define TRIALS 3u /* failed trials, each doubling the time to the next */
#define ROOM_READS 4u /* a sender without slots waits at most this many READ times */
#define CONFIRM_READS 16u /* a slot may stay unconfirmed for this many READ times */
#define AT_ONCE_NS 4000u /* READ time of a device that completes within the post, plus a margin */

static uint32_t batch_part(uint32_t slots, uint32_t parts)
{
	return slots / parts < 2 * BATCH ? slots / parts + 1 : 2 * BATCH;
}

void weir_slot_poll_init(struct weir_slot_poll *l, uint32_t slots, uint32_t percent_min)
{
	memset(l, 0, sizeof(*l));
	l->percent_min = percent_min;
	l->free_seen = 2 * slots;
	weir_moderation_init(&l->confirm, batch_part(slots, 2), WEIR_SLOT_POLL_CONFIRM_NS, true);
	weir_moderation_init(&l->news, BATCH, WEIR_MODERATION_NS, false);
	weir_moderation_init(&l->room, batch_part(slots, 4), WEIR_MODERATION_NS, true);
}

static uint64_t bounded(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

void weir_slot_poll_put(struct weir_slot_poll *l, uint64_t bytes)
{
	l->each_bytes = l->put_bytes ? (7 * l->each_bytes + bytes) / 8 : bytes;
	l->put_bytes += bytes;
}

void weir_slot_poll_posted(struct weir_slot_poll *l, uint64_t now_ns)
{
	l->covered_bytes = l->put_bytes;
	l->is_reading = true;
	l->is_woken = false;
	l->asked_ns = l->polled_ns = now_ns;
}

void weir_slot_poll_polled(struct weir_slot_poll *l, uint64_t now_ns)
{
	l->polled_ns = now_ns;
}

uint64_t weir_slot_poll_delay_ns_max(const struct weir_slot_poll *l)
{
	return bounded(l->took_ns * CONFIRM_READS, WEIR_SLOT_POLL_CONFIRM_NS,
		       WEIR_SLOT_POLL_CONFIRM_NS_MAX);
}

/* Without a caller polling, a slow READ measures the caller's absence. */
static void update_read_time(struct weir_slot_poll *l, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - l->asked_ns;

	if (now_ns - l->polled_ns > took_ns / 2 && took_ns > AT_ONCE_NS)
		return;
	l->took_ns = l->took_ns ? (7 * l->took_ns + took_ns) / 8 : took_ns;
	l->confirm.gap_ns_max = weir_slot_poll_delay_ns_max(l);
}

static void restart_measurement(struct weir_slot_poll_coalescing *c,
				const struct weir_slot_bitmap_tx *o, uint64_t now_ns)
{
	c->since = o->committed;
	c->since_ns = now_ns;
}

/* A notification or a READ has shown @together slots. */
static void note_company(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			 uint64_t together, uint64_t now_ns)
{
	struct weir_slot_poll_coalescing *c = &l->coalescing;

	if (c->is_sparse)
		return;
	c->expected = (c->expected + (uint32_t)bounded(together, 0, COALESCE_MAX)) / 2;
	c->is_sparse = c->expected < COALESCE_MIN;
	if (!c->is_sparse) {
		c->trials = 0;
		return;
	}
	c->trials += c->trials < TRIALS;
	restart_measurement(c, o, now_ns);
}

void weir_slot_poll_read_done(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			      uint32_t found, uint32_t freed, uint32_t shown, uint64_t now_ns)
{
	l->is_reading = false;
	if (l->shown_bytes < l->covered_bytes)
		l->shown_bytes = l->covered_bytes; /* a notification may have shown more since */
	update_read_time(l, now_ns);
	l->free_seen = freed ? 2 * o->slots : o->free;
	l->paused -= !found && l->paused;
	weir_moderation_polled(&l->news, found, now_ns);
	weir_moderation_polled(&l->room, freed, now_ns);
	if (!shown)
		return;
	weir_moderation_polled(&l->confirm, shown, now_ns);
	note_company(l, o, shown, now_ns);
}

/* Few slots are free, or so much was written that reused slots would still be in the cache. */
static bool is_short_of_slots(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o)
{
	uint64_t used = o->slots - o->free;

	return (uint64_t)o->free * 100 < (uint64_t)o->slots * l->percent_min ||
	       used * l->each_bytes >= CACHED_BYTES;
}

/*
 * A peer that had slots to release at the last READ is busy. When finished, the peer sends a
 * request, and the next put sees the request. A peer that polls without end sends no request, and
 * finds more slots a little later.
 */
static bool must_confirm(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			 struct weir_slot_poll_request request, uint64_t now_ns)
{
	uint64_t unshown = weir_slot_poll_unshown(o), had = o->arrived - o->freed;
	uint64_t gap_ns = l->confirm.gap_ns_max;

	if (unshown < had)
		gap_ns = bounded(gap_ns * BUSY_FACTOR, gap_ns, WEIR_SLOT_POLL_CONFIRM_NS_MAX);
	if (!unshown || !weir_moderation_is_due(&l->confirm, now_ns))
		return false;
	return !had || request.number || unshown >= CONFIRM_MANY ||
	       now_ns - l->confirm.read_ns >= gap_ns;
}

/*
 * A sleeping peer releases nothing until woken. After a READ that found no room, the next READ
 * waits until half as many slots are free.
 */
static bool must_find_room(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			   struct weir_slot_poll_request request, uint64_t now_ns)
{
	return is_short_of_slots(l, o) && o->free <= l->free_seen / 2 &&
	       weir_moderation_is_due(&l->room, now_ns) &&
	       (!request.number || request.notices_left < WEIR_SLOT_POLL_NOTIFIES_MAX);
}

bool weir_slot_poll_is_due(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			   struct weir_slot_poll_request request, uint64_t now_ns)
{
	return !l->is_reading &&
	       (must_confirm(l, o, request, now_ns) || must_find_room(l, o, request, now_ns));
}

/* Whether slots were put fast enough to have been notified together. */
static bool came_together(const struct weir_slot_poll *l, uint64_t slots, uint64_t now_ns)
{
	uint64_t gaps_ns = slots * l->confirm.gap_ns_max;

	return (now_ns - l->coalescing.since_ns) * COALESCE_MIN <= gaps_ns;
}

/*
 * With a notification for each slot, only their rate is visible. If the rate is high enough, tries
 * how many slots gather when they wait. Each failed trial doubles the time to the next.
 */
static void retry_coalescing(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			     uint64_t now_ns)
{
	struct weir_slot_poll_coalescing *c = &l->coalescing;
	uint64_t slots = o->committed - c->since;

	if (!c->is_sparse || slots < RETRY_SLOTS << c->trials)
		return;
	if (came_together(l, slots, now_ns)) {
		c->is_sparse = false;
		c->expected = COALESCE_MIN;
	}
	restart_measurement(c, o, now_ns);
}

/* A sender that only notifies never reads; the peer's request carries the READ time. */
bool weir_slot_poll_must_notify(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
				struct weir_slot_poll_request request, uint64_t now_ns)
{
	if (!weir_slot_poll_can_notify(o, request))
		return false;
	l->confirm.gap_ns_max = bounded(request.delay_ns_max, weir_slot_poll_delay_ns_max(l),
					WEIR_SLOT_POLL_CONFIRM_NS_MAX);
	retry_coalescing(l, o, now_ns);
	return l->coalescing.is_sparse || l->put_bytes - l->shown_bytes >= NOTIFY_BYTES ||
	       must_confirm(l, o, request, now_ns) || weir_slot_poll_is_due(l, o, request, now_ns);
}

void weir_slot_poll_notified(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			     uint64_t together, uint64_t now_ns)
{
	l->shown_bytes = l->put_bytes;
	weir_moderation_polled(&l->confirm, (uint32_t)together, now_ns);
	note_company(l, o, together, now_ns);
}

/* Delays suit a sender with free slots. Without a free slot nothing is put, and the link idles. */
static bool room_is_due(const struct weir_slot_poll *l, uint64_t now_ns)
{
	return weir_moderation_is_due(&l->room, now_ns) ||
	       (l->took_ns && now_ns - l->room.read_ns >= ROOM_READS * l->took_ns);
}

bool weir_slot_poll_is_wanted(const struct weir_slot_poll *l, unsigned int want, bool owes,
			      uint64_t now_ns)
{
	if (l->is_reading)
		return false;
	if (owes)
		return true;
	/* The peer may have room to give that is not worth a wake-up. */
	if (want == WEIR_SLOT_POLL_NEWS && weir_slot_poll_has_requested(l, want, owes))
		return false;
	return want == WEIR_SLOT_POLL_NEWS ? weir_moderation_is_due(&l->news, now_ns) :
					     room_is_due(l, now_ns);
}

/*
 * Requests pay by notifications. A sender that always reads first, as one that waits for its only
 * slot, answers by a wake-up: then READs alone are quicker.
 */
static void judge_last_request(struct weir_slot_poll *l)
{
	if (l->notices != l->notices_before)
		l->pause = 0;
	else if (l->pause < PAUSE_MAX)
		l->pause = 2 * l->pause + 1;
	l->paused = l->pause;
}

void weir_slot_poll_requested(struct weir_slot_poll *l, unsigned int want)
{
	if (want & WEIR_SLOT_POLL_NEWS)
		judge_last_request(l);
	l->requested = want;
	l->notices_before = l->notices;
}

void weir_slot_poll_woken(struct weir_slot_poll *l)
{
	l->is_woken = true;
	l->requested = 0;
}

void weir_slot_poll_was_notified(struct weir_slot_poll *l)
{
	if (++l->notices - l->notices_before == WEIR_SLOT_POLL_NOTIFIES_MAX)
		l->requested = 0;
}
