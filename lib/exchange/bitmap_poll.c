/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Carries out the decisions of core/slots/slot_poll.h. A doorbell is a word in the peer's
 * memory: the events that we wait for, and how many notices the peer may send. A wake-up is an
 * empty write with an immediate.
 */
#include <assert.h>

#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"

static_assert(WIRE_EXCHANGE_WANT_NEWS == WEIR_SLOT_POLL_NEWS &&
		      WIRE_EXCHANGE_WANT_ROOM == WEIR_SLOT_POLL_ROOM,
	      "the wire's bits and the core's must agree");
static_assert(WIRE_EXCHANGE_NOTICES_MAX == WEIR_SLOT_POLL_NOTIFIES_MAX,
	      "notices per doorbell must agree");
static_assert(WIRE_EXCHANGE_IMM_OTHERS_MAX + 1 == WEIR_SLOT_POLL_COALESCED_MAX,
	      "slots per immediate must agree");

/* Return: the doorbell word if it asks for @what and was not answered, or 0. */
static uint64_t pending_ring(const struct weir_exchange *x, unsigned int what)
{
	uint64_t requested = weir_load_acquire(x->doorbell);

	return requested != x->answered && requested & what ? requested : 0;
}

static struct weir_slot_poll_request ring_of(const struct weir_exchange *x)
{
	uint64_t requested = pending_ring(x, WEIR_EXCHANGE_NEWS);

	return (struct weir_slot_poll_request){
		requested, wire_exchange_doorbell_notices(requested, x->notices_sent),
		wire_exchange_doorbell_delay_ns_max(requested)
	};
}

bool weir_exchange_must_notify(struct weir_exchange *x, uint64_t now_ns)
{
	return weir_slot_poll_must_notify(&x->slot_poll, &x->out, ring_of(x), now_ns);
}

void weir_exchange_notified(struct weir_exchange *x, uint64_t now_ns)
{
	uint64_t requested = weir_load_acquire(x->doorbell); /* a newer one allows no fewer */

	weir_slot_poll_notified(&x->slot_poll, &x->out, weir_slot_poll_unshown(&x->out), now_ns);
	x->notices_sent++;
	if (requested & WEIR_EXCHANGE_NEWS &&
	    !wire_exchange_doorbell_notices(requested, x->notices_sent))
		x->answered = requested;
}

/* Only one empty notice is in flight, or frequent callers would fill the queue. */
bool weir_exchange_notify(struct weir_exchange *x, uint64_t now_ns)
{
	if (!weir_slot_poll_can_notify(&x->out, ring_of(x)) || x->acked < x->marked)
		return false;
	weir_exchange_post_notice(x, now_ns);
	return true;
}

bool weir_exchange_bitmap_read_is_due(const struct weir_exchange *x, uint64_t now_ns)
{
	return !weir_exchange_is_imm(x) &&
	       weir_slot_poll_is_due(&x->slot_poll, &x->out, ring_of(x), now_ns);
}

/* A wait for room may be a wait for confirmation of all slots, which nothing else reports. */
bool weir_exchange_needs_bitmap_read(const struct weir_exchange *x, unsigned int want)
{
	return want & WEIR_EXCHANGE_ROOM ? x->signalled != x->out.committed :
					   weir_slot_poll_unshown(&x->out);
}

bool weir_exchange_has_requested_wake(const struct weir_exchange *x, unsigned int want)
{
	return weir_slot_poll_has_requested(&x->slot_poll, want,
					    weir_exchange_needs_bitmap_read(x, want));
}

int weir_exchange_request_wake(struct weir_exchange *x, unsigned int want)
{
	x->must_request = false;
	if (x->slot_poll.requested == want)
		return weir_exchange_post_bitmap_read(x, 0);
	weir_slot_poll_requested(&x->slot_poll, want);
	return weir_exchange_post_bitmap_read(
		x, wire_exchange_doorbell_encode(
			   ++x->doorbells_sent, weir_slot_poll_delay_ns_max(&x->slot_poll),
			   x->slot_poll.notices + WIRE_EXCHANGE_NOTICES_MAX, want));
}

/* The peer was notified of all slots, so that only their completion is missing. */
static bool marker_suffices(const struct weir_exchange *x, unsigned int want)
{
	return want & WEIR_EXCHANGE_ROOM && x->out.free && !weir_slot_poll_unshown(&x->out) &&
	       weir_exchange_needs_bitmap_read(x, want);
}

int weir_exchange_bitmap_poll(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (marker_suffices(x, want))
		return weir_exchange_post_marker(x);
	if (!weir_slot_poll_is_wanted(&x->slot_poll, want, weir_exchange_needs_bitmap_read(x, want),
				      now_ns))
		return x->status;
	if (weir_exchange_needs_bitmap_read(x, want) && weir_exchange_notify(x, now_ns))
		return x->status;
	if (x->must_request)
		return weir_exchange_request_wake(x, WEIR_EXCHANGE_ALL);
	if (want == WEIR_EXCHANGE_NEWS && weir_slot_poll_prefers_notify(&x->slot_poll))
		return weir_exchange_request_wake(x, WEIR_EXCHANGE_NEWS);
	return weir_exchange_post_bitmap_read(x, 0);
}

/*
 * Waking a sleeper for room is worth it for half the pool; or for less, if no more will follow
 * soon because the user holds no slots.
 */
static bool is_worth_waking(const struct weir_exchange *x, unsigned int what)
{
	return what == WEIR_EXCHANGE_NEWS || x->nr_released >= (x->in.slots + 1) / 2 ||
	       (!x->nr_taken && !x->order[x->next % x->in.slots]);
}

static int wake_if_rung(struct weir_exchange *x, unsigned int what)
{
	uint64_t requested;

	__sync_synchronize(); /* pairs with the peer, which rings, then reads the bits */
	requested = pending_ring(x, what);
	if (!requested)
		return x->status;
	x->answered = requested;
	x->nr_released = 0;
	return weir_exchange_post_wake(x);
}

int weir_exchange_wake_peer(struct weir_exchange *x, unsigned int what)
{
	return weir_exchange_is_imm(x) || !is_worth_waking(x, what) ? x->status :
								      wake_if_rung(x, what);
}

int weir_exchange_wake_peer_for_room(struct weir_exchange *x)
{
	return weir_exchange_is_imm(x) || !x->nr_released ? x->status :
							    wake_if_rung(x, WEIR_EXCHANGE_ROOM);
}
