/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/slots/slot_poll.h"

#define BATCH 64u /* news that a look is to find */
#define CONFIRM_MANY 32u /* slots that are not left unconfirmed, whatever the peer is at */
#define CACHED_BYTES (4u << 20) /* slots in use, and as much of mirrors, that caches may have */
#define BUSY_GAPS 4u /* as long is put off what is less than the peer had at the last look */
#define COMPANY_MIN 2u /* slots to be told of together, or to wait for more is not worth it */
#define COMPANY_MAX 32u /* more say no more */
#define TOLD_BYTES (256u << 10) /* who waits has them at once: to tell costs little beside them */
#define LONE_MIN 8u /* slots before it is tried whether they could be told of together */
#define TRIALS 3u /* in vain, each of which puts the next off for twice as long */
#define ROOM_LOOKS 4u /* who has no slot left waits no longer than so many take for the next */
#define LOOKS_WORTH 16u /* what was put may wait as long as so many looks take */
#define AT_ONCE_NS 4000u /* of a device that is done with a look when it is posted, and some more */

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
	l->is_looking = true;
	l->is_woken = false;
	l->asked_ns = l->polled_ns = now_ns;
}

void weir_slot_poll_polled(struct weir_slot_poll *l, uint64_t now_ns)
{
	l->polled_ns = now_ns;
}

uint64_t weir_slot_poll_patience_ns(const struct weir_slot_poll *l)
{
	return bounded(l->took_ns * LOOKS_WORTH, WEIR_SLOT_POLL_CONFIRM_NS,
		       WEIR_SLOT_POLL_CONFIRM_NS_MAX);
}

/* One that nobody waited for says how long nobody asked for it, unless it was there as good as at once. */
static void update_read_time(struct weir_slot_poll *l, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - l->asked_ns;

	if (now_ns - l->polled_ns > took_ns / 2 && took_ns > AT_ONCE_NS)
		return;
	l->took_ns = l->took_ns ? (7 * l->took_ns + took_ns) / 8 : took_ns;
	l->confirm.gap_ns_max = weir_slot_poll_patience_ns(l);
}

void weir_slot_poll_read_done(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			      uint32_t found, uint32_t freed, uint32_t shown, uint64_t now_ns)
{
	l->is_looking = false;
	if (l->shown_bytes < l->covered_bytes)
		l->shown_bytes = l->covered_bytes; /* or it was told of since */
	update_read_time(l, now_ns);
	l->free_seen = freed ? 2 * o->slots : o->free;
	weir_moderation_polled(&l->news, found, now_ns);
	weir_moderation_polled(&l->room, freed, now_ns);
	if (shown)
		weir_moderation_polled(&l->confirm, shown, now_ns);
}

/* So few are free, or so much was written, that slots asked for now would be in the cache still. */
static bool is_short_of_slots(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o)
{
	uint64_t used = o->slots - o->free;

	return (uint64_t)o->free * 100 < (uint64_t)o->slots * l->percent_min ||
	       used * l->each_bytes >= CACHED_BYTES;
}

/*
 * A peer that still had slots to give back when it was last looked at is busy with those. Once it
 * is through and finds no more it rings, and the next put hears of that. Who polls without end and
 * never rings finds more a little later, then.
 */
static bool must_confirm(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			 struct weir_slot_poll_request ring, uint64_t now_ns)
{
	uint64_t unshown = weir_slot_poll_unshown(o), had = o->arrived - o->freed;
	uint64_t gap_ns = l->confirm.gap_ns_max;

	if (unshown < had)
		gap_ns = bounded(gap_ns * BUSY_GAPS, gap_ns, WEIR_SLOT_POLL_CONFIRM_NS_MAX);
	if (!unshown || !weir_moderation_is_due(&l->confirm, now_ns))
		return false;
	return !had || ring.number || unshown >= CONFIRM_MANY ||
	       now_ns - l->confirm.looked_ns >= gap_ns;
}

/*
 * Who sleeps gives nothing back until it is told: the look that wakes it tells of what came before.
 * One in vain is done again with half as many free.
 */
static bool must_find_room(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			   struct weir_slot_poll_request ring, uint64_t now_ns)
{
	return is_short_of_slots(l, o) && o->free <= l->free_seen / 2 &&
	       weir_moderation_is_due(&l->room, now_ns) &&
	       (!ring.number || ring.tells < WEIR_SLOT_POLL_NOTIFIES_MAX);
}

