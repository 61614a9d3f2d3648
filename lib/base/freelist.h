/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects that are not in use, for whoever needs one, without a lock: a list that one thread at a
 * time takes from. Who finds another there does without, and allocates. One is kept beside it for
 * who has a lock anyway: that is all that a thread needs which has one object in use at a time.
 */
#ifndef WEIR_LIB_BASE_FREELIST_H
#define WEIR_LIB_BASE_FREELIST_H

#include <stdbool.h>

#include "core/base/inbox.h"

/**
 * struct weir_freelist - zero to begin with
 * @returned: those given back, which nobody has taken from yet
 * @busy: a thread is at @ready; atomic
 * @ready: those to be taken next
 * @at_hand: one more, or NULL; guarded by the user's lock
 */
struct weir_freelist {
	struct weir_inbox returned;
	bool busy;
	struct weir_inbox_node *ready;
	struct weir_inbox_node *at_hand;
};

/*
 * Takes some, @count at most, chained. NULL: there is none, or another thread takes some just now.
 * Context: any thread.
 */
static inline struct weir_inbox_node *weir_freelist_get_some(struct weir_freelist *list,
							     unsigned int count)
{
	struct weir_inbox_node *first, *last;

	if (__atomic_exchange_n(&list->busy, true, __ATOMIC_ACQUIRE))
		return NULL;
	first = list->ready;
	if (!first) /* in whatever order */
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

static inline struct weir_inbox_node *weir_freelist_get(struct weir_freelist *list)
{
	return weir_freelist_get_some(list, 1);
}

/* Takes that which is at hand, or as weir_freelist_get(). Context: with the user's lock. */
static inline struct weir_inbox_node *weir_freelist_get_kept(struct weir_freelist *list)
{
	struct weir_inbox_node *node = list->at_hand;

	list->at_hand = NULL;
	return node ? node : weir_freelist_get(list);
}

/* Gives some back, which are chained from @first to @last. Context: any thread. */
static inline void weir_freelist_put_some(struct weir_freelist *list, struct weir_inbox_node *first,
					  struct weir_inbox_node *last)
{
	weir_inbox_push_all(&list->returned, first, last);
}

static inline void weir_freelist_put(struct weir_freelist *list, struct weir_inbox_node *node)
{
	weir_freelist_put_some(list, node, node);
}

/* As weir_freelist_put_some(), which may keep one of them at hand. Context: with the user's lock. */
static inline void weir_freelist_keep_some(struct weir_freelist *list,
					   struct weir_inbox_node *first,
					   struct weir_inbox_node *last)
{
	if (first != last || list->at_hand)
		weir_freelist_put_some(list, first, last);
	else
		list->at_hand = first;
}

#endif
