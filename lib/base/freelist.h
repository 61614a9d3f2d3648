/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock-free list of unused objects. Any thread may put; one thread at a time gets, and a second
 * one allocates instead of waiting. A caller that holds a lock of its own may also use a one-object
 * cache, which is enough for a thread with one object in use at a time.
 */
#ifndef WEIR_LIB_BASE_FREELIST_H
#define WEIR_LIB_BASE_FREELIST_H

#include <stdbool.h>

#include "core/base/inbox.h"

/**
 * struct weir_freelist - initialised with zeros
 * @returned: objects put back and not yet moved to @ready
 * @busy: a thread is taking from @ready; atomic
 * @ready: objects to take next
 * @at_hand: the one-object cache, or NULL; guarded by the user's lock
 */
struct weir_freelist {
	struct weir_inbox returned;
	bool busy;
	struct weir_inbox_node *ready;
	struct weir_inbox_node *at_hand;
};

/*
 * Takes at most @count objects, chained. NULL: the list is empty, or another thread is taking.
 * Context: any thread.
 */
static inline struct weir_inbox_node *weir_freelist_get_some(struct weir_freelist *list,
							     unsigned int count)
{
	struct weir_inbox_node *first, *last;

	if (__atomic_exchange_n(&list->busy, true, __ATOMIC_ACQUIRE))
		return NULL;
	first = list->ready;
	if (!first) /* any order will do */
		first = weir_atomic_exchange(&list->returned.newest, NULL);
	if (first) {
		for (last = first; --count && last->next; last = last->next)
			;
		list->ready = last->next;
		last->next = NULL;
	}
	__atomic_store_n(&list->busy, false, __ATOMIC_RELEASE);
	return first;
}

/* Takes the cached object, or else one of the others. Context: with the user's lock. */
static inline struct weir_inbox_node *weir_freelist_get_kept(struct weir_freelist *list)
{
	struct weir_inbox_node *node = list->at_hand;

	list->at_hand = NULL;
	return node ? node : weir_freelist_get_some(list, 1);
}

/* Puts @node back. Context: any thread. */
static inline void weir_freelist_put(struct weir_freelist *list, struct weir_inbox_node *node)
{
	weir_inbox_push_all(&list->returned, node, node);
}

/*
 * Puts the chain from @first to @last back; a single object may go to the cache. Context: with the
 * user's lock.
 */
static inline void weir_freelist_keep_some(struct weir_freelist *list,
					   struct weir_inbox_node *first,
					   struct weir_inbox_node *last)
{
	if (first != last || list->at_hand)
		weir_inbox_push_all(&list->returned, first, last);
	else
		list->at_hand = first;
}

#endif
