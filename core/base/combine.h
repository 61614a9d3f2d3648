/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Combining: threads submit without a lock, and the thread that finds the lock free serves them all
 * (RDMAbox, section IV-A). Later threads find their request taken and return without waiting.
 *
 * One struct weir_combine belongs to one lock of the host, such as the lock over all engines of a
 * NIC. Every host follows this protocol. tests/model/inbox.pml proves it, and a hunt runs these
 * functions under random schedules.
 *
 *	submit(node):
 *		weir_inbox_push(&combine->inbox, node);
 *		serve();
 *
 *	serve():
 *		while (trylock) {
 *			weir_inbox_take(): hand each node to its object, and activate the object;
 *			weir_combine_next(): post one chain; activate the object if it has more;
 *			has_more = weir_combine_has_more();
 *			unlock;
 *			if (weir_combine_may_leave(&combine->inbox, has_more))
 *				return;
 *		}
 *
 * Serving: the lock holder serves until its next unlock. After one chain a thread unlocks, and
 * continues only if no other thread has taken the lock. A thread that holds the lock for another
 * reason (to poll, to close) ends as serve() does, from has_more on, and then serves.
 *
 * Leaving: a thread may leave if its trylock fails, because the holder tests the inbox after its
 * unlock; or if weir_combine_may_leave() is true after its own unlock.
 *
 * Barriers: the submitter pushes, then tries the lock; the holder unlocks, then loads the inbox.
 * All four are ordered (weir_atomic_compare_exchange(), weir_atomic_load_ordered(), and the host's
 * lock, which in user space must be sequentially consistent). So if the load misses a push, the
 * trylock after that push finds the lock free, or with a later holder.
 */
#ifndef WEIR_CORE_BASE_COMBINE_H
#define WEIR_CORE_BASE_COMBINE_H

#include "core/base/inbox.h"
#include "core/base/list.h"

/**
 * struct weir_combine - what waits for the holder of a lock
 * @inbox: nodes pushed and not yet taken; any thread pushes
 * @active: objects that may have something to post; guarded by the lock
 */
struct weir_combine {
	struct weir_inbox inbox;
	struct weir_list active;
};

/* Context: before any other thread can reach @combine. */
static inline void weir_combine_init(struct weir_combine *combine)
{
	weir_inbox_init(&combine->inbox);
	weir_list_init(&combine->active);
}

/* Adds an object, by its @link, unless it is active already. Context: with the lock held. */
static inline void weir_combine_activate(struct weir_combine *combine, struct weir_list *link)
{
	if (weir_list_is_empty(link))
		weir_list_add_tail(&combine->active, link);
}

/* Whether the next holder has an object to serve. Context: with the lock held. */
static inline bool weir_combine_has_more(const struct weir_combine *combine)
{
	return !weir_list_is_empty(&combine->active);
}

/*
 * Takes the object that has been active for longest. Context: with the lock held. Return: its link,
 * in no list; NULL: no object is active.
 */
static inline struct weir_list *weir_combine_next(struct weir_combine *combine)
{
	struct weir_list *link = combine->active.next;

	if (!weir_combine_has_more(combine))
		return NULL;
	weir_list_del(link);
	return link;
}

/**
 * weir_combine_may_leave() - decide after an unlock whether to try the lock again
 * @inbox: the inbox
 * @has_more: weir_combine_has_more() before the unlock
 *
 * Context: without the lock, after the caller's unlock; never sleeps.
 * Return: true if another thread serves all that is left; false: try the lock, and serve.
 */
static inline bool weir_combine_may_leave(const struct weir_inbox *inbox, bool has_more)
{
	return !has_more && weir_inbox_is_empty(inbox);
}

#endif
