/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Polling before a sleep costs the idle time if shorter than @budget_ns, else the budget plus a
 * wake-up: the ski rental problem. The best budget would have cost least for recent idle times.
 * RDMAbox's MAX_RETRY (section IV-B) is one fixed budget for all loads.
 */
#include "core/poll/idle_time.h"

#define FADE_AT 256 /* samples; then all counts are halved */
#define EXPLORE_EVERY 32 /* idle periods; a useless exploration costs each period 1/32 of the
			  * price */
#define REST_FACTOR 64 /* bounds the time lost to stalls to 1/64 */

void weir_idle_time_init(struct weir_idle_time *g, uint32_t price_ns, uint32_t wake_ns)
{
	memset(g, 0, sizeof(*g));
	g->price_ns = price_ns;
	g->wake_ns = wake_ns;
	g->budget_ns = price_ns;
}

/* The upper end of a bucket: the polling time that catches every sample in the bucket. */
static uint64_t bucket_end_ns(unsigned int bucket)
{
	return 256ull << bucket;
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int bucket = 0;

	while (bucket < WEIR_IDLE_TIME_BUCKETS - 1 && ns >= bucket_end_ns(bucket))
		bucket++;
	return bucket;
}

static void fade_counts(struct weir_idle_time *g)
{
	unsigned int i;

	g->total = 0;
	for (i = 0; i < WEIR_IDLE_TIME_BUCKETS; i++) {
		uint32_t before = g->count[i];

		g->count[i] /= 2;
		g->total += g->count[i];
		if (before && i < WEIR_IDLE_TIME_BUCKETS - 1)
			g->sum_ns[i] = g->sum_ns[i] / before * g->count[i];
	}
}

/*
 * The last bucket has no upper end and is never polled for. Costs are counted from the samples, not
 * the bucket ends, because the price may lie within a bucket.
 */
static uint64_t cheapest_budget_ns(const struct weir_idle_time *g)
{
	uint64_t best = (uint64_t)g->total * g->price_ns, budget_ns = 0, polled = 0;
	uint64_t longer = g->total;
	unsigned int i;

	for (i = 0; i < WEIR_IDLE_TIME_BUCKETS - 1; i++) {
		uint64_t end_ns = bucket_end_ns(i), cost;

		longer -= g->count[i];
		polled += g->sum_ns[i];
		cost = polled + longer * (end_ns + g->price_ns);
		if (cost < best) {
			best = cost;
			budget_ns = end_ns;
		}
	}
	return budget_ns;
}

/*
 * A short idle time found while exploring stands for the unexplored periods too, which looked as
 * long as the sleeps.
 */
void weir_idle_time_add(struct weir_idle_time *g, uint64_t ns)
{
	uint32_t weight = g->exploring && ns < g->price_ns ? EXPLORE_EVERY : 1;

	unsigned int bucket = bucket_of(ns);

	g->exploring = false;
	g->count[bucket] += weight;
	if (bucket < WEIR_IDLE_TIME_BUCKETS - 1)
		g->sum_ns[bucket] += weight * ns;
	g->total += weight;
	if (g->total >= FADE_AT)
		fade_counts(g);
	g->budget_ns = cheapest_budget_ns(g);
}

void weir_idle_time_stalled(struct weir_idle_time *g, uint64_t ns, uint64_t now_ns)
{
	g->rest_until_ns = now_ns + ns * REST_FACTOR;
}

uint64_t weir_idle_time_budget_ns(struct weir_idle_time *g)
{
	g->exploring = ++g->idles % EXPLORE_EVERY == 0 && g->budget_ns < g->price_ns;
	return g->exploring ? g->price_ns : g->budget_ns;
}
