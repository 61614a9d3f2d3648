/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How often which time was taken, within 1 %, in bounded memory: log-linear buckets. */
#ifndef WEIR_SIM_EVENT_HISTOGRAM_H
#define WEIR_SIM_EVENT_HISTOGRAM_H

#include <stdint.h>

#define SIM_HISTOGRAM_LINEAR_BITS 7
#define SIM_HISTOGRAM_BUCKETS ((64 - SIM_HISTOGRAM_LINEAR_BITS + 1) << SIM_HISTOGRAM_LINEAR_BITS)

/**
 * struct sim_histogram - begins as zeroes
 * @buckets: how many in each
 * @count, @sum, @max: of all
 */
struct sim_histogram {
	uint64_t buckets[SIM_HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum;
	uint64_t max;
};

/* One more. */
void sim_histogram_add(struct sim_histogram *h, uint64_t value);

/* The least value that @per_million of all are not above, as its bucket's middle; 0 of none. */
uint64_t sim_histogram_at(const struct sim_histogram *h, uint32_t per_million);

#endif
