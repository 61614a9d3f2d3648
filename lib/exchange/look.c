/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to look, and what is said between two ends beside: where bitmaps confirm nothing comes by itself,
 * so who has looked a few times rings at the peer. He writes to a word of the peer's what he waits for,
 * and looks once more. The peer flips bits first and reads the word then. So either that last look sees
 * the flip, or the peer sees the word, and sends one immediate. Or it tells of what it puts next by
 * immediates, so many as a ring is good for, if that comes alone: to who waits it costs one request then.
 */
#include <limits.h>

#include "lib/exchange/exchange.h"

#define CONFIRM_MANY 32u /* slots that are not left unconfirmed, whatever the peer is at */
#define CACHED_BYTES (4u << 20) /* slots in use, and as much of their mirrors, that caches may have */
#define BUSY_GAPS 4u /* as long may be put off what is less than the peer had when it was last looked at */
#define COMPANY_SLOTS 4u /* put at once: more are cheaper shown together than told of one by one */
#define COMPANY_RING 4u /* between rings: of so many each costs less than a receive if looks show them */
#define COMPANY_RING_MAX 32u /* more say no more */
#define TELLS_MIN 8u /* before it is tried whether looks would show them together */
#define TRIALS 3u /* in vain, each of which puts the next off for twice as long */
#define LOOKS_WORTH 16u /* what was put may wait as long as so many looks take */

/* So few are free, or so much was written, that slots which are asked for now would be in the cache still. */
static bool is_low(const struct weir_exchange *x)
{
	uint64_t used = x->out.slots - x->out.free;

	return (uint64_t)x->out.free * 100 < (uint64_t)x->out.slots * x->options.percent_min ||
	       used * x->options.slot_bytes >= CACHED_BYTES;
}

/* What the bell says, if it asks for @what and was not answered; or 0. */
static uint64_t rung_for(const struct weir_exchange *x, unsigned int what)
{
	uint64_t rung = weir_load_acquire(x->bell);

	return rung != x->answered && rung & what ? rung : 0;
}

