/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects that are not in use, for whoever needs one, without a lock: a list that one thread at a
 * time takes from. Who finds another there does without, and allocates.
 */
#ifndef WEIR_LIB_SPARE_H
#define WEIR_LIB_SPARE_H

#include <stdbool.h>

#include "core/inbox.h"

/**
 * struct weir_spares - zero to begin with
 * @returned: those given back, which nobody has taken from yet
 * @busy: a thread is at @ready; atomic
 * @ready: those to be taken next
 */
struct weir_spares {
	struct weir_inbox returned;
	bool busy;
	struct weir_inbox_node *ready;
};

/* Takes one. NULL: there is none, or another thread takes one just now. Context: any thread. */
static inline struct weir_inbox_node *weir_spare_get(struct weir_spares *spares)
{
	struct weir_inbox_node *node;

	if (__atomic_exchange_n(&spares->busy, true, __ATOMIC_ACQUIRE))
		return NULL;
	node = spares->ready;
	if (!node) /* in whatever order */
		node = weir_atomic_swap(&spares->returned.newest, NULL);
	if (node)
		spares->ready = node->next;
	__atomic_store_n(&spares->busy, false, __ATOMIC_RELEASE);
	return node;
}

/* Gives one back. Context: any thread. */
static inline void weir_spare_put(struct weir_spares *spares, struct weir_inbox_node *node)
{
	weir_inbox_push(&spares->returned, node);
}

#endif
