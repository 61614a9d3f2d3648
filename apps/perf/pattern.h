/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Access patterns. A walk visits a region in blocks as long as a request. Each worker has a walk,
 * and the walks of all workers follow a common plan.
 */
#ifndef WEIR_APPS_PERF_PATTERN_H
#define WEIR_APPS_PERF_PATTERN_H

#include <stdint.h>

enum pattern {
	/*
	 * A single range: a worker with room takes the next block, so neighbours come from
	 * concurrent workers.
	 */
	PATTERN_SEQUENTIAL,
	PATTERN_RANDOM, /* any block, with equal probability */
	PATTERN_STRIDED, /* like sequential, with gaps between blocks: no neighbours */
	PATTERN_ZIPF, /* YCSB's scrambled Zipfian distribution with 0.99: few blocks are frequent */
	PATTERN_CLUSTERS, /* bursts of neighbours within a worker (RDMAbox, section III-B) */
	PATTERN_TRACE, /* as recorded */
};

/**
 * struct walk_plan - common state of all workers' walks
 * @pattern: not PATTERN_TRACE
 * @blocks: in the region, at least @workers
 * @stride: strided: distance between blocks of a pass
 * @seed: of the random generator
 * @workers: number of walks
 * @cursor: next block of the shared range; atomic
 * @alpha, @zeta, @zeta_of_two, @eta: constants of YCSB's Zipfian generator (Gray et al., SIGMOD
 *	1994, section 3)
 */
struct walk_plan {
	enum pattern pattern;
	uint64_t blocks, stride, seed;
	unsigned int workers;
	uint64_t cursor;
	double alpha, zeta, zeta_of_two, eta;
};

/* @stride: at least 1. */
void walk_plan_init(struct walk_plan *plan, enum pattern pattern, uint64_t blocks, uint64_t stride,
		    unsigned int workers, uint64_t seed);

/**
 * struct perf_walk - a worker's walk
 * @plan: the common plan
 * @first, @share, @step: clusters: the worker's own blocks, and the position in them
 * @random: state of the random generator
 */
struct perf_walk {
	struct walk_plan *plan;
	uint64_t first, share, step;
	uint64_t random;
};

/* @plan: kept. */
void walk_init(struct perf_walk *walk, struct walk_plan *plan, unsigned int worker);

/* Return: the next block, less than @blocks. */
uint64_t walk_next(struct perf_walk *walk);

/* 64 random bits from the walk's own generator. */
uint64_t walk_random(struct perf_walk *walk);

#endif
