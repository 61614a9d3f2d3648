/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inbox: a lock-free list that any thread pushes to, and one thread at a time empties. See
 * combine.h for the protocol around it.
 */
#ifndef WEIR_CORE_BASE_INBOX_H
#define WEIR_CORE_BASE_INBOX_H

#include "core/base/platform.h"

/**
 * struct weir_inbox_node - embedded in each object that is pushed
 * @next: the next node of the list that weir_inbox_take() returned
 */
struct weir_inbox_node {
	struct weir_inbox_node *next;
};

/**
 * struct weir_inbox - nodes pushed and not yet taken
 * @newest: the last node pushed, or NULL; @next leads to the node pushed before
 */
struct weir_inbox {
	struct weir_inbox_node *newest;
};

/**
 * weir_inbox_init() - initialise an empty inbox
 * @inbox: to be initialised
 *
 * Context: Before any other thread can reach the inbox.
 */
void weir_inbox_init(struct weir_inbox *inbox);

/**
 * weir_inbox_push() - push a node
 * @inbox: the inbox
 * @node: *kept until* taken. Another thread may serve the node at once: the caller must not touch
 *	the node again unless something else keeps it alive
 *
 * The caller owes a serve(): see combine.h.
 *
 * Context: Any thread or interrupt; never sleeps; lock-free.
 */
void weir_inbox_push(struct weir_inbox *inbox, struct weir_inbox_node *node);

/**
 * weir_inbox_push_all() - push several nodes in one step
 * @inbox: the inbox
 * @newest: the last node, linked by @next down to the first
 * @oldest: the first node
 *
 * One weir_inbox_take() takes all of the nodes. Otherwise as weir_inbox_push().
 */
void weir_inbox_push_all(struct weir_inbox *inbox, struct weir_inbox_node *newest,
			 struct weir_inbox_node *oldest);

/**
 * weir_inbox_may_have() - whether the lock holder has something to take
 * @inbox: the inbox
 *
 * A concurrent push may be missed. The lock holder therefore calls weir_combine_may_leave() after
 * its unlock.
 *
 * Context: With the lock held; never sleeps.
 * Return: true, at least if a push returned before this call.
 */
static inline bool weir_inbox_may_have(const struct weir_inbox *inbox)
{
	return weir_atomic_load(&inbox->newest);
}

/**
 * weir_inbox_take() - take all nodes
 * @inbox: the inbox
 *
 * Context: With the lock held, so that nodes are served in the order taken; never sleeps.
 * Return: the oldest node, chained by @next to the newest, or NULL. If one push returned before
 *	another began, its node comes first.
 */
struct weir_inbox_node *weir_inbox_take(struct weir_inbox *inbox);

/**
 * weir_inbox_is_empty() - whether the inbox is empty after an unlock
 * @inbox: the inbox
 *
 * A push not seen here is ordered after the caller's unlock: see combine.h.
 *
 * Context: Any thread, after its unlock; never sleeps.
 * Return: false if there is something to take.
 */
static inline bool weir_inbox_is_empty(const struct weir_inbox *inbox)
{
	return !weir_atomic_load_ordered(&inbox->newest);
}

#endif
