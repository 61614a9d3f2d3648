/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Estimates the idle time until the next completion, and how long polling pays.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POLL_IDLE_TIME_H
#define WEIR_CORE_POLL_IDLE_TIME_H

#include "core/base/platform.h"

#define WEIR_IDLE_TIME_STALL_NS 200000 /* longer than a turn of a peer on the same CPU, shorter than
				        * other work */
#define WEIR_IDLE_TIME_BUCKETS \
	16 /* the first ends at 256 ns, each next at twice that; the last has all above 4 ms */

/**
 * struct weir_idle_time - recent idle times
 * @price_ns: what being found awake is worth, as polling time; at least 1
 * @wake_ns: the minimum delay of a wake-up
 * @count: histogram of idle times; old samples fade
 * @sum_ns: sum of the samples in each bucket but the last
 * @total: sum of @count
 * @idles: how often a budget was requested
 * @exploring: the last budget exceeded @budget_ns, to learn the real idle time
 * @budget_ns: the cheapest budget for the samples in @count
 * @rest_until_ns: see weir_idle_time_is_resting()
 */
struct weir_idle_time {
	uint32_t price_ns;
	uint32_t wake_ns;
	uint32_t count[WEIR_IDLE_TIME_BUCKETS];
	uint64_t sum_ns[WEIR_IDLE_TIME_BUCKETS - 1];
	uint32_t total;
	uint32_t idles;
	bool exploring;
	uint64_t budget_ns;
	uint64_t rest_until_ns;
};

/**
 * weir_idle_time_init() - start without samples
 * @g: to be initialised
 * @price_ns: the longest polling time, at least 1. If only CPU time counts, the cost of a sleep and
 *	a wake-up; more if latency counts more
 * @wake_ns: how much a sleep lengthens the measured idle time; at most @price_ns. If too high, long
 *	idle times look short and polling is wasted; if too low, exploration corrects the error
 *
 * Without samples the budget is @price_ns, which never costs more than twice the best.
 */
void weir_idle_time_init(struct weir_idle_time *g, uint32_t price_ns, uint32_t wake_ns);

/**
 * weir_idle_time_add() - add a sample
 * @g: the estimate
 * @ns: idle time before a completion
 */
void weir_idle_time_add(struct weir_idle_time *g, uint64_t ns);

/**
 * weir_idle_time_stalled() - a yielding poller lost the CPU for long
 * @g: the estimate
 * @ns: how long, above WEIR_IDLE_TIME_STALL_NS, at most an hour
 * @now_ns: the time
 *
 * Polling does not pay for a while afterwards. On a crowded machine a woken sleeper gets a CPU at
 * once, but a poller has used up its time slice when a completion arrives.
 */
void weir_idle_time_stalled(struct weir_idle_time *g, uint64_t ns, uint64_t now_ns);

/**
 * weir_idle_time_is_resting() - whether polling does not pay now
 * @g: the estimate
 * @now_ns: the time
 *
 * Return: true for a while after a stall.
 */
static inline bool weir_idle_time_is_resting(const struct weir_idle_time *g, uint64_t now_ns)
{
	return now_ns < g->rest_until_ns;
}

/**
 * weir_idle_time_budget_ns() - how long to poll before sleeping
 * @g: the estimate
 *
 * Now and then the budget is @price_ns regardless of the samples. Otherwise a poller that always
 * sleeps at once would never see idle times become short.
 *
 * Return: nanoseconds; 0: sleep at once.
 */
uint64_t weir_idle_time_budget_ns(struct weir_idle_time *g);

#endif
