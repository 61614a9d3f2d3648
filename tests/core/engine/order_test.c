/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The order: a table of pairs, and a long random run checked by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/base/rng.h"
#include "core/engine/order_hash.h"
#include "core/engine/order.h"

#define LONG (2 * WEIR_ORDER_HASH_BYTES)

struct span {
	uint64_t first;
	uint64_t length;
	bool modifies;
};

struct order_pair {
	const char *sentence;
	struct span before;
	struct span after;
	bool waits;
};

#define R false
#define W true

static const struct order_pair pairs[] = {
	{ "two reads of the same bytes are free", { 0, 8, R }, { 0, 8, R }, false },
	{ "a read waits for a write", { 0, 8, W }, { 0, 8, R }, true },
	{ "a write waits for a read", { 0, 8, R }, { 0, 8, W }, true },
	{ "a write waits for a write", { 0, 8, W }, { 0, 8, W }, true },
	{ "one shared byte at the end is enough", { 0, 8, W }, { 7, 8, W }, true },
	{ "one shared byte at the beginning is enough", { 7, 8, W }, { 0, 8, W }, true },
	{ "what begins where the other ends is free", { 0, 8, W }, { 8, 8, W }, false },
	{ "what ends where the other begins is free", { 8, 8, W }, { 0, 8, W }, false },
	{ "a small one inside a large one waits", { 0, 1000, W }, { 500, 1, R }, true },
	{ "a large one around a small one waits", { 500, 1, R }, { 0, 1000, W }, true },
	{ "the last byte of the address space counts",
	  { UINT64_MAX, 1, W },
	  { UINT64_MAX - 7, 8, W },
	  true },
	{ "the address space is not a circle", { UINT64_MAX, 1, W }, { 0, 8, W }, false },
};

static void add(struct weir_order *o, struct weir_order_node *n, const struct span *r)
{
	weir_order_add(o, n, r->first, r->length, r->modifies);
}

static void requests_beside_alike_stream(void **state)
{
	static const struct {
		struct span range;
		bool in_stream;
	} comes[] = {
		{ { 16, 8, W }, false }, { { 24, 8, W }, true },  { { 8, 8, W }, true },
		{ { 40, 8, W }, false }, { { 32, 8, R }, false }, { { 32, 8, W }, true },
	};
	struct weir_order_node nodes[6];
	struct weir_order o;
	unsigned int i;

	(void)state;
	weir_order_init(&o, 1);
	for (i = 0; i < 6; i++) {
		add(&o, &nodes[i], &comes[i].range);
		assert_int_equal(nodes[i].in_stream, comes[i].in_stream);
	}
}

static void play(void **state)
{
	const struct order_pair *pair = *state;
	struct weir_order_node before, after;
	struct weir_order o;

	weir_order_init(&o, 1);
	add(&o, &before, &pair->before);
	assert_int_equal(before.blockers, 0);
	add(&o, &after, &pair->after);
	assert_int_equal(after.blockers, pair->waits);
	assert_ptr_equal(weir_order_remove(&o, &before), pair->waits ? &after : NULL);
	assert_null(weir_order_remove(&o, &after));
	assert_null(o.root);
}

static void frees_only_by_the_last(void **state)
{
	static const struct span write = { 0, 8, W }, read = { 0, 8, R };
	struct weir_order_node first, second, third;
	struct weir_order o;

	(void)state;
	weir_order_init(&o, 1);
	add(&o, &first, &read);
	add(&o, &second, &read);
	add(&o, &third, &write);
	assert_int_equal(third.blockers, 2);
	assert_null(weir_order_remove(&o, &second));
	assert_ptr_equal(weir_order_remove(&o, &first), &third);
	assert_null(weir_order_remove(&o, &third));
}

static void frees_all_readers(void **state)
{
	static const struct span write = { 0, 64, W };
	struct weir_order_node writer, reader[8], *freed;
	struct weir_order o;
	int i, count = 0;

	(void)state;
	weir_order_init(&o, 1);
	add(&o, &writer, &write);
	for (i = 0; i < 8; i++)
		weir_order_add(&o, &reader[i], 8 * i, 8, R);
	for (freed = weir_order_remove(&o, &writer); freed; freed = freed->next_ready)
		count++;
	assert_int_equal(count, 8);
	for (i = 0; i < 8; i++)
		assert_null(weir_order_remove(&o, &reader[i]));
}

static void giving_up_the_middle(void **state)
{
	static const struct span left = { 0, 8, W }, middle = { 4, 8, W }, right = { 8, 8, W };
	struct weir_order_node a, b, c;
	struct weir_order o;

	(void)state;
	weir_order_init(&o, 1);
	add(&o, &a, &left);
	add(&o, &b, &middle);
	add(&o, &c, &right);
	assert_int_equal(c.blockers, 1);
	assert_ptr_equal(weir_order_remove(&o, &b), &c);
	assert_null(weir_order_remove(&o, &a));
	assert_null(weir_order_remove(&o, &c));
}

