/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that stand apart: each overlaps no other, and none that does the same lies right beside
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

#define WEIR_APART_SHIFT 16
#define WEIR_APART_BYTES (1ull << WEIR_APART_SHIFT)
#define WEIR_APART_LOOKS_MAX 16 /* no chain gets longer, so that the tree is there for crowds */

/* The chain of a place. What lies apart by a power of two is not all in one. */
static inline uint32_t weir_apart_index(uint64_t place)
{
	return (uint32_t)((place ^ place / WEIR_ORDER_PLACES) % WEIR_ORDER_PLACES);
}

static inline bool weir_apart_overlap(const struct weir_order_node *a,
				      const struct weir_order_node *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* Whether both do the same, side by side. */
static inline bool weir_apart_beside(const struct weir_order_node *a,
				     const struct weir_order_node *b)
{
	return a->modifies == b->modifies &&
	       (a->last + 1 == b->first || b->last + 1 == a->first);
}

/**
 * weir_apart_places() - where those begin that @n may meet
 * @n: in no tree or chain
 * @last: receives the last place
 *
 * Return: the first. Between them are no more than there are chains, and then one of each.
 */
static inline uint64_t weir_apart_places(const struct weir_order_node *n, uint64_t *last)
{
	uint64_t first = n->first >> WEIR_APART_SHIFT;

	first -= first > 0;
	*last = (n->last + (n->last < UINT64_MAX)) >> WEIR_APART_SHIFT;
	if (*last - first < WEIR_ORDER_PLACES - 1)
		return first;
	*last = WEIR_ORDER_PLACES - 1;
	return 0;
}

/* Whether @n, which was compared with @looks of them, can be one. */
static inline bool weir_apart_may_hold(const struct weir_order_node *n, uint32_t looks)
{
	return n->last - n->first < WEIR_APART_BYTES && looks < WEIR_APART_LOOKS_MAX;
}

static inline void weir_apart_add(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node **chain = &o->apart[weir_apart_index(n->first >> WEIR_APART_SHIFT)];

	n->apart = true;
	n->parent = NULL;
	n->left = *chain;
	if (n->left)
		n->left->parent = n;
	*chain = n;
	o->nr_apart++;
}

static inline void weir_apart_remove(struct weir_order *o, struct weir_order_node *n)
{
	n->apart = false;
	if (n->left)
		n->left->parent = n->parent;
	if (n->parent)
		n->parent->left = n->left;
	else
		o->apart[weir_apart_index(n->first >> WEIR_APART_SHIFT)] = n->left;
	o->nr_apart--;
}

#endif
