/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Targets of requests: the region, and the offset. */
#ifndef WEIR_SIM_LOAD_PATTERN_H
#define WEIR_SIM_LOAD_PATTERN_H

#include "sim/event/rng.h"
#include "sim/run/settings.h"

/**
 * struct sim_pattern - targets of one thread
 * @settings: *kept*
 * @rng: the thread's stream
 * @next: sequential: the next place. Each thread has a part of the places
 * @first: start of the thread's part
 * @zipf: shared by all threads of a load, or NULL
 */
struct sim_pattern {
	const struct sim_load_settings *settings;
	struct sim_rng rng;
	uint64_t next;
	uint64_t first;
	const struct sim_zipf *zipf;
};

/**
 * struct sim_zipf - Zipf's law: item k is chosen 1 / k^skew times as often as item 1
 * @upto: cumulative weights
 * @count: items
 */
struct sim_zipf {
	double *upto;
	uint64_t count;
};

/* For @count items, with @skew in hundredths. Return: 0, or -ENOMEM. */
int sim_zipf_init(struct sim_zipf *zipf, uint64_t count, uint64_t skew);
void sim_zipf_fini(struct sim_zipf *zipf);

/* The pattern of thread @number. */
void sim_pattern_init(struct sim_pattern *pattern, const struct sim_load_settings *settings,
		      const struct sim_zipf *zipf, uint64_t seed, uint64_t number);

/* The next target: @region's number, and the @offset, a multiple of the size. */
void sim_pattern_next(struct sim_pattern *pattern, uint64_t *region, uint64_t *offset);

#endif
