/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How much a donor lends: what it was told, and what its machine can spare. */
#ifndef WEIR_APPS_SERVE_MEMORY_TARGET_H
#define WEIR_APPS_SERVE_MEMORY_TARGET_H

#include <stdint.h>

struct weir_donor;

/**
 * struct amount - all in bytes
 * @memory: what it was started with, of which it never lends more
 * @told: what it was told to lend at most
 * @spare: what is to stay available to the machine; 0: it does not look
 * @spared: what the machine can spare, as far as is known
 * @limit: what it lends at most: the least of them
 */
struct amount {
	struct weir_donor *donor;
	uint64_t memory, told, spare, spared, limit;
};

void amount_init(struct amount *amount, struct weir_donor *donor, uint64_t memory, uint64_t spare);

/* By 'weir lend'; more than there is: all. */
void amount_tell(struct amount *amount, uint64_t bytes);

/* To be called once a second where @spare is not 0. */
void amount_look(struct amount *amount);

#endif
