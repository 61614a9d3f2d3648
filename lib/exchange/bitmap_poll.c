/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What core/look decides, done. A ring is a word of the peer's, to which is written what is waited
 * for and how often it may be told; a sign is an immediate of nothing.
 */
#include <assert.h>

#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"

static_assert(WIRE_NEWS == WEIR_LOOK_NEWS && WIRE_ROOM == WEIR_LOOK_ROOM, "what is waited for");
static_assert(WIRE_TELLS_MAX == WEIR_LOOK_TELLS_MAX, "what a ring allows");
static_assert(WIRE_OTHERS_MAX + 1 == WEIR_LOOK_TOGETHER_MAX, "what an immediate tells of");

/* What the bell says, if it asks for @what and was not answered; or 0. */
static uint64_t rung_for(const struct weir_exchange *x, unsigned int what)
{
	uint64_t rung = weir_load_acquire(x->bell);

	return rung != x->answered && rung & what ? rung : 0;
}

static struct weir_look_ring ring_of(const struct weir_exchange *x)
{
	uint64_t rung = rung_for(x, WEIR_EXCHANGE_NEWS);

	return (struct weir_look_ring){ rung, wire_ring_tells(rung, x->told),
					wire_ring_patience_ns(rung) };
}

bool weir_exchange_is_to_tell(struct weir_exchange *x, uint64_t now_ns)
{
	return weir_look_is_to_tell(&x->look, &x->out, ring_of(x), now_ns);
}

void weir_exchange_tells(struct weir_exchange *x, uint64_t now_ns)
{
	uint64_t rung = weir_load_acquire(x->bell); /* maybe another one by now, that allows no
						     * fewer */

	weir_look_tells(&x->look, &x->out, weir_look_unshown(&x->out), now_ns);
	x->told++;
	if (rung & WEIR_EXCHANGE_NEWS && !wire_ring_tells(rung, x->told))
		x->answered = rung;
}

/*
 * Of nothing, one is under way at a time, or whoever asks after every slot would fill the queue
 * with them.
 */
bool weir_exchange_tell(struct weir_exchange *x, uint64_t now_ns)
{
	if (!weir_look_can_tell(&x->out, ring_of(x)) || x->acked < x->marked)
		return false;
	weir_exchange_queue_tell(x, now_ns);
	return true;
}

bool weir_exchange_look_is_due(const struct weir_exchange *x, uint64_t now_ns)
{
	return !weir_exchange_is_imm(x) && weir_look_is_due(&x->look, &x->out, ring_of(x), now_ns);
}

/*
 * Who waits for room may wait for all that it put to be known to have arrived, and nothing may say
 * so.
 */
bool weir_exchange_owes_look(const struct weir_exchange *x, unsigned int want)
{
	return want & WEIR_EXCHANGE_ROOM ? x->signalled != x->out.committed :
					   weir_look_unshown(&x->out);
}

bool weir_exchange_has_asked(const struct weir_exchange *x, unsigned int want)
{
	return weir_look_has_asked(&x->look, want, weir_exchange_owes_look(x, want));
}

int weir_exchange_ring(struct weir_exchange *x, unsigned int want)
{
	x->is_to_ring = false;
	if (x->look.rung == want)
		return weir_exchange_queue_look(x, 0);
	weir_look_rung(&x->look, want);
	return weir_exchange_queue_look(x, wire_ring(++x->rings, weir_look_patience_ns(&x->look),
						    x->look.heard + WIRE_TELLS_MAX, want));
}

int weir_exchange_look(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (!weir_look_is_wanted(&x->look, want, weir_exchange_owes_look(x, want), now_ns))
		return x->status;
	if (weir_exchange_owes_look(x, want) && weir_exchange_tell(x, now_ns))
		return x->status;
	if (x->is_to_ring)
		return weir_exchange_ring(x, WEIR_EXCHANGE_ALL);
	if (want == WEIR_EXCHANGE_NEWS && weir_look_is_better_told(&x->look))
		return weir_exchange_ring(x, WEIR_EXCHANGE_NEWS);
	return weir_exchange_queue_look(x, 0);
}

/*
 * A sleeper that waits for room is woken for a good part of the pool; or for what there is if no
 * more will come soon, for the user has nothing that it could give back.
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
