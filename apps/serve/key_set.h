/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The keys of a donor at a time: for clients of all listeners, and for other donors of the pool.
 * Several threads share a set, without changes; the last user wipes the set.
 */
#ifndef WEIR_APPS_SERVE_KEY_SET_H
#define WEIR_APPS_SERVE_KEY_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weir/donor.h>

#include "lib/conn/key.h"

/**
 * struct key_set - keys
 * @key: @nr keys to admit, in @memory
 * @pool: in @memory, the key for other donors of the pool; NULL: none
 * @old_pool: the key before, for donors without @pool; NULL: none
 */
struct key_set {
	atomic_uint refs;
	unsigned int nr;
	struct weir_donor_key *key;
	struct weir_key *memory;
	const struct weir_key *pool, *old_pool;
};

/* Return: a set of @nr keys, all zero, for the caller to fill; NULL: out of memory. */
struct key_set *key_set_new(unsigned int nr);

struct key_set *key_set_get(struct key_set *set);
/* @set may be NULL. */
void key_set_put(struct key_set *set);

/* Whether two sets prove the same keys to other donors. */
bool key_set_has_same_pool(const struct key_set *a, const struct key_set *b);

#endif
