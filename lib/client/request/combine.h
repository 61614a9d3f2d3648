/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who has a NIC's lock serves what comes through its inbox: the protocol of core/base/inbox.h.
 *
 * Whoever takes the lock takes what has come, so that under it all is submitted that was submitted
 * before; and whoever gives it back looks, and posts what is there to be posted. No thread waits
 * for the lock to submit: it leaves its request, and if another has the lock, that one serves it.
 *
 * A thread that serves touches the sessions that it finds requests of, and no other, not even the
 * one that it came for: once its request is served by somebody, that may be closed.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_COMBINE_H
#define WEIR_LIB_CLIENT_REQUEST_COMBINE_H

#include <stdbool.h>

#include "core/base/inbox.h"
#include "lib/client/request/dispatch.h"
#include "lib/client/channel/nic.h"

struct weir_request;
struct weir_session;

/* Takes the lock, and what has come. */
void weir_nic_lock(struct weir_nic *nic);

/* Gives the lock back, looks, and serves: others' completions are left to others. */
void weir_nic_unlock(struct weir_nic *nic);

/*
 * With the lock held: wakes all who sleep on the futex @word, which need not exist any more by
 * then, when the lock is given back. Who is woken before that stands before the lock, or takes the
 * CPU from who has it and finds half of what he was woken for.
 */
void weir_nic_wake(struct weir_nic *nic, uint32_t *word);

/* With the lock held, hands what has come to its engines. */
void weir_combine_drain_inbox(struct weir_nic *nic);

/* The same, with the lock, unless somebody has it: who has looks when it is given back. */
static inline bool weir_combine_trylock(struct weir_nic *nic)
{
	if (!weir_mutex_trylock(&nic->lock))
		return false;
	if (weir_inbox_may_have(&nic->inbox))
		weir_combine_drain_inbox(nic);
	return true;
}

/**
 * weir_combine_begin() - take the lock, and what has come, unless somebody has it
 * @nic: that of its session
 *
 * Never inside a callback: whoever runs the callbacks comes round when they have returned, and
 * posts what they all have left.
 * Context: any thread; without nic->lock.
 * Return: whether the caller has the lock, and owes one of the first three of what follows.
 */
static inline bool weir_combine_begin(struct weir_nic *nic)
{
	return weir_dispatch_nic != nic && weir_combine_trylock(nic);
}

/**
 * weir_combine_posted(), weir_combine_ended(), weir_combine_admit(), weir_combine_enqueue() - serve
 * @nic: its lock is given back
 * @request: filled in; gone, once this returns
 * @newest, @oldest: as weir_inbox_push_all()
 * @session: whose. Its completions are polled for, and delivered, by whoever comes for it
 *
 * The first when a request of @session is posted already, the second when it was all that was in
 * flight, and has ended; the third hands it to its engine: all after a weir_combine_begin(). The last
 * leaves some, without the lock, for who has it.
 */
void weir_combine_posted(struct weir_nic *nic, struct weir_session *session);
void weir_combine_ended(struct weir_nic *nic, struct weir_session *session);
void weir_combine_admit(struct weir_nic *nic, struct weir_request *request,
			struct weir_session *session);
void weir_combine_enqueue(struct weir_nic *nic, struct weir_inbox_node *newest,
			  struct weir_inbox_node *oldest, struct weir_session *session);

#endif
