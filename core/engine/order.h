/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order promise: which requests wait for which.
 *
 * Those requests of a session that are not done and meet, which is to overlap or to lie side by
 * side, are in one tree, by the remote range they touch. One that comes counts those before it that
 * overlap it and conflict with it, its blockers; it may be posted when that count is zero. One that
 * leaves takes one off the count of each later one that it blocked. Two that only read never
 * conflict. One that meets none stands hashed, in no tree, until one comes that meets it: hashed.h.
 */
#ifndef WEIR_CORE_ENGINE_ORDER_H
#define WEIR_CORE_ENGINE_ORDER_H

#include "core/base/platform.h"

#define WEIR_ORDER_HASH_BUCKETS 256

/**
 * struct weir_order_node - one request's place in the order
 * @parent: above it in the tree; or the one before it among those hashed
 * @left: begins at or before it; or the one after it among those hashed
 * @right: begins at or after it
 * @freed: the next in what weir_order_remove() returned
 * @first: first byte that it touches
 * @last: last byte that it touches, so that a range may end at the end of the address space
 * @subtree_last: the greatest @last in its subtree
 * @seq: when it came, counted in requests
 * @priority: random; no node weighs more than its parent, which keeps the tree flat
 * @blockers: earlier ones still there that it must wait for
 * @modifies: it changes the remote memory
 * @in_stream: when it came, one that does the same lay right beside it; may be missed where others
 *	overlap that one
 * @overlapped: when it came, it overlapped another
 * @has_neighbour: one that does the same lay right beside it, or came there; see weir_order_is_isolated()
 * @hashed: it is not in the tree: it overlaps none, and none that does the same lies beside it
 */
struct weir_order_node {
	struct weir_order_node *parent;
	struct weir_order_node *left;
	struct weir_order_node *right;
	struct weir_order_node *freed;
	uint64_t first;
	uint64_t last;
	uint64_t subtree_last;
	uint64_t seq;
	uint32_t priority;
	uint32_t blockers;
	bool modifies;
	bool in_stream;
	bool overlapped;
	bool has_neighbour;
	bool hashed;
};

/**
 * struct weir_order - the requests of one session that are not done
 * @root: of the tree, or NULL
 * @greatest: the last in the tree by where they begin, or NULL
 * @next_seq: requests that have come so far
 * @nr_overlapped: of those in the tree, how many overlapped another when they came. While it is 0 no two
 *	do, and nobody needs to be searched for
 * @exact_from: from this seq on @has_neighbour has missed none
 * @seed: of the next priority
 * @nr_hashed: requests that stand hashed
 * @hashed: these, by where they begin
 *
 * Serialised by the engine's host.
 */
struct weir_order {
	struct weir_order_node *root;
	struct weir_order_node *greatest;
	uint64_t next_seq;
	uint64_t nr_overlapped;
	uint64_t exact_from;
	uint64_t seed;
	uint32_t nr_hashed;
	struct weir_order_node *hashed[WEIR_ORDER_HASH_BUCKETS];
};

/**
 * weir_order_init() - start with no requests
 * @o: to be initialised
 * @seed: any number; the tree's shape follows from it
 *
 * Context: Any.
 */
void weir_order_init(struct weir_order *o, uint64_t seed);

/**
 * weir_order_add() - a request comes
 * @o: the order
 * @node: the request's; *kept until* weir_order_remove()
 * @first: remote address of its first byte
 * @length: bytes, at least 1; the range must not wrap
 * @modifies: whether it changes that memory
 *
 * Afterwards @node->blockers says how many it must wait for. Takes some steps if it meets none;
 * otherwise logarithmic time, and a step for each earlier request that it overlaps.
 *
 * Context: Any; never sleeps. Externally serialised.
 */
void weir_order_add(struct weir_order *o, struct weir_order_node *node, uint64_t first,
		    uint64_t length, bool modifies);

/**
 * weir_order_remove() - a request is done, or has been given up
 * @o: the order
 * @node: added before; the caller's again
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: those whose last blocker it was, chained by @freed, or NULL. They are still in
 *	the order, and may be posted now.
 */
struct weir_order_node *weir_order_remove(struct weir_order *o, struct weir_order_node *node);

/**
 * weir_order_is_isolated() - whether a request is known to have no neighbour that does the same
 * @o: the order
 * @node: one that is in it
 *
 * Context: Any. Externally serialised.
 * Return: true when none is there; false says nothing.
 */
static inline bool weir_order_is_isolated(const struct weir_order *o,
					  const struct weir_order_node *node)
{
	return node->hashed || (!node->has_neighbour && node->seq >= o->exact_from);
}

/**
 * weir_order_neighbour() - who lies right beside a request, where none overlap
 * @node: one that does not stand hashed; @o->nr_overlapped is 0
 * @after: behind it; otherwise before it
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: the next one on that side if it begins, or ends, where @node ends, or begins; or NULL.
 */
struct weir_order_node *weir_order_neighbour(struct weir_order_node *node, bool after);

/**
 * weir_order_covering() - who touches a byte, of those that do not stand hashed
 * @o: the order
 * @byte: a remote address
 * @after: NULL for the first, or what was returned before, for the next
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: one whose range holds @byte, by where they begin, or NULL.
 */
struct weir_order_node *weir_order_covering(const struct weir_order *o, uint64_t byte,
					    struct weir_order_node *after);

#endif
