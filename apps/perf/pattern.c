/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/pattern.h"
#include "core/base/rng.h"

#include <math.h>

#define THETA 0.99 /* as in YCSB */

uint64_t walk_random(struct perf_walk *walk)
{
	return weir_rng_next(&walk->random);
}

static uint64_t below(struct perf_walk *walk, uint64_t bound)
{
	return weir_rng_scale(walk_random(walk), bound);
}

static void zipf_init(struct walk_plan *plan)
{
	double n = (double)plan->blocks;

	for (uint64_t i = 1; i <= plan->blocks; i++)
		plan->zeta += pow(1.0 / (double)i, THETA);
	plan->alpha = 1 / (1 - THETA);
	plan->zeta_of_two = 1 + pow(0.5, THETA);
	plan->eta = (1 - pow(2.0 / n, 1 - THETA)) / (1 - plan->zeta_of_two / plan->zeta);
}

void walk_plan_init(struct walk_plan *plan, enum pattern pattern, uint64_t blocks, uint64_t stride,
		    unsigned int workers, uint64_t seed)
{
	*plan = (struct walk_plan){
		.pattern = pattern,
		.blocks = blocks,
		.stride = stride < blocks ? stride : blocks,
		.seed = seed,
		.workers = workers,
	};
	if (pattern == PATTERN_ZIPF)
		zipf_init(plan);
}

void walk_init(struct perf_walk *walk, struct walk_plan *plan, unsigned int worker)
{
	uint64_t share = plan->blocks / plan->workers;

	*walk = (struct perf_walk){
		.plan = plan,
		.first = worker * share,
		.share = share,
		.random = weir_rng_mix(weir_rng_mix(plan->seed) + worker),
	};
}

/* Rank 0 is the most frequent. */
static uint64_t zipf_rank(struct perf_walk *walk)
{
	const struct walk_plan *p = walk->plan;
	double u = (double)(walk_random(walk) >> 11) * 0x1p-53, scaled = u * p->zeta;
	uint64_t rank;

	if (scaled < 1 || p->blocks == 1)
		return 0;
	if (scaled < p->zeta_of_two || p->blocks == 2)
		return 1;
	rank = (uint64_t)((double)p->blocks * pow(p->eta * u - p->eta + 1, p->alpha));
	return rank < p->blocks ? rank : p->blocks - 1;
}

static uint64_t take_turn(struct perf_walk *walk)
{
	return __atomic_fetch_add(&walk->plan->cursor, 1, __ATOMIC_RELAXED);
}

/* Visits every block once, in passes of distance @stride. */
static uint64_t strided(const struct walk_plan *plan, uint64_t turn)
{
	uint64_t reach = plan->blocks / plan->stride, at = turn % (reach * plan->stride);

	return at % reach * plan->stride + at / reach;
}

uint64_t walk_next(struct perf_walk *walk)
{
	switch (walk->plan->pattern) {
	case PATTERN_SEQUENTIAL:
		return take_turn(walk) % walk->plan->blocks;
	case PATTERN_STRIDED:
		return strided(walk->plan, take_turn(walk));
	case PATTERN_ZIPF:
		return weir_rng_mix(zipf_rank(walk)) % walk->plan->blocks;
	case PATTERN_CLUSTERS:
		return walk->first + walk->step++ % walk->share;
	default:
		return below(walk, walk->plan->blocks);
	}
}