static uint64_t bounded(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/*
 * A peer that still had slots to give back when it was last looked at is busy with those. Once it is
 * through and finds no more it rings, and the next put hears of that. Who polls without end and never
 * rings finds more a little later, then.
 */
static bool is_to_confirm(const struct weir_exchange *x, uint64_t now_ns)
{
	uint64_t unshown = weir_exchange_unshown(x), had = x->out.arrived - x->out.freed;
	uint64_t gap_ns = x->confirm.gap_ns_max;

	if (unshown < had)
		gap_ns = bounded(gap_ns * BUSY_GAPS, gap_ns, WEIR_EXCHANGE_CONFIRM_NS_MAX);
	if (!unshown || !weir_pace_is_due(&x->confirm, now_ns))
		return false;
	return !had || rung_for(x, WEIR_EXCHANGE_NEWS) || unshown >= CONFIRM_MANY ||
	       now_ns - x->confirm.looked_ns >= gap_ns;
}

/*
 * Who sleeps gives nothing back, until it is told: the look that wakes it tells of what came before. A look
 * in vain is done again with half as many free.
 */
static bool is_to_make_room(const struct weir_exchange *x, uint64_t now_ns)
{
	uint64_t rung = rung_for(x, WEIR_EXCHANGE_NEWS);

	return is_low(x) && x->out.free <= x->free_seen / 2 && weir_pace_is_due(&x->room, now_ns) &&
	       (!rung || wire_ring_tells(rung, x->told) < WIRE_TELLS_MAX);
}

/* Looks would hardly find more than one of them together, or take more of the device than receives do. */
static bool are_alone(const struct weir_exchange *x, uint64_t slots, uint64_t now_ns)
{
	return weir_exchange_looks_slowly(x) ||
	       now_ns - x->last_ring.heard_ns >= slots * x->confirm.gap_ns_max;
}

/*
 * A new ring: what was put since the one before says what this one is worth. Who was told of each sees
 * only how fast they came: if not slowly, it is tried how many a look would show. The more often those
 * were few, the longer it is until the next trial.
 */
static void judge(struct weir_exchange *x, uint64_t rung, uint64_t now_ns)
{
	struct weir_exchange_ring *last = &x->last_ring;
	uint64_t slots = x->out.committed - last->committed;

	if (last->is_told) {
		last->is_told = are_alone(x, slots, now_ns);
	} else {
		slots = slots < COMPANY_RING_MAX ? slots : COMPANY_RING_MAX;
		last->expected = (last->expected + (uint32_t)slots) / 2;
		last->is_told = last->expected < COMPANY_RING || weir_exchange_looks_slowly(x);
		last->trials = last->is_told ? last->trials + (last->trials < TRIALS) : 0;
	}
	last->value = rung;
	last->committed = x->out.committed;
	last->heard_ns = now_ns;
}

/* Many are told of to a ring that is good for few: those behind are to be shown together. */
static void doubt(struct weir_exchange *x, uint64_t now_ns)
{
	struct weir_exchange_ring *last = &x->last_ring;
	uint64_t slots = x->out.committed - last->committed;

	if (!last->is_told || slots < TELLS_MIN << last->trials || are_alone(x, slots, now_ns))
		return;
	last->is_told = false;
	last->committed = x->out.committed;
}

/* What is not shown yet comes first: a look shows that and this together. */
unsigned int weir_exchange_tells(struct weir_exchange *x, unsigned int count, uint64_t now_ns)
{
	uint64_t rung;

	if (weir_exchange_is_imm(x))
		return UINT_MAX;
	rung = rung_for(x, WEIR_EXCHANGE_NEWS);
	if (rung && rung != x->last_ring.value)
		judge(x, rung, now_ns);
	else
		doubt(x, now_ns);
	if (!x->last_ring.is_told || weir_exchange_unshown(x) || count > COMPANY_SLOTS)
		return 0;
	return wire_ring_tells(rung, x->told);
}

void weir_exchange_told(struct weir_exchange *x)
{
	uint64_t rung;

	if (weir_exchange_is_imm(x))
		return;
	rung = weir_load_acquire(x->bell); /* maybe another one by now, that allows no fewer */
	x->info.tells++;
	x->told++;
	if (rung & WEIR_EXCHANGE_NEWS && !wire_ring_tells(rung, x->told))
		x->answered = rung;
}

bool weir_exchange_look_is_due(const struct weir_exchange *x, uint64_t now_ns)
{
	return !weir_exchange_is_imm(x) && !x->is_looking &&
	       (is_to_confirm(x, now_ns) || is_to_make_room(x, now_ns));
}

/* It counts only if it was waited for: or else it says how long nobody asked for it. */
void weir_exchange_look_took(struct weir_exchange *x, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - x->asked_ns;

	if (now_ns - x->polled_ns > took_ns / 2)
		return;
	x->look_ns = x->look_ns ? (7 * x->look_ns + took_ns) / 8 : took_ns;
	x->confirm.gap_ns_max = bounded(x->look_ns * LOOKS_WORTH, WEIR_EXCHANGE_CONFIRM_NS,
					WEIR_EXCHANGE_CONFIRM_NS_MAX);
}

/* Who waits for room may wait for all that it put to be known to have arrived. */
bool weir_exchange_owes_look(const struct weir_exchange *x, unsigned int want)
{
	return want & WEIR_EXCHANGE_ROOM ? weir_exchange_unconfirmed(x) : weir_exchange_unshown(x);
}

bool weir_exchange_has_asked(const struct weir_exchange *x, unsigned int want)
{
	return x->rung & want && !x->is_looking && !weir_exchange_owes_look(x, want);
}

static bool is_to_look(const struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	const struct weir_pace *pace = want == WEIR_EXCHANGE_NEWS ? &x->news : &x->room;

	if (x->is_looking)
		return false;
	if (weir_exchange_owes_look(x, want))
		return true;
	/* Of room there may be some that is not worth waking a sleeper for. */
	if (want == WEIR_EXCHANGE_NEWS && weir_exchange_has_asked(x, want))
		return false;
	return weir_pace_is_due(pace, now_ns);
}

int weir_exchange_ring(struct weir_exchange *x, unsigned int want)
{
	x->is_to_ring = false;
	if (x->rung == want)
		return weir_exchange_queue_look(x, 0);
	x->rung = want;
	x->heard_before = x->heard;
	return weir_exchange_queue_look(x, wire_ring(++x->rings, x->heard + WIRE_TELLS_MAX, want));
}

/* A look that takes long has found nothing: what comes next is told of sooner than another would find it. */
static bool is_better_told(const struct weir_exchange *x)
{
	return weir_exchange_looks_slowly(x) && x->news.found_ns != x->news.looked_ns && !x->is_woken;
}

int weir_exchange_look(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (!is_to_look(x, want, now_ns))
		return x->status;
	if (x->is_to_ring)
		return weir_exchange_ring(x, WEIR_EXCHANGE_ALL);
	if (want == WEIR_EXCHANGE_NEWS && is_better_told(x))
		return weir_exchange_ring(x, WEIR_EXCHANGE_NEWS);
	return weir_exchange_queue_look(x, 0);
}

/*
 * A sleeper that waits for room is woken for a good part of the pool; or for what there is if no more will come
 * soon, for the user has nothing that it could give back.
 */
static bool is_worth_waking(const struct weir_exchange *x, unsigned int what)
{
	return what == WEIR_EXCHANGE_NEWS || x->nr_released >= (x->in.slots + 1) / 2 ||
	       (!x->nr_taken && !x->order[x->next % x->in.slots]);
}

static int wake(struct weir_exchange *x, unsigned int what)
{
	uint64_t rung;

	__sync_synchronize(); /* the flips, then the bell: the peer rings, and then looks */
	rung = rung_for(x, what);
	if (!rung)
		return x->status;
	x->answered = rung;
	x->nr_released = 0;
	return weir_exchange_queue_wake(x);
}

int weir_exchange_answer(struct weir_exchange *x, unsigned int what)
{
	return weir_exchange_is_imm(x) || !is_worth_waking(x, what) ? x->status : wake(x, what);
}

int weir_exchange_concede(struct weir_exchange *x)
{
	return weir_exchange_is_imm(x) || !x->nr_released ? x->status : wake(x, WEIR_EXCHANGE_ROOM);
}
