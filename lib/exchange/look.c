/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to look, and what is said between two ends beside: where bitmaps confirm nothing comes by itself,
 * so who has looked a few times rings at the peer. He writes to a word of the peer's what he waits for,
 * and looks once more. The peer flips bits first and reads the word then. So either that last look sees
 * the flip, or the peer sees the word, and sends one immediate.
 */
#include "lib/exchange/exchange.h"

#define CONFIRM_MANY 32u /* slots that are not left unconfirmed, whatever the peer is at */
#define LOOKS_WORTH 16u /* what was put may wait as long as so many looks take */
#define RING_BITS 2 /* of the bell's word, for what is waited for */

static bool is_low(const struct weir_exchange *x)
{
	return (uint64_t)x->out.free * 100 < (uint64_t)x->out.slots * x->options.percent_min;
}

/* What the bell says, if it asks for @what and was not answered; or 0. */
static uint64_t rung_for(const struct weir_exchange *x, unsigned int what)
{
	uint64_t rung = weir_load_acquire(x->bell);

	return rung != x->answered && rung & what ? rung : 0;
}

/*
 * A peer that still had slots to give back when it was last looked at is busy with those. Once it is
 * through and finds no more it rings, and the next put hears of that.
 */
static bool is_to_confirm(const struct weir_exchange *x, uint64_t now_ns)
{
	if (!weir_pace_is_due(&x->confirm, now_ns))
		return false;
	return x->out.arrived == x->out.freed || rung_for(x, WEIR_EXCHANGE_NEWS) ||
	       weir_exchange_unconfirmed(x) >= CONFIRM_MANY ||
	       now_ns - x->confirm.looked_ns >= x->confirm.gap_ns_max;
}

/* Who sleeps gives nothing back: the look that wakes it tells of what it gave back before. */
static bool is_to_make_room(const struct weir_exchange *x, uint64_t now_ns)
{
	return is_low(x) && weir_pace_is_due(&x->room, now_ns) &&
	       !rung_for(x, WEIR_EXCHANGE_NEWS);
}

bool weir_exchange_look_is_due(const struct weir_exchange *x, uint64_t now_ns)
{
	return !weir_exchange_is_imm(x) && !x->is_looking &&
	       (is_to_confirm(x, now_ns) || is_to_make_room(x, now_ns));
}

/* It counts only if it was waited for: or else it says how long nobody asked for it. */
void weir_exchange_look_took(struct weir_exchange *x, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - x->asked_ns, gap_ns = took_ns * LOOKS_WORTH;

	if (now_ns - x->polled_ns > took_ns / 2)
		return;
	if (gap_ns < WEIR_EXCHANGE_CONFIRM_NS)
		gap_ns = WEIR_EXCHANGE_CONFIRM_NS;
	if (gap_ns > WEIR_EXCHANGE_CONFIRM_NS_MAX)
		gap_ns = WEIR_EXCHANGE_CONFIRM_NS_MAX;
	x->confirm.gap_ns_max = (7 * x->confirm.gap_ns_max + gap_ns) / 8;
}

bool weir_exchange_has_asked(const struct weir_exchange *x, unsigned int want)
{
	return x->rung & want && !x->is_looking && !weir_exchange_unconfirmed(x);
}

static bool is_to_look(const struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	const struct weir_pace *pace = want == WEIR_EXCHANGE_NEWS ? &x->news : &x->room;

	if (x->is_looking)
		return false;
	if (weir_exchange_unconfirmed(x))
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
	return weir_exchange_queue_look(x, ++x->rings << RING_BITS | want);
}

int weir_exchange_look(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (!is_to_look(x, want, now_ns))
		return x->status;
	return x->is_to_ring ? weir_exchange_ring(x, WEIR_EXCHANGE_ALL) : weir_exchange_queue_look(x, 0);
}

/* A sleeper that waits for room is woken for some, or if there will be no more. */
static bool is_worth_waking(const struct weir_exchange *x, unsigned int what)
{
	return what == WEIR_EXCHANGE_NEWS || !x->nr_taken || x->nr_released >= x->in.slots / 4;
}

int weir_exchange_answer(struct weir_exchange *x, unsigned int what)
{
	uint64_t rung;

	if (weir_exchange_is_imm(x) || !is_worth_waking(x, what))
		return x->status;
	__sync_synchronize(); /* the flips, then the bell: the peer rings, and then looks */
	rung = rung_for(x, what);
	if (!rung)
		return x->status;
	x->answered = rung;
	x->nr_released = 0;
	return weir_exchange_queue_wake(x);
}
