/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile process repeats the rounds of one attack until killed, and counts the rounds in a file.
 * No attempt has to succeed.
 */
#ifndef WEIR_TESTS_HOSTILE_ATTACKER_H
#define WEIR_TESTS_HOSTILE_ATTACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/conn/key.h"

struct attacker {
	const char *target; /* address of a donor, or path of the socket of weir share */
	const char *peer; /* address of the daemon at the other end, or "" */
	const struct weir_key *key; /* NULL: has none */
	uint64_t random;
	bool of_pool; /* the name begins with "pool-" */
};

struct attack {
	const char *name;
	void (*round)(struct attacker *a);
};

/* Each list ends with an attack without a name. */
extern const struct attack donor_attacks[], file_attacks[], socket_attacks[], share_attacks[];

/* A number from 0 to @nr - 1. */
uint32_t attacker_dice(struct attacker *a, uint32_t nr);
void attacker_noise(struct attacker *a, void *to, size_t length);

#endif
