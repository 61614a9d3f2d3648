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

/* Is there what was neither polled nor told of by an event, of the kind that is waited for? */
static bool is_news(const struct cq *cq, bool solicited)
{
	const struct shared_cq *bell = cq->bell;
	uint32_t arrivals = load_ordered(&bell->arrivals), those = load_ordered(&bell->solicited);

	if (solicited && (those == load_relaxed(&cq->solicited_seen) ||
			  those == load_relaxed(&bell->solicited_told)))
		return false;
	return (int32_t)(arrivals - load_relaxed(&bell->consumed)) > 0 &&
	       (int32_t)(arrivals - load_relaxed(&bell->told)) > 0;
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
	struct shared_cq *bell = cq->bell;
	uint32_t none = ARMED_NOT;

	if (!ibv->channel)
		return 0;
	if (!solicited_only)
		store_ordered(&bell->armed, ARMED_ANY);
	else	/* an arm for any event stays one */
		__atomic_compare_exchange_n(&bell->armed, &none, ARMED_SOLICITED, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (is_news(cq, solicited_only) && swap_ordered(&bell->armed, ARMED_NOT) != ARMED_NOT)
		fire(bell, channel_fd(cq));
	return 0;
}

static bool add_arrivals(struct shared_cq *bell, uint32_t n, int channel_fd, bool solicited)
{
	uint32_t arrivals = add_ordered(&bell->arrivals, n), armed;
	int32_t waiting = arrivals - load_relaxed(&bell->consumed);

	if (solicited)
		add_ordered(&bell->solicited, 1);
	armed = load_ordered(&bell->armed);
	if (armed != ARMED_NOT && (armed == ARMED_ANY || solicited) &&
	    swap_ordered(&bell->armed, ARMED_NOT) != ARMED_NOT)
		fire(bell, channel_fd);
	return waiting <= (int32_t)load_relaxed(&bell->capacity);
}

bool cq_ring(struct shared_cq *bell, int channel_fd, bool solicited)
{
	return add_arrivals(bell, 1, channel_fd, solicited);
}

void cq_notice(struct cq *cq, uint32_t n, bool solicited)
{
	if (!add_arrivals(cq->bell, n, channel_fd(cq), solicited))
		cq_may_have_overrun(cq);
}

void cq_ring_anyway(struct cq *cq)
{
	add_ordered(&cq->bell->arrivals, 1);
	swap_ordered(&cq->bell->armed, ARMED_NOT);
	if (cq->ibv.channel)
		fire(cq->bell, channel_fd(cq));
}
