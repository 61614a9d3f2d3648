/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An interval tree over a treap: sorted by where a range begins, heap by a random weight,
 * and each node knows how far its subtree reaches, so that a search for overlaps skips
 * what ends too early. A treap because its expected depth needs no bookkeeping, and
 * parents because nothing here may recurse: the kernel's stack is small.
 *
 * Counting blockers, rather than keeping edges, needs no memory and makes a request that
 * is given up in the middle (cancelled, timed out) no special case: those after it also
 * counted whatever it waited for, where they overlap that.
 *
 * Most requests overlap none. Among those that do not, the one before a new one and the one after
 * it are on its way down, and say all: it is searched further only while some in the tree overlap.
 */
#include "core/order.h"

void weir_order_init(struct weir_order *o, uint64_t seed)
{
	o->root = NULL;
	o->turns = 0;
	o->nr_met = 0;
	o->sure = 0;
	o->seed = seed;
}

/* Knuth's linear congruential generator (MMIX): the upper bits of what it runs through. */
static uint32_t next_weight(struct weir_order *o)
{
	o->seed = o->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(o->seed >> 32);
}

static void update_reach(struct weir_order_node *n)
{
	n->reach = n->last;
	if (n->left && n->left->reach > n->reach)
		n->reach = n->left->reach;
	if (n->right && n->right->reach > n->reach)
		n->reach = n->right->reach;
}

/* The pointer that holds @n: its parent's or the root. */
static struct weir_order_node **place_of(struct weir_order *o, struct weir_order_node *n)
{
	if (!n->parent)
		return &o->root;
	return n->parent->left == n ? &n->parent->left : &n->parent->right;
}

/* Swaps @n with its parent, keeping the sequence. */
static void rotate_up(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *p = n->parent, *middle;

	*place_of(o, p) = n;
	n->parent = p->parent;
	p->parent = n;
	if (p->left == n) {
		middle = n->right;
		n->right = p;
		p->left = middle;
	} else {
		middle = n->left;
		n->left = p;
		p->right = middle;
	}
	if (middle)
		middle->parent = p;
	update_reach(p);
	update_reach(n);
}

static void extract(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *child, *above;
	uint64_t reach;

	while (n->left && n->right)
		rotate_up(o, n->left->weight > n->right->weight ? n->left : n->right);
	child = n->left ? n->left : n->right;
	*place_of(o, n) = child;
	if (child)
		child->parent = n->parent;
	for (above = n->parent; above; above = above->parent) {
		reach = above->reach;
		update_reach(above);
		if (above->reach == reach)
			break;
	}
}

/*
 * The first in the subtree @n that overlaps [@first, @last]. Going left is final: what
 * reaches @first there and begins after @last proves that all the rest begins later still.
 */
static struct weir_order_node *overlap_within(struct weir_order_node *n, uint64_t first,
					      uint64_t last)
{
	while (n && n->reach >= first) {
		if (n->left && n->left->reach >= first) {
			n = n->left;
			continue;
		}
		if (n->first > last)
			return NULL;
		if (n->last >= first)
			return n;
		n = n->right;
	}
	return NULL;
}

/* The next after @n that overlaps [@first, @last]. */
static struct weir_order_node *overlap_after(struct weir_order_node *n, uint64_t first,
					     uint64_t last)
{
	struct weir_order_node *below;

	for (;;) {
		if (n->right && n->right->reach >= first)
			return overlap_within(n->right, first, last);
		do {
			below = n;
			n = n->parent;
		} while (n && n->right == below);
		if (!n || n->first > last)
			return NULL;
		if (n->last >= first)
			return n;
	}
}

static bool are_alike_and_beside(const struct weir_order_node *a, const struct weir_order_node *b)
{
	return a->modifies == b->modifies && (a->last + 1 == b->first || b->last + 1 == a->first);
}

static bool overlap(const struct weir_order_node *a, const struct weir_order_node *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* Where @n belongs, below its parent now. Notes who lies beside it, and whether it meets one. */
static struct weir_order_node **descend(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *p, **place = &o->root;

	while ((p = *place)) {
		n->parent = p;
		n->met |= overlap(p, n);
		if (are_alike_and_beside(n, p))
			n->streams = n->touched = p->touched = true;
		place = n->first < p->first ? &p->left : &p->right;
	}
	return place;
}

static void count_blockers(const struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *other;

	for (other = overlap_within(o->root, n->first, n->last); other;
	     other = overlap_after(other, n->first, n->last)) {
		n->blockers += n->modifies || other->modifies;
		n->met = true;
	}
}

/* Counts its blockers, and puts it among the others. */
static void insert(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *above, **place = descend(o, n);

	if (n->met || o->nr_met) {
		count_blockers(o, n);
		o->sure = o->turns; /* those beside it may not have been on its way */
	}
	o->nr_met += n->met;
	for (above = n->parent; above && above->reach < n->last; above = above->parent)
		above->reach = n->last;
	*place = n;
	while (n->parent && n->parent->weight < n->weight)
		rotate_up(o, n);
}

void weir_order_add(struct weir_order *o, struct weir_order_node *node, uint64_t first,
		    uint64_t length, bool modifies)
{
	node->first = first;
	node->last = first + length - 1;
	node->turn = o->turns++;
	node->weight = next_weight(o);
	node->modifies = modifies;
	node->blockers = 0;
	node->streams = node->met = node->touched = false;
	node->reach = node->last;
	node->parent = node->left = node->right = NULL;
	if (o->root)
		insert(o, node);
	else
		o->root = node;
}

struct weir_order_node *weir_order_remove(struct weir_order *o, struct weir_order_node *node)
{
	struct weir_order_node *other, *freed = NULL, **tail = &freed;

	extract(o, node);
	if (!o->nr_met)
		return NULL;
	o->nr_met -= node->met;
	for (other = overlap_within(o->root, node->first, node->last); other;
	     other = overlap_after(other, node->first, node->last)) {
		if (other->turn < node->turn || !(node->modifies || other->modifies))
			continue;
		if (--other->blockers)
			continue;
		*tail = other;
		tail = &other->freed;
		other->freed = NULL;
	}
	return freed;
}

struct weir_order_node *weir_order_at(const struct weir_order *o, uint64_t byte,
				      struct weir_order_node *after)
{
	return after ? overlap_after(after, byte, byte) : overlap_within(o->root, byte, byte);
}
