/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An interval tree on top of a treap: sorted by range start, and a heap by random priority. Each
 * node stores the end of its subtree, so a search for overlaps skips ranges that end too early. A
 * treap stays flat without bookkeeping. Parent pointers avoid recursion, because the kernel's stack
 * is small.
 *
 * Each node counts its blockers instead of storing edges, so the order needs no memory. Giving up a
 * request in the middle (by cancel or timeout) is no special case, because later requests have also
 * counted its blockers where ranges overlap.
 *
 * Most requests overlap nothing and never enter the tree. While no ranges in the tree overlap, the
 * predecessor and successor on the way down settle everything; otherwise the tree is searched. A
 * range behind all others, as in a sequential walk, needs no descent.
 */
#include "core/engine/order.h"
#include "core/base/rng.h"
#include "core/engine/order_hash.h"

void weir_order_init(struct weir_order *o, uint64_t seed)
{
	memset(o, 0, sizeof(*o));
	o->seed = seed;
}

static uint32_t next_priority(struct weir_order *o)
{
	return (uint32_t)weir_rng_next(&o->seed);
}

static void update_subtree_last(struct weir_order_node *n)
{
	n->subtree_last = n->last;
	if (n->left && n->left->subtree_last > n->subtree_last)
		n->subtree_last = n->left->subtree_last;
	if (n->right && n->right->subtree_last > n->subtree_last)
		n->subtree_last = n->right->subtree_last;
}

/* The pointer to @n: in its parent, or the root. */
static struct weir_order_node **link_to(struct weir_order *o, struct weir_order_node *n)
{
	if (!n->parent)
		return &o->root;
	return n->parent->left == n ? &n->parent->left : &n->parent->right;
}

/* Swaps @n with its parent, keeping the sort order. */
static void rotate_up(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *p = n->parent, *middle;

	*link_to(o, p) = n;
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
	update_subtree_last(p);
	update_subtree_last(n);
}

/* The neighbours by start address. */
static struct weir_order_node *tree_next(struct weir_order_node *n)
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

static struct weir_order_node *tree_prev(struct weir_order_node *n)
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

static void tree_remove(struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *child, *above;
	uint64_t subtree_last;

	if (o->rightmost == n)
		o->rightmost = tree_prev(n);
	while (n->left && n->right)
		rotate_up(o, n->left->priority > n->right->priority ? n->left : n->right);
	child = n->left ? n->left : n->right;
	*link_to(o, n) = child;
	if (child)
		child->parent = n->parent;
	for (above = n->parent; above; above = above->parent) {
		subtree_last = above->subtree_last;
		update_subtree_last(above);
		if (above->subtree_last == subtree_last)
			break;
	}
}

/*
 * The first node in the subtree @n that overlaps [@first, @last]. Going left is final: if a node
 * there reaches @first but begins after @last, all later nodes do too.
 */
