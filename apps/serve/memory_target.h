/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How much a donor lends: the minimum of the operator's limit and what the machine can spare. */
#ifndef WEIR_APPS_SERVE_MEMORY_TARGET_H
#define WEIR_APPS_SERVE_MEMORY_TARGET_H

#include <stdint.h>

struct weir_donor;

/**
 * struct memory_target - amounts in bytes
 * @donor: the donor
 * @memory: memory at start; the donor never lends more
 * @told: limit set by 'weir lend'
 * @spare: memory to keep available to the machine; 0: no limit
 * @spared: what the machine can currently spare
 * @limit: the limit in force: the minimum of these
 */
struct memory_target {
	struct weir_donor *donor;
	uint64_t memory, told, spare, spared, limit;
};

void memory_target_init(struct memory_target *target, struct weir_donor *donor, uint64_t memory,
			uint64_t spare);

/* Sets the limit from 'weir lend', @memory at most. */
void memory_target_set(struct memory_target *target, uint64_t bytes);

/* To be called once a second if @spare is not 0. */
void memory_target_update(struct memory_target *target);

#endif
