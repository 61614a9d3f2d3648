/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order promise: which requests wait for which.
 *
 * Unfinished requests of a session that overlap or are adjacent are in one tree, sorted by remote
 * range. A new request counts its blockers: earlier requests that overlap and conflict. Two reads
 * never conflict. A request may be posted when the count is zero. A leaving request decrements the
 * count of each request blocked. Isolated requests stay in a hash table until another request meets
 * them: see order_hash.h.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_ORDER_H
#define WEIR_CORE_ENGINE_ORDER_H

#include "core/base/platform.h"

#define WEIR_ORDER_HASH_BUCKETS 256

/**
 * struct weir_order_node - one request's place in the order
 * @parent: parent in the tree; or the previous node of a hash chain
 * @left: begins at or before this node; or the next node of a hash chain
 * @right: begins at or after this node
 * @next_ready: the next in the result of weir_order_remove()
 * @first: first byte of the range
 * @last: last byte of the range, inclusive, so that a range may reach the end of the address space
 * @subtree_last: the greatest @last in the subtree
 * @seq: arrival number
 * @priority: random, at most the parent's, which keeps the tree flat
 * @blockers: earlier requests still to wait for
 * @modifies: the request changes remote memory
 * @in_stream: on arrival, an adjacent request did the same; may be missed where others overlap the
 *	neighbour
 * @overlapped: on arrival, the range overlapped another
 * @has_neighbour: an adjacent request does the same, or did; see weir_order_is_isolated()
 * @hashed: in the hash table, not the tree: overlaps nothing, and has no neighbour that does the
 *	same
 */
struct weir_order_node {
	struct weir_order_node *parent;
	struct weir_order_node *left;
	struct weir_order_node *right;
	struct weir_order_node *next_ready;
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
 * struct weir_order - the unfinished requests of one session
 * @root: root of the tree, or NULL
 * @rightmost: the last node of the tree by start address, or NULL
 * @next_seq: requests that have arrived so far
 * @nr_overlapped: nodes in the tree with @overlapped set. While 0, no two ranges in the tree
 *	overlap, and no search is needed
 * @exact_from: @has_neighbour is exact for nodes with this @seq or a later one
 * @seed: state of the priority generator
 * @nr_hashed: nodes in the hash table
 * @hashed: the hash table, by start address
 *
 * Serialised by the engine's host.
 */
struct weir_order {
	struct weir_order_node *root;
	struct weir_order_node *rightmost;
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
 * @seed: any number; determines the tree's shape
 */
void weir_order_init(struct weir_order *o, uint64_t seed);

/**
 * weir_order_add() - add a request
 * @o: the order
 * @node: the request's node; *kept until* weir_order_remove()
 * @first: remote address of the first byte
 * @length: bytes, at least 1; the range must not wrap
 * @modifies: whether the request changes remote memory
 *
 * Sets @node->blockers to the number of requests to wait for. Takes constant time for an isolated
 * request; else logarithmic time, plus a step for each earlier request that overlaps.
 */
void weir_order_add(struct weir_order *o, struct weir_order_node *node, uint64_t first,
		    uint64_t length, bool modifies);

/**
 * weir_order_remove() - remove a request that is done or given up
 * @o: the order
 * @node: added before; the caller's again
 *
 * Return: requests whose last blocker was @node, chained by @next_ready, or NULL. They stay in
 *	the order and may be posted now.
 */
struct weir_order_node *weir_order_remove(struct weir_order *o, struct weir_order_node *node);

/**
 * weir_order_is_isolated() - whether a request surely has no neighbour that does the same
 * @o: the order
 * @node: in the order
 *
 * Return: true if there is no such neighbour; false means unknown.
 */
static inline bool weir_order_is_isolated(const struct weir_order *o,
					  const struct weir_order_node *node)
{
	return node->hashed || (!node->has_neighbour && node->seq >= o->exact_from);
}

/**
 * weir_order_neighbour() - the adjacent request in a tree without overlaps
 * @node: in the tree, not hashed; @o->nr_overlapped is 0
 * @after: true for the request behind @node, false for the request before @node
 *
 * Return: the neighbour on that side without a gap, or NULL.
 */
struct weir_order_node *weir_order_neighbour(struct weir_order_node *node, bool after);

/**
 * weir_order_covering() - iterate over the requests in the tree that touch a byte
 * @o: the order
 * @byte: a remote address
 * @after: NULL for the first, or the previous result for the next
 *
 * Return: a node whose range holds @byte, in order of start address, or NULL.
 */
struct weir_order_node *weir_order_covering(const struct weir_order *o, uint64_t byte,
					    struct weir_order_node *after);

#endif