bool weir_slot_poll_is_due(const struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			   struct weir_slot_poll_request ring, uint64_t now_ns)
{
	return !l->is_looking &&
	       (must_confirm(l, o, ring, now_ns) || must_find_room(l, o, ring, now_ns));
}

/* While as many came as are to be told of together they might have been. */
static bool comes_together(const struct weir_slot_poll *l, uint64_t slots, uint64_t now_ns)
{
	uint64_t gaps_ns = slots * l->confirm.gap_ns_max;

	return (now_ns - l->coalescing.since_ns) * COMPANY_MIN <= gaps_ns;
}

static void restart_watch(struct weir_slot_poll_coalescing *c, const struct weir_slot_bitmap_tx *o,
			  uint64_t now_ns)
{
	c->since = o->committed;
	c->since_ns = now_ns;
}

/*
 * Where each is told of at once it is seen only how fast they come. If not slowly, it is tried how many
 * there are when they wait for coalescing. The more often that was in vain, the longer it is until the
 * next trial.
 */
static void retry_coalescing(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			     uint64_t now_ns)
{
	struct weir_slot_poll_coalescing *c = &l->coalescing;
	uint64_t slots = o->committed - c->since;

	if (!c->is_sparse || slots < LONE_MIN << c->trials)
		return;
	if (comes_together(l, slots, now_ns)) {
		c->is_sparse = false;
		c->expected = COMPANY_MIN;
	}
	restart_watch(c, o, now_ns);
}

/* Who only tells does not look: the peer knows how long that takes. */
bool weir_slot_poll_must_notify(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
				struct weir_slot_poll_request ring, uint64_t now_ns)
{
	if (!weir_slot_poll_can_notify(o, ring))
		return false;
	l->confirm.gap_ns_max = bounded(ring.patience_ns, weir_slot_poll_patience_ns(l),
					WEIR_SLOT_POLL_CONFIRM_NS_MAX);
	retry_coalescing(l, o, now_ns);
	return l->coalescing.is_sparse || l->put_bytes - l->shown_bytes >= TOLD_BYTES ||
	       must_confirm(l, o, ring, now_ns) || weir_slot_poll_is_due(l, o, ring, now_ns);
}

void weir_slot_poll_notified(struct weir_slot_poll *l, const struct weir_slot_bitmap_tx *o,
			     uint64_t together, uint64_t now_ns)
{
	struct weir_slot_poll_coalescing *c = &l->coalescing;

	l->shown_bytes = l->put_bytes;
	weir_moderation_polled(&l->confirm, (uint32_t)together, now_ns);
	if (c->is_sparse)
		return;
	c->expected = (c->expected + (uint32_t)bounded(together, 0, COMPANY_MAX)) / 2;
	c->is_sparse = c->expected < COMPANY_MIN;
	if (!c->is_sparse) {
		c->trials = 0;
		return;
	}
	c->trials += c->trials < TRIALS;
	restart_watch(c, o, now_ns);
}

/* Patience is for who has slots left: without one nothing is put meanwhile, and the link idles. */
static bool room_is_due(const struct weir_slot_poll *l, uint64_t now_ns)
{
	return weir_moderation_is_due(&l->room, now_ns) ||
	       (l->took_ns && now_ns - l->room.looked_ns >= ROOM_LOOKS * l->took_ns);
}

bool weir_slot_poll_is_wanted(const struct weir_slot_poll *l, unsigned int want, bool owes,
			      uint64_t now_ns)
{
	if (l->is_looking)
		return false;
	if (owes)
		return true;
	/* Of room there may be some that is not worth waking a sleeper for. */
	if (want == WEIR_SLOT_POLL_NEWS && weir_slot_poll_has_requested(l, want, owes))
		return false;
	return want == WEIR_SLOT_POLL_NEWS ? weir_moderation_is_due(&l->news, now_ns) :
					     room_is_due(l, now_ns);
}

void weir_slot_poll_requested(struct weir_slot_poll *l, unsigned int want)
{
	l->rung = want;
	l->heard_before = l->heard;
}

void weir_slot_poll_woken(struct weir_slot_poll *l)
{
	l->is_woken = true;
	l->rung = 0;
}

void weir_slot_poll_was_notified(struct weir_slot_poll *l)
{
	if (++l->heard - l->heard_before == WEIR_SLOT_POLL_NOTIFIES_MAX)
		l->rung = 0;
}
