/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hash table of isolated requests: no overlap, and no adjacent request that does the same. With
 * random access most requests are isolated. Hashing by start address makes adding, finding and
 * removing cheap.
 *
 * Remote memory is divided into granules, and each chain serves some granules. A range no longer
 * than a granule can only meet ranges that touch its first granule or the next.
 *
 * Context of all: Any; never sleeps; externally serialised. Used by order.c alone.
 */
#ifndef WEIR_CORE_ENGINE_ORDER_HASH_H
#define WEIR_CORE_ENGINE_ORDER_HASH_H

#include "core/engine/order.h"

#define WEIR_ORDER_HASH_SHIFT 16
#define WEIR_ORDER_HASH_BYTES (1ull << WEIR_ORDER_HASH_SHIFT)
#define WEIR_ORDER_HASH_CHAIN_MAX \
	16 /* chains stay this short, so that crowds go to the tree */

/* The chain of a granule. Spreads addresses that differ by a power of two. */
static inline uint32_t weir_order_hash_bucket(uint64_t place)
{
	return (uint32_t)((place ^ place / WEIR_ORDER_HASH_BUCKETS) % WEIR_ORDER_HASH_BUCKETS);
}

static inline bool weir_order_overlaps(const struct weir_order_node *a,
				       const struct weir_order_node *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* Whether two adjacent requests do the same: both read or both modify. */
static inline bool weir_order_is_adjacent(const struct weir_order_node *a,
					  const struct weir_order_node *b)
{
	return a->modifies == b->modifies && (a->last + 1 == b->first || b->last + 1 == a->first);
}

/**
 * weir_order_hash_first_granule() - the granules to search for nodes that @n may meet
 * @n: in no tree or chain
 * @last: receives the last granule
 *
 * Return: the first granule. The range has at most as many granules as there are chains, and then
 *	one for each chain.
 */
static inline uint64_t weir_order_hash_first_granule(const struct weir_order_node *n,
						     uint64_t *last)
{
	uint64_t first = n->first >> WEIR_ORDER_HASH_SHIFT;

	first -= first > 0;
	*last = (n->last + (n->last < UINT64_MAX)) >> WEIR_ORDER_HASH_SHIFT;
	if (*last - first < WEIR_ORDER_HASH_BUCKETS - 1)
		return first;
	*last = WEIR_ORDER_HASH_BUCKETS - 1;
	return 0;
}

/* Whether @n, after @looks comparisons, may enter the hash table. */
static inline bool weir_order_hash_accepts(const struct weir_order_node *n, uint32_t looks)
{
	return n->last - n->first < WEIR_ORDER_HASH_BYTES && looks < WEIR_ORDER_HASH_CHAIN_MAX;
}

static inline void weir_order_hash_add(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node **chain =
		&o->hashed[weir_order_hash_bucket(n->first >> WEIR_ORDER_HASH_SHIFT)];

	n->hashed = true;
	n->parent = NULL;
	n->left = *chain;
	if (n->left)
		n->left->parent = n;
	*chain = n;
	o->nr_hashed++;
}

static inline void weir_order_hash_remove(struct weir_order *o, struct weir_order_node *n)
{
	n->hashed = false;
	if (n->left)
		n->left->parent = n->parent;
	if (n->parent)
		n->parent->left = n->left;
	else
		o->hashed[weir_order_hash_bucket(n->first >> WEIR_ORDER_HASH_SHIFT)] = n->left;
	o->nr_hashed--;
}

#endif
