// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The bells of completion queues: arming them, and ringing them, which makes an event in the
 * channel of one that is armed. Peers ring ours as we ring theirs.
 */
#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"

/*
 * Pairs with cq_ring(): we store the arm and look for what arrived; the completion is stored
 * and the ringer looks at the arm. One of the two sees the other, and whoever takes the arm
 * back makes it known.
 *
 * The specification has an arm wait for the next completion, and the program poll once more.
 * But ConnectX, which keeps count of what it told, fires for what came since its last event:
 * UCX sleeps without looking again, and perftest takes no event for what was told before.
 */
int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	if (ibv->channel)
		channel_arm(to_channel(ibv->channel), to_cq(ibv),
			    solicited_only ? ARMED_SOLICITED : ARMED_ANY);
	return 0;
}

/* Is there an arm, and was it we who took it? */
static bool arrive(struct shared_cq *bell, uint32_t qpn, uint32_t n, bool solicited)
{
	uint32_t armed;

	source_mark(bell, qpn);
	add_ordered(&bell->arrivals, n);
	if (solicited)
		add_ordered(&bell->solicited, 1);
	armed = load_ordered(&bell->armed);
	return armed != ARMED_NOT && (armed == ARMED_ANY || solicited) &&
	       swap_ordered(&bell->armed, ARMED_NOT) != ARMED_NOT;
}

static bool is_within(const struct shared_cq *bell)
{
	int32_t waiting = load_relaxed(&bell->arrivals) - load_relaxed(&bell->consumed);

	return waiting <= (int32_t)load_relaxed(&bell->capacity);
}

bool cq_ring(struct shared_cq *bell, uint32_t qpn, const struct pull *pull, bool solicited)
{
	if (arrive(bell, qpn, 1, solicited)) {
		store_relaxed(&bell->told, load_ordered(&bell->arrivals));
		store_relaxed(&bell->solicited_told, load_ordered(&bell->solicited));
		if (pull)
			pull_once(pull);
	}
	return is_within(bell);
}

static void fire(struct cq *cq)
{
	if (cq->ibv.channel && line_fire(cq))
		channel_fire(to_channel(cq->ibv.channel), cq);
}

void cq_notice(struct cq *cq, uint32_t qpn, uint32_t n, bool solicited)
{
	if (arrive(cq->line.at, qpn, n, solicited))
		fire(cq);
	if (!is_within(cq->line.at))
		cq_may_have_overrun(cq);
}

void cq_nudge(struct shared_cq *bell, uint32_t qpn)
{
	source_mark(bell, qpn);
	add_ordered(&bell->arrivals, 1);
}

void cq_ring_anyway(struct cq *cq, uint32_t qpn)
{
	cq_nudge(cq->line.at, qpn);
	fire(cq);
}
