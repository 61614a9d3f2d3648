/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A list that only ever grows at its head or is taken whole: neither can meet an address
 * that came back (ABA), so one word and one compare-and-swap do. It comes out newest
 * first and is turned round by the taker, who has the lock and hence the time.
 */
#include "core/base/inbox.h"

void weir_inbox_init(struct weir_inbox *inbox)
{
	inbox->newest = NULL;
}

void weir_inbox_push(struct weir_inbox *inbox, struct weir_inbox_node *node)
{
	weir_inbox_push_all(inbox, node, node);
}

void weir_inbox_push_all(struct weir_inbox *inbox, struct weir_inbox_node *newest,
			 struct weir_inbox_node *oldest)
{
	struct weir_inbox_node *before = weir_atomic_load(&inbox->newest);

	/*
	 * Releases what the pusher wrote to the nodes to the swap in weir_inbox_take(). Acquires
	 * the unlock before the replacement in weir_inbox_is_empty(), if that came first.
	 */
	do {
		oldest->next = before;
	} while (!weir_atomic_compare_exchange(&inbox->newest, &before, newest));
}

struct weir_inbox_node *weir_inbox_take(struct weir_inbox *inbox)
{
	/* Acquires from each weir_inbox_push() of the list what its pusher wrote. */
	struct weir_inbox_node *node = weir_atomic_exchange(&inbox->newest, NULL);
	struct weir_inbox_node *oldest = NULL, *next;

	for (; node; node = next) {
		next = node->next;
		node->next = oldest;
		oldest = node;
	}
	return oldest;
}

bool weir_inbox_is_empty(struct weir_inbox *inbox)
{
	struct weir_inbox_node *none = NULL;

	/*
	 * Not a load: the unlock before it and a load could pass each other, just as the push
	 * and the trylock of another thread, and then neither would see the other. All
	 * changes of one word have one order, so either the push came first and is seen, or
	 * it comes later, acquires from this replacement, and finds the lock given back.
	 */
	return weir_atomic_compare_exchange(&inbox->newest, &none, NULL);
}