#define NODES 64
#define STEPS 20000

static uint64_t dice(uint64_t *state, uint64_t sides)
{
	return weir_rng_scale(weir_rng_next(state), sides);
}

static bool by_hand_blocks(const struct weir_order_node *a, const struct weir_order_node *b)
{
	return a->seq < b->seq && a->first <= b->last && b->first <= a->last &&
	       (a->modifies || b->modifies);
}

static bool by_hand_neighbours(const struct weir_order_node *a, const struct weir_order_node *b)
{
	return a->modifies == b->modifies && (a->last + 1 == b->first || b->last + 1 == a->first);
}

static void check_all(const struct weir_order *o, const struct weir_order_node *node,
		      const bool *present)
{
	int i, j;

	for (i = 0; i < NODES; i++) {
		uint32_t blockers = 0;

		if (!present[i])
			continue;
		for (j = 0; j < NODES; j++) {
			blockers += present[j] && by_hand_blocks(&node[j], &node[i]);
			assert_false(present[j] && by_hand_neighbours(&node[j], &node[i]) &&
				     weir_order_is_isolated(o, &node[i]));
		}
		assert_int_equal(node[i].blockers, blockers);
	}
}

static int depth_of(const struct weir_order_node *n)
{
	int depth = 0;

	for (; n; n = n->parent)
		depth++;
	return depth;
}

/* Requests begin at one of @places from @base on; fewer places mean more overlap. */
static void agrees_within(uint64_t base, uint64_t places)
{
	static struct weir_order_node node[NODES];
	bool present[NODES] = { false };
	uint64_t seed = 42;
	struct weir_order o;
	int step;

	weir_order_init(&o, seed);
	for (step = 0; step < STEPS; step++) {
		int i = (int)dice(&seed, NODES);

		if (present[i])
			weir_order_remove(&o, &node[i]);
		else
			weir_order_add(&o, &node[i], base + dice(&seed, places),
				       1 + dice(&seed, 40), dice(&seed, 2));
		present[i] = !present[i];
		check_all(&o, node, present);
	}
}

static void agrees_with_counting_by_hand(void **state)
{
	(void)state;
	agrees_within(0, 200);
	agrees_within(0, 5000);
	agrees_within(0, 100000);
	agrees_within(WEIR_ORDER_HASH_BYTES - 100, 200);
	agrees_within(WEIR_ORDER_HASH_BYTES - 2500, 5000);
	agrees_within(UINT64_MAX - 100040, 100000);
}

static void a_request_without_neighbours_is_known(void **state)
{
	struct weir_order_node a, b, c, d;
	struct weir_order o;

	(void)state;
	weir_order_init(&o, 1);
	/* isolated: it is in the tree for every later request */
	weir_order_add(&o, &a, 0, LONG, W);
	weir_order_add(&o, &b, LONG + 16, 8, W);
	assert_true(weir_order_is_isolated(&o, &a));
	assert_true(weir_order_is_isolated(&o, &b));
	weir_order_add(&o, &c, LONG + 24, 8, W);
	assert_true(weir_order_is_isolated(&o, &a));
	assert_false(weir_order_is_isolated(&o, &b));
	assert_false(weir_order_is_isolated(&o, &c));
	/* @d overlaps. A request added before @d may have been missed. */
	weir_order_add(&o, &d, LONG + 28, 8, R);
	assert_false(weir_order_is_isolated(&o, &a));
	weir_order_remove(&o, &c);
	weir_order_remove(&o, &d);
	weir_order_add(&o, &d, LONG + 40, 8, R);
	assert_true(weir_order_is_isolated(&o, &d));
}

static void a_request_without_conflicts_is_not_in_the_tree(void **state)
{
	const uint64_t edge = 3 * WEIR_ORDER_HASH_BYTES;
	struct weir_order_node a, b, c;
	struct weir_order o;

	(void)state;
	weir_order_init(&o, 1);
	weir_order_add(&o, &a, edge - 8, 16, W);
	weir_order_add(&o, &b, edge + 8, 8, R); /* adjacent, but another operation */
	assert_null(o.root);
	weir_order_add(&o, &c, edge + 7, 1, R);
	assert_non_null(o.root);
	assert_int_equal(c.blockers, 1);
	assert_false(a.hashed);
	assert_false(b.hashed);
	assert_ptr_equal(weir_order_remove(&o, &a), &c);
	assert_null(weir_order_remove(&o, &c));
	assert_null(weir_order_remove(&o, &b));
	assert_null(o.root);
	assert_int_equal(o.nr_hashed, 0);
}

