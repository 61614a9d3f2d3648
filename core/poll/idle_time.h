/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long it takes until something comes, and how long it is worth polling for it.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POLL_IDLE_TIME_H
#define WEIR_CORE_POLL_IDLE_TIME_H

#include "core/base/platform.h"

#define WEIR_IDLE_TIME_STALL_NS 200000 /* a peer on the same CPU takes less, others' work more */
#define WEIR_IDLE_TIME_BUCKETS \
	16 /* the first up to 256 ns, each twice as far, the last all above 4 ms */

/**
 * struct weir_idle_time - the gaps seen lately
 * @price_ns: what being found awake is worth, in time spent polling; at least 1
 * @wake_ns: by how much a wake-up is late, at least
 * @count: gaps by their length; old ones fade
 * @sum_ns: of all in a bucket, but the last, which nobody polls for
 * @total: of @count
 * @idles: times that a budget was asked for
 * @exploring: the last answer was longer than @budget_ns, to see what there is
 * @budget_ns: what is cheapest for the gaps in @count
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
 * weir_idle_time_init() - nothing seen yet
 * @g: to be initialised
 * @price_ns: at least 1: no wait is polled for longer. Where only the CPU's time counts, what going
 *	to sleep and being woken costs; more, where it counts more that nothing comes late
 * @wake_ns: that a gap looks longer if it was slept through; at most @price_ns. Too much makes long
 *	gaps look short, and polls for them in vain; too little is found out now and then
 *
 * Until it has seen gaps it says @price_ns, which never costs more than twice the best.
 */
void weir_idle_time_init(struct weir_idle_time *g, uint32_t price_ns, uint32_t wake_ns);

/**
 * weir_idle_time_add() - something came
 * @g: the gaps
 * @ns: after so long without anything
 */
void weir_idle_time_add(struct weir_idle_time *g, uint64_t ns);

/**
 * weir_idle_time_stalled() - who polls gave others a turn on its CPU, and they took long
 * @g: the gaps
 * @ns: how long, above WEIR_IDLE_TIME_STALL_NS, at most an hour
 * @now_ns: the time
 *
 * Polling is no use for a while: on a crowded machine who sleeps is back on a CPU the moment
 * that it is woken, but who polls has used up its turn when something comes.
 */
void weir_idle_time_stalled(struct weir_idle_time *g, uint64_t ns, uint64_t now_ns);

/**
 * weir_idle_time_is_resting() - whether polling is no use now
 * @g: the gaps
 * @now_ns: the time
 *
 * Return: true for a while after a stall.
 */
static inline bool weir_idle_time_is_resting(const struct weir_idle_time *g, uint64_t now_ns)
{
	return now_ns < g->rest_until_ns;
}

/**
 * weir_idle_time_budget_ns() - nothing comes right now: how long to poll on?
 * @g: the gaps
 *
 * Now and then it answers with the price, whatever it has seen: who always
 * sleeps at once would never find out that the gaps have become short.
 *
 * Return: nanoseconds; 0: sleep at once.
 */
uint64_t weir_idle_time_budget_ns(struct weir_idle_time *g);

#endif
