// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The bells of completion queues: arming them, and ringing them, which fires an event into the
 * channel of one that is armed. Peers ring ours as we ring theirs.
 */
#include <poll.h>
#include <unistd.h>

#include "cq.h"

/* A peer may have filled the counter, or passed what is none: that must not hold us. */
static bool has_room(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

static void fire(struct shared_cq *bell, int channel_fd)
{
	static const uint64_t one = 1;

	if (channel_fd >= 0 && !has_room(channel_fd))
		return;
	store_relaxed(&bell->told, load_ordered(&bell->arrivals));
	store_relaxed(&bell->solicited_told, load_ordered(&bell->solicited));
	add_ordered(&bell->fired, 1);
	if (channel_fd >= 0 && write(channel_fd, &one, sizeof(one)) < 0)
		add_ordered(&bell->fired, -1);
}

static int channel_fd(const struct cq *cq)
{
	return cq->ibv.channel ? cq->ibv.channel->fd : -1;
}

/*
 * Pairs with cq_ring(): we store the arm and look for what arrived; the completion is stored
 * and the ringer looks at the arm. One of the two sees the other, and whoever takes the arm
 * back fires.
 *
 * The specification has an arm wait for the next completion, and the program poll once more.
 * But ConnectX, which keeps count of what it told, fires for what came since its last event:
 * UCX sleeps without looking again, and perftest takes no event for what was told before.
 */
int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	struct cq *cq = to_cq(ibv);

	if (ibv->channel && line_arm(cq, solicited_only ? ARMED_SOLICITED : ARMED_ANY))
		fire(cq->line.at, channel_fd(cq));
	return 0;
}

/* Adds to the arrivals. Is there an arm, and was it we who took it? */
static bool arrive(struct shared_cq *bell, uint32_t n, bool solicited)
{
	uint32_t armed;

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

bool cq_ring(struct shared_cq *bell, int channel_fd, bool solicited)
{
	if (arrive(bell, 1, solicited))
		fire(bell, channel_fd);
	return is_within(bell);
}

void cq_notice(struct cq *cq, uint32_t n, bool solicited)
{
	if (arrive(cq->line.at, n, solicited)) {
		fire(cq->line.at, channel_fd(cq));
		line_disarm(cq);
	}
	if (!is_within(cq->line.at))
		cq_may_have_overrun(cq);
}

void cq_ring_anyway(struct cq *cq)
{
	add_ordered(&cq->line.at->arrivals, 1);
	swap_ordered(&cq->line.at->armed, ARMED_NOT);
	if (cq->ibv.channel)
		fire(cq->line.at, channel_fd(cq));
}
