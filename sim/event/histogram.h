/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log-linear histogram of times: within 1 %, in bounded memory. */
#ifndef WEIR_SIM_EVENT_HISTOGRAM_H
#define WEIR_SIM_EVENT_HISTOGRAM_H

#include <stdint.h>

#define SIM_HISTOGRAM_LINEAR_BITS 7
#define SIM_HISTOGRAM_BUCKETS ((64 - SIM_HISTOGRAM_LINEAR_BITS + 1) << SIM_HISTOGRAM_LINEAR_BITS)

/**
 * struct sim_histogram - starts as zeroes
 * @buckets: count of each bucket
 * @count, @sum, @max: of all values
 */
struct sim_histogram {
	uint64_t buckets[SIM_HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum;
	uint64_t max;
};

/* Adds a value. */
void sim_histogram_add(struct sim_histogram *h, uint64_t value);

/* Quantile: the middle of the bucket that holds the value at @per_million; 0 if empty. */
uint64_t sim_histogram_at(const struct sim_histogram *h, uint32_t per_million);

#endif
