/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How much a donor lends: what it was told, and what its machine can spare. */
#ifndef WEIR_APPS_SERVE_MEMORY_TARGET_H
#define WEIR_APPS_SERVE_MEMORY_TARGET_H

#include <stdint.h>

struct weir_donor;

/**
 * struct memory_target - all in bytes
 * @memory: what it was started with, of which it never lends more
 * @told: what it was told to lend at most
 * @spare: what is to stay available to the machine; 0: it does not look
 * @spared: what the machine can spare, as far as is known
 * @limit: what it lends at most: the least of them
 */
struct memory_target {
	struct weir_donor *donor;
	uint64_t memory, told, spare, spared, limit;
};

void memory_target_init(struct memory_target *target, struct weir_donor *donor, uint64_t memory,
			uint64_t spare);

/* By 'weir lend'; more than there is: all. */
void memory_target_set(struct memory_target *target, uint64_t bytes);

/* To be called once a second where @spare is not 0. */
void memory_target_update(struct memory_target *target);

#endif
