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
 * Most requests meet none, and never see the tree. Among those in it that do not overlap, the one
 * before a new one and the one after it are on its way down, and say all: it is searched further
 * only while some in the tree overlap. One that begins behind all others, as in a walk from one end
 * of the memory to the other, finds its place without a way down.
 */
#include "core/engine/order.h"
#include "core/engine/order_hash.h"

void weir_order_init(struct weir_order *o, uint64_t seed)
{
	memset(o, 0, sizeof(*o));
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

/* The neighbours by where they begin. */
static struct weir_order_node *next_of(struct weir_order_node *n)
{
	struct weir_order_node *below;

	if (n->right) {
		for (n = n->right; n->left; n = n->left)
			;
		return n;
	}
	do {
		below = n;
		n = n->parent;
	} while (n && n->right == below);
	return n;
}

static struct weir_order_node *one_before(struct weir_order_node *n)
{
	struct weir_order_node *below;

	if (n->left) {
		for (n = n->left; n->right; n = n->right)
			;
		return n;
	}
	do {
		below = n;
		n = n->parent;
	} while (n && n->left == below);
	return n;
}

static void extract(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *child, *above;
	uint64_t reach;

	if (o->greatest == n)
		o->greatest = one_before(n);
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

static void note_neighbour(struct weir_order_node *n, struct weir_order_node *other)
{
	if (weir_apart_beside(n, other))
		n->streams = n->touched = other->touched = true;
}

/* Where @n belongs, below its parent now, in a tree that is not empty. Notes who lies beside it, and whether it meets one. */
static struct weir_order_node **go_down(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *p = o->greatest, **place = &o->root;

	n->parent = p;
	if (!o->nr_met && n->first > p->last) {
		note_neighbour(n, p);
		return &p->right;
	}
	while ((p = *place)) {
		n->parent = p;
		n->met |= weir_apart_overlap(p, n);
		note_neighbour(n, p);
		place = n->first < p->first ? &p->left : &p->right;
	}
	return place;
}

static inline struct weir_order_node **descend(struct weir_order *o, struct weir_order_node *n)
{
	if (o->root)
		return go_down(o, n);
	n->parent = NULL;
	return &o->root;
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

/* Counts its blockers, and puts it among the others, at the place that descend() found. */
static void insert(struct weir_order *o, struct weir_order_node *n, struct weir_order_node **place)
{
	struct weir_order_node *above;

	n->left = n->right = NULL;
	n->reach = n->last;
	n->weight = next_weight(o);
	if (n->met || o->nr_met) {
		count_blockers(o, n);
		o->sure = o->turns; /* those beside it may not have been on its way */
	}
	o->nr_met += n->met;
	for (above = n->parent; above && above->reach < n->last; above = above->parent)
		above->reach = n->last;
	if (!n->parent || place == &o->greatest->right)
		o->greatest = n;
	*place = n;
	while (n->parent && n->parent->weight < n->weight)
		rotate_up(o, n);
}

/* Those that stood apart, and that @n meets, enter the tree. Returns how many it was compared with. */
static uint32_t join(struct weir_order *o, const struct weir_order_node *n)
{
	struct weir_order_node *other, *next;
	uint64_t place, last;
	uint32_t looks = 0;

	for (place = weir_apart_places(n, &last); place <= last; place++)
		for (other = o->apart[weir_apart_index(place)]; other; other = next) {
			next = other->left;
			looks++;
			if (!weir_apart_overlap(n, other) && !weir_apart_beside(n, other))
				continue;
			weir_apart_remove(o, other);
			insert(o, other, descend(o, other));
		}
	return looks;
}

/* Whether one in the tree touches a byte of @n, or one right beside it. */
static bool reaches_one(const struct weir_order *o, const struct weir_order_node *n)
{
	return overlap_within(o->root, n->first - (n->first > 0),
			      n->last + (n->last < UINT64_MAX));
}

/* What descend() has found is all there is to find, unless some in the tree overlap. */
static bool meets_one(const struct weir_order *o, const struct weir_order_node *n)
{
	return n->met || n->touched || (o->nr_met && reaches_one(o, n));
}

void weir_order_add(struct weir_order *o, struct weir_order_node *node, uint64_t first,
		    uint64_t length, bool modifies)
{
	struct weir_order_node **place;
	uint32_t looks = 0;

	node->first = first;
	node->last = first + length - 1;
	node->turn = o->turns++;
	node->modifies = modifies;
	node->blockers = 0;
	node->streams = node->met = node->touched = node->apart = false;
	if (o->nr_apart)
		looks = join(o, node);
	place = descend(o, node);
	if (weir_apart_may_hold(node, looks) && !meets_one(o, node))
		weir_apart_add(o, node);
	else
		insert(o, node, place);
}

struct weir_order_node *weir_order_remove(struct weir_order *o, struct weir_order_node *node)
{
	struct weir_order_node *other, *freed = NULL, **tail = &freed;

	if (node->apart) {
		weir_apart_remove(o, node);
		return NULL;
	}
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

struct weir_order_node *weir_order_beside(struct weir_order_node *node, bool after)
{
	struct weir_order_node *other = after ? next_of(node) : one_before(node);

	if (!other || (after ? node->last + 1 != other->first : other->last + 1 != node->first))
		return NULL;
	return other;
}

struct weir_order_node *weir_order_at(const struct weir_order *o, uint64_t byte,
				      struct weir_order_node *after)
{
	return after ? overlap_after(after, byte, byte) : overlap_within(o->root, byte, byte);
}
