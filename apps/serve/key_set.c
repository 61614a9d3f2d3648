/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/key_set.h"

#include <stdlib.h>

#include "lib/base/secret.h"

struct key_set *key_set_new(unsigned int nr)
{
	struct key_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	atomic_init(&set->refs, 1);
	set->nr = nr;
	set->key = calloc(nr + 1, sizeof(*set->key));
	set->memory = weir_secret_alloc((nr + 1) * sizeof(*set->memory));
	if (set->key && set->memory)
		return set;
	key_set_put(set);
	return NULL;
}

struct key_set *key_set_get(struct key_set *set)
{
	atomic_fetch_add(&set->refs, 1);
	return set;
}

void key_set_put(struct key_set *set)
{
	if (!set || atomic_fetch_sub(&set->refs, 1) > 1)
		return;
	weir_secret_free(set->memory);
	free(set->key);
	free(set);
}

static bool are_same(const struct weir_key *a, const struct weir_key *b)
{
	return a && b ? weir_key_same(a, b) : a == b;
}

bool key_set_has_same_pool(const struct key_set *a, const struct key_set *b)
{
	return are_same(a->pool, b->pool) && are_same(a->old_pool, b->old_pool);
}
