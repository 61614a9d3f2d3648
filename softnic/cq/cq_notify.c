// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Arming completion queues and ringing their doorbells. A ring makes an event in the channel of
 * an armed CQ. Peers ring our CQs as we ring theirs.
 */
#include "softnic/udp/poller.h"

#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"

/*
 * Store-load pairing with cq_ring(): we set the armed flag, then read the arrivals; the ringer
 * adds its arrival, then reads the flag. At least one side sees the other, and the side that
 * clears the flag makes the event.
 *
 * By the specification, arming waits for the next completion, and the program polls once more
 * after arming. ConnectX differs: it counts what it reported and fires for completions since
 * its last event. Programs rely on both parts: UCX sleeps without polling again, and perftest
 * expects no event for completions already reported.
 */
int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	poller_leave();
	if (ibv->channel)
		comp_channel_arm(to_comp_channel(ibv->channel), to_cq(ibv),
				 solicited_only ? ARMED_SOLICITED : ARMED_ANY);
	return 0;
}

/* Whether the CQ was armed and this call disarmed it. */
static bool count_arrival(struct shared_cq *doorbell, uint32_t qpn, uint32_t n, bool solicited)
{
	uint32_t armed;

	ready_list_mark(doorbell, qpn);
	add_ordered(&doorbell->arrivals, n);
	if (solicited)
		add_ordered(&doorbell->solicited, 1);
	armed = load_ordered(&doorbell->armed);
	return armed != ARMED_NOT && (armed == ARMED_ANY || solicited) &&
	       swap_ordered(&doorbell->armed, ARMED_NOT) != ARMED_NOT;
}

static bool cq_has_room(const struct shared_cq *doorbell)
{
	int32_t waiting = load_relaxed(&doorbell->arrivals) - load_relaxed(&doorbell->consumed);

	return waiting <= (int32_t)load_relaxed(&doorbell->capacity);
}

bool cq_ring(struct shared_cq *doorbell, uint32_t qpn, const struct waker *waker, bool solicited)
{
	if (count_arrival(doorbell, qpn, 1, solicited)) {
		store_relaxed(&doorbell->told, load_ordered(&doorbell->arrivals));
		store_relaxed(&doorbell->solicited_told, load_ordered(&doorbell->solicited));
		if (waker)
			waker_wake(waker);
	}
	return cq_has_room(doorbell);
}

static void fire_own_channel(struct cq *cq)
{
	if (cq->ibv.channel && doorbell_disarm(cq))
		comp_channel_fire(to_comp_channel(cq->ibv.channel), cq);
}

void cq_ring_own(struct cq *cq, uint32_t qpn, uint32_t n, bool solicited)
{
	if (count_arrival(cq->doorbell.at, qpn, n, solicited))
		fire_own_channel(cq);
	if (!cq_has_room(cq->doorbell.at))
		cq_may_have_overrun(cq);
}

void cq_mark(struct shared_cq *doorbell, uint32_t qpn)
{
	ready_list_mark(doorbell, qpn);
	add_ordered(&doorbell->arrivals, 1);
}

void cq_ring_for_dead_peer(struct cq *cq, uint32_t qpn)
{
	cq_mark(cq->doorbell.at, qpn);
	fire_own_channel(cq);
}
