/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pushes add at the head, and a take removes the whole list, so ABA cannot occur and one
 * compare-and-swap is enough. The list is newest first; the taker reverses the order under the
 * lock.
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
	 * Release: the swap in weir_inbox_take() sees what the pusher wrote to the nodes. Ordered
	 * with the pusher's trylock: see combine.h.
	 */
	do {
		oldest->next = before;
	} while (!weir_atomic_compare_exchange(&inbox->newest, &before, newest));
}

struct weir_inbox_node *weir_inbox_take(struct weir_inbox *inbox)
{
	/* Acquire: pairs with weir_inbox_push(), so the taker sees what each pusher wrote. */
	struct weir_inbox_node *node = weir_atomic_exchange(&inbox->newest, NULL);
	struct weir_inbox_node *oldest = NULL, *next;

	for (; node; node = next) {
		next = node->next;
		node->next = oldest;
		oldest = node;
	}
	return oldest;
}
