/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flat combining: the holder of a NIC's lock serves the NIC's inbox by core/base/combine.h.
 *
 * A thread that takes the lock drains the inbox, so that the engines know all earlier requests. A
 * thread that gives the lock back checks the inbox again and posts. A submitter never waits for the
 * lock: it pushes the request, and the holder serves it.
 *
 * A combiner touches only the sessions of requests in the inbox, not even its own otherwise: once
 * another thread has served the combiner's request, its session may be closed.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_COMBINE_H
#define WEIR_LIB_CLIENT_REQUEST_COMBINE_H

#include <stdbool.h>

#include "lib/client/request/dispatch.h"
#include "lib/client/channel/lanes.h"
#include "lib/client/channel/nic.h"

#define WEIR_CROWD_CHAINS 64 /* chains posted after a thread found the lock taken */

struct weir_request;
struct weir_session;

/* Takes the lock, all lanes back, and drains the inbox. */
void weir_combine_lock(struct weir_nic *nic);

/*
 * As weir_combine_lock(), unless the lanes of @session are lent, or will be soon. Return: true if
 * the caller holds the lock.
 */
bool weir_combine_lock_unless_lent(struct weir_session *session);

/*
 * Gives the lock back, to take it again soon and serve: the inbox is not checked. Context: with the
 * lock held.
 */
void weir_combine_release(struct weir_nic *nic);

/* Gives the lock back, checks the inbox and posts; leaves completions to the sessions' pollers. */
void weir_combine_unlock(struct weir_nic *nic);

/*
 * Wakes all threads that sleep on the futex @word when the lock is given back. @word need not exist
 * any more by then. A thread woken earlier would block on the lock, or preempt the holder and find
 * only part of its completions. Context: with the lock held.
 */
void weir_combine_wake(struct weir_nic *nic, uint32_t *word);

/*
 * Hands the requests in the inbox to their engines, and ends posts that have returned. Context:
 * with the lock held.
 */
void weir_combine_drain_inbox(struct weir_nic *nic);

/* The caller has found the lock taken. The next long chains are posted without the lock. */
static inline void weir_combine_note_crowd(struct weir_nic *nic)
{
	if (__atomic_load_n(&nic->crowd, __ATOMIC_RELAXED) < WEIR_CROWD_CHAINS)
		__atomic_store_n(&nic->crowd, WEIR_CROWD_CHAINS, __ATOMIC_RELAXED);
}

/*
 * As weir_combine_lock(), unless the lock is held: the holder checks the inbox when unlocking.
 */
static inline bool weir_combine_trylock(struct weir_nic *nic)
{
	if (!weir_mutex_trylock(&nic->lock)) {
		weir_combine_note_crowd(nic);
		return false;
	}
	if (__builtin_expect(nic->is_lent, false))
		weir_lanes_recall(nic);
	if (weir_inbox_may_have(&nic->combine.inbox))
		weir_combine_drain_inbox(nic);
	return true;
}

/**
 * weir_combine_begin() - take the lock and drain the inbox, unless the lock is held
 * @nic: the NIC of the caller's session
 *
 * Fails inside a callback: the dispatching thread posts all requests of a round when its callbacks
 * have returned.
 *
 * Context: any thread; without nic->lock.
 * Return: true if the caller holds the lock and owes weir_combine_posted(), weir_combine_ended() or
 * weir_combine_admit().
 */
static inline bool weir_combine_begin(struct weir_nic *nic)
{
	return weir_dispatch_nic != nic && weir_combine_trylock(nic);
}

/**
 * weir_combine_posted(), weir_combine_ended(), weir_combine_admit(), weir_combine_enqueue() - serve
 * @nic: the first three give its lock back
 * @request: filled in; gone on return
 * @newest, @oldest: as weir_inbox_push_all()
 * @session: of the caller's requests; the caller polls and delivers the completions
 *
 * weir_combine_posted(): a request of @session has been posted. weir_combine_ended(): the only
 * request in flight has completed. weir_combine_admit() hands @request to its engine. All three
 * follow a weir_combine_begin(). weir_combine_enqueue() pushes requests without the lock, for the
 * holder.
 */
void weir_combine_posted(struct weir_nic *nic, struct weir_session *session);
void weir_combine_ended(struct weir_nic *nic, struct weir_session *session);
void weir_combine_admit(struct weir_nic *nic, struct weir_request *request,
			struct weir_session *session);
void weir_combine_enqueue(struct weir_nic *nic, struct weir_inbox_node *newest,
			  struct weir_inbox_node *oldest, struct weir_session *session);

/* Serves the inbox and the lanes, unless another thread does. Context: without the lock. */
void weir_combine_serve(struct weir_nic *nic, struct weir_session *session);

#endif