static void neighbours_meet_across_places(void **state)
{
	const uint64_t edge = 3 * WEIR_ORDER_HASH_BYTES;
	struct weir_order_node behind, before;
	struct weir_order o;

	(void)state;
	weir_order_init(&o, 1);
	weir_order_add(&o, &behind, edge, 8, W);
	weir_order_add(&o, &before, edge - 8, 8, W);
	assert_false(weir_order_is_isolated(&o, &behind));
	assert_false(weir_order_is_isolated(&o, &before));
	assert_ptr_equal(weir_order_neighbour(&before, true), &behind);
	assert_ptr_equal(weir_order_neighbour(&behind, false), &before);
}

static void long_ones_meet_all_that_stood_apart(void **state)
{
	struct weir_order_node few[64], long_one;
	struct weir_order o;
	uint64_t i;

	(void)state;
	weir_order_init(&o, 1);
	for (i = 0; i < 64; i++)
		weir_order_add(&o, &few[i], 7 * i * WEIR_ORDER_HASH_BYTES, 8, W);
	assert_int_equal(o.nr_hashed, 64);
	weir_order_add(&o, &long_one, 0, 7 * 63 * WEIR_ORDER_HASH_BYTES - 8, W);
	assert_int_equal(long_one.blockers, 63);
	assert_int_equal(o.nr_hashed, 1);
}

static void a_crowd_is_in_the_tree(void **state)
{
	static struct weir_order_node node[1024];
	struct weir_order o;
	uint64_t i;

	(void)state;
	weir_order_init(&o, 1);
	for (i = 0; i < 1024; i++)
		weir_order_add(&o, &node[i], 16 * i, 8, W);
	assert_in_range(o.nr_hashed, 1, WEIR_ORDER_HASH_CHAIN_MAX);
	for (i = 0; i < 1024; i++)
		assert_null(weir_order_remove(&o, &node[i]));
	assert_null(o.root);
	assert_null(o.rightmost);
}

/* A ring of adjacent requests, as a sequential stream keeps in flight. */
static void an_older_request_is_found_by_a_newer_one(void **state)
{
	static struct weir_order_node node[64];
	struct weir_order_node read;
	struct weir_order o;
	uint64_t i;

	(void)state;
	weir_order_init(&o, 1);
	for (i = 0; i < 20000; i++) {
		if (i >= 64)
			assert_null(weir_order_remove(&o, &node[i % 64]));
		weir_order_add(&o, &node[i % 64], 4096 * (i % 5000), 4096, W);
		assert_int_equal(node[i % 64].blockers, 0);
		assert_true(!o.rightmost || !o.rightmost->right);
		if (i < 64 || i % 5000 < 64)
			continue;
		weir_order_add(&o, &read, 4096 * (i % 5000 - 20), 8192, R);
		assert_int_equal(read.blockers, 2);
		weir_order_remove(&o, &read);
	}
}

static void stays_flat(void **state)
{
	static struct weir_order_node node[4096];
	struct weir_order o;
	int i, depth_max = 0;

	(void)state;
	weir_order_init(&o, 7);
	for (i = 0; i < 4096; i++)
		weir_order_add(&o, &node[i], 8 * i, 8, W);
	for (i = 0; i < 4096; i++)
		depth_max = depth_of(&node[i]) > depth_max ? depth_of(&node[i]) : depth_max;
	assert_true(depth_max < 48);
}

#define NR_PAIRS (sizeof(pairs) / sizeof(*pairs))
#define NR_OTHERS 12

int main(void)
{
	struct CMUnitTest tests[NR_PAIRS + NR_OTHERS] = {
		{ "only the last of its blockers frees it", frees_only_by_the_last },
		{ "who comes right beside one that does the same streams, and who does not, not",
		  requests_beside_alike_stream },
		{ "a write that is done frees all that read it", frees_all_readers },
		{ "one given up in the middle frees what waits for it alone",
		  giving_up_the_middle },
		{ "a hundred and twenty thousand random steps agree with counting by hand",
		  agrees_with_counting_by_hand },
		{ "who has no neighbour is known, unless some overlap",
		  a_request_without_neighbours_is_known },
		{ "ascending addresses do not make the tree deep", stays_flat },
		{ "who meets none is in no tree, until one comes that meets it",
		  a_request_without_conflicts_is_not_in_the_tree },
		{ "neighbours meet across the edge of a place", neighbours_meet_across_places },
		{ "a long one meets all that stood apart", long_ones_meet_all_that_stood_apart },
		{ "of a crowd most are in the tree", a_crowd_is_in_the_tree },
		{ "who walks through memory is found by who comes",
		  an_older_request_is_found_by_a_newer_one },
	};
	size_t i;

	for (i = 0; i < NR_PAIRS; i++)
		tests[i + NR_OTHERS] = (struct CMUnitTest){ pairs[i].sentence, play, NULL, NULL,
							    (void *)&pairs[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
