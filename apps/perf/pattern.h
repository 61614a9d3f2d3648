/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where each request goes. A region is walked in blocks, each as long as a request; each worker
 * has a walk of its own, and those of all are parts of one plan.
 */
#ifndef WEIR_APPS_PERF_PATTERN_H
#define WEIR_APPS_PERF_PATTERN_H

#include <stdint.h>

enum pattern {
	PATTERN_SEQUENTIAL, /* one range: who has room takes the next block, so that neighbours come
			     * from workers that run side by side */
	PATTERN_RANDOM, /* any block, all alike */
	PATTERN_STRIDED, /* as sequential, with blocks left out in between: no neighbours */
	PATTERN_ZIPF, /* few blocks often, as YCSB's scrambled Zipfian, by 0.99 */
	PATTERN_CLUSTERS, /* neighbours in a worker, in bursts (RDMAbox, section III-B) */
	PATTERN_TRACE, /* as recorded */
};

/**
 * struct walk_plan - what the walks of all workers have in common
 * @pattern: not PATTERN_TRACE
 * @blocks: of the region, at least @workers
 * @stride: strided: one block of so many is touched, in a round
 * @cursor: where all together are; atomic
 * @alpha, @zeta, @zeta_of_two, @eta: what YCSB's generator of Zipfian numbers precomputes (Gray et
 *	al., SIGMOD 1994, section 3)
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
 * struct perf_walk - one worker's way
 * @first, @share, @step: clusters: its own blocks, and how far it is
 * @random: its state
 */
struct perf_walk {
	struct walk_plan *plan;
	uint64_t first, share, step;
	uint64_t random;
};

/* @plan: *kept* */
void walk_init(struct perf_walk *walk, struct walk_plan *plan, unsigned int worker);

/* Return: the next block, less than @blocks. */
uint64_t walk_next(struct perf_walk *walk);

/* 64 random bits, of the walk's own. */
uint64_t walk_random(struct perf_walk *walk);

#endif