static struct weir_order_node *first_overlap(struct weir_order_node *n, uint64_t first,
					     uint64_t last)
{
	while (n && n->subtree_last >= first) {
		if (n->left && n->left->subtree_last >= first) {
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

/* The next node after @n that overlaps [@first, @last]. */
static struct weir_order_node *next_overlap(struct weir_order_node *n, uint64_t first,
					    uint64_t last)
{
	struct weir_order_node *below;

	for (;;) {
		if (n->right && n->right->subtree_last >= first)
			return first_overlap(n->right, first, last);
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
	if (weir_order_is_adjacent(n, other))
		n->in_stream = n->has_neighbour = other->has_neighbour = true;
}

/*
 * The link for @n in a non-empty tree; sets @n->parent. Notes adjacent nodes and overlaps on the
 * way.
 */
static struct weir_order_node **find_link_below_root(struct weir_order *o,
						     struct weir_order_node *n)
{
	struct weir_order_node *p = o->rightmost, **place = &o->root;

	n->parent = p;
	if (!o->nr_overlapped && n->first > p->last) {
		note_neighbour(n, p);
		return &p->right;
	}
	while ((p = *place)) {
		n->parent = p;
		n->overlapped |= weir_order_overlaps(p, n);
		note_neighbour(n, p);
		place = n->first < p->first ? &p->left : &p->right;
	}
	return place;
}

static inline struct weir_order_node **find_link(struct weir_order *o, struct weir_order_node *n)
{
	if (o->root)
		return find_link_below_root(o, n);
	n->parent = NULL;
	return &o->root;
}

static void count_blockers(const struct weir_order *o, struct weir_order_node *n)
{
	struct weir_order_node *other;

	for (other = first_overlap(o->root, n->first, n->last); other;
	     other = next_overlap(other, n->first, n->last)) {
		n->blockers += n->modifies || other->modifies;
		n->overlapped = true;
	}
}

/* Counts the blockers of @n and inserts @n at @place, as found by find_link(). */
static void tree_insert(struct weir_order *o, struct weir_order_node *n,
			struct weir_order_node **place)
{
	struct weir_order_node *above;

	n->left = n->right = NULL;
	n->subtree_last = n->last;
	n->priority = next_priority(o);
	if (n->overlapped || o->nr_overlapped) {
		count_blockers(o, n);
		o->exact_from = o->next_seq; /* the descent may have missed neighbours of @n */
	}
	o->nr_overlapped += n->overlapped;
	for (above = n->parent; above && above->subtree_last < n->last; above = above->parent)
		above->subtree_last = n->last;
	if (!n->parent || place == &o->rightmost->right)
		o->rightmost = n;
	*place = n;
	while (n->parent && n->parent->priority < n->priority)
		rotate_up(o, n);
}

/* Moves hashed nodes that overlap or touch @n to the tree. Returns the number of nodes compared. */
static uint32_t move_overlapping_to_tree(struct weir_order *o, const struct weir_order_node *n)
{
	struct weir_order_node *other, *next;
	uint64_t place, last;
	uint32_t looks = 0;

	for (place = weir_order_hash_first_granule(n, &last); place <= last; place++)
		for (other = o->hashed[weir_order_hash_bucket(place)]; other; other = next) {
			next = other->left;
			looks++;
			if (!weir_order_overlaps(n, other) && !weir_order_is_adjacent(n, other))
				continue;
			weir_order_hash_remove(o, other);
			tree_insert(o, other, find_link(o, other));
		}
	return looks;
}

/* Whether a node in the tree overlaps @n or is adjacent. */
static bool touches_tree(const struct weir_order *o, const struct weir_order_node *n)
{
	return first_overlap(o->root, n->first - (n->first > 0), n->last + (n->last < UINT64_MAX));
}

/* find_link() has found every overlap and neighbour, unless ranges in the tree overlap. */
static bool must_be_in_tree(const struct weir_order *o, const struct weir_order_node *n)
{
	return n->overlapped || n->has_neighbour || (o->nr_overlapped && touches_tree(o, n));
}

void weir_order_add(struct weir_order *o, struct weir_order_node *node, uint64_t first,
		    uint64_t length, bool modifies)
{
	struct weir_order_node **place;
	uint32_t looks = 0;

	node->first = first;
	node->last = first + length - 1;
	node->seq = o->next_seq++;
	node->modifies = modifies;
	node->blockers = 0;
	node->in_stream = node->overlapped = node->has_neighbour = node->hashed = false;
	if (o->nr_hashed)
		looks = move_overlapping_to_tree(o, node);
	place = find_link(o, node);
	if (weir_order_hash_accepts(node, looks) && !must_be_in_tree(o, node))
		weir_order_hash_add(o, node);
	else
		tree_insert(o, node, place);
}

struct weir_order_node *weir_order_remove(struct weir_order *o, struct weir_order_node *node)
{
	struct weir_order_node *other, *next_ready = NULL, **tail = &next_ready;

	if (node->hashed) {
		weir_order_hash_remove(o, node);
		return NULL;
	}
	tree_remove(o, node);
	if (!o->nr_overlapped)
		return NULL;
	o->nr_overlapped -= node->overlapped;
	for (other = first_overlap(o->root, node->first, node->last); other;
	     other = next_overlap(other, node->first, node->last)) {
		if (other->seq < node->seq || !(node->modifies || other->modifies))
			continue;
		if (--other->blockers)
			continue;
		*tail = other;
		tail = &other->next_ready;
		other->next_ready = NULL;
	}
	return next_ready;
}

struct weir_order_node *weir_order_neighbour(struct weir_order_node *node, bool after)
{
	struct weir_order_node *other = after ? tree_next(node) : tree_prev(node);

	if (!other || (after ? node->last + 1 != other->first : other->last + 1 != node->first))
		return NULL;
	return other;
}

struct weir_order_node *weir_order_covering(const struct weir_order *o, uint64_t byte,
					    struct weir_order_node *after)
{
	return after ? next_overlap(after, byte, byte) : first_overlap(o->root, byte, byte);
}
