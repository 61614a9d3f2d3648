/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where requests go: which region, and where in it. */
#ifndef WEIR_SIM_LOAD_PATTERN_H
#define WEIR_SIM_LOAD_PATTERN_H

#include "sim/event/rng.h"
#include "sim/run/settings.h"

/**
 * struct sim_pattern - one thread's requests
 * @settings: kept
 * @rng: its own stream
 * @next: sequential: the next place; of all threads together each has its own part
 * @first: where its part begins
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
 * struct sim_zipf - which of some things, by Zipf's law: the k-th is asked for 1 / k^skew as often as
 * the first
 * @upto: of the first so many, how often in all
 * @count: things
 */
struct sim_zipf {
	double *upto;
	uint64_t count;
};

/* For @count things, and a @skew in hundredths. Return: 0, or -ENOMEM. */
int sim_zipf_init(struct sim_zipf *zipf, uint64_t count, uint64_t skew);
void sim_zipf_fini(struct sim_zipf *zipf);

/* The pattern of thread @number. */
void sim_pattern_init(struct sim_pattern *pattern, const struct sim_load_settings *settings,
		      const struct sim_zipf *zipf, uint64_t seed, uint64_t number);

/* The next place: @region's number, and the @offset in it, a multiple of the size. */
void sim_pattern_next(struct sim_pattern *pattern, uint64_t *region, uint64_t *offset);

#endif
