/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that stand hashed: each overlaps no other, and none that does the same lies right beside
 * it. Most do where places are drawn at random. All that they are asked is whether one that comes
 * meets them, so they are in chains by where they begin, and cost a few steps to come and to go.
 *
 * Remote memory is divided into places, and each chain is for some of them. A request that is no
 * longer than a place can only be met by one that touches the place in which it begins, or the next.
 *
 * Context of all: any; never sleeps; externally serialised. Used by order.c alone.
 */
#ifndef WEIR_CORE_ENGINE_ORDER_HASH_H
#define WEIR_CORE_ENGINE_ORDER_HASH_H

#include "core/engine/order.h"

#define WEIR_ORDER_HASH_SHIFT 16
#define WEIR_ORDER_HASH_BYTES (1ull << WEIR_ORDER_HASH_SHIFT)
#define WEIR_ORDER_HASH_CHAIN_MAX \
	16 /* no chain gets longer, so that the tree is there for crowds */

/* The chain of a place. What lies hashed by a power of two is not all in one. */
static inline uint32_t weir_order_hash_bucket(uint64_t place)
{
	return (uint32_t)((place ^ place / WEIR_ORDER_HASH_BUCKETS) % WEIR_ORDER_HASH_BUCKETS);
}

static inline bool weir_order_overlaps(const struct weir_order_node *a,
				       const struct weir_order_node *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* Whether both do the same, side by side. */
static inline bool weir_order_is_adjacent(const struct weir_order_node *a,
					  const struct weir_order_node *b)
{
	return a->modifies == b->modifies && (a->last + 1 == b->first || b->last + 1 == a->first);
}

/**
 * weir_order_hash_first_granule() - where those begin that @n may meet
 * @n: in no tree or chain
 * @last: receives the last place
 *
 * Return: the first. Between them are no more than there are chains, and then one of each.
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

/* Whether @n, which was compared with @looks of them, can be one. */
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
