/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests from the inside: the core's request, and who wants to know that it is done. */
#ifndef WEIR_LIB_CLIENT_REQUEST_REQUEST_H
#define WEIR_LIB_CLIENT_REQUEST_REQUEST_H

#include <weir/request.h>
#include "core/base/inbox.h"
#include "core/engine/request.h"
#include "lib/client/memory/bounce.h"

struct weir_session;
struct weir_waiter;

/**
 * struct weir_request - one in flight, a message's included
 * @node: in the NIC's inbox, until it is admitted; or among the spares
 * @req: for the engine
 * @session: whose
 * @submitted_ns: when, unless it went out at once
 * @link: among those that a close may cancel; or those done that want more than a word to be said;
 *	or those whose queues have yet to be told
 * @completion: the user's wish; with neither @done nor @queue, @arg is a struct weir_waiter
 * @bounce: what it borrowed to reach its memory
 */
struct weir_request {
	struct weir_inbox_node node;
	struct weir_req req;
	struct weir_session *session;
	uint64_t submitted_ns;
	struct weir_list link;
	struct weir_completion completion;
	struct weir_bounce bounce;
};

/* Whether a thread waits for it; others are called, or find it in their queue. */
static inline bool weir_request_has_waiter(const struct weir_request *request)
{
	return !request->completion.done && !request->completion.queue;
}

/*
 * One more, when there is none to spare; the caller's until it is submitted or put. NULL: no
 * memory.
 */
struct weir_request *weir_request_new(struct weir_session *session);
void weir_request_put(struct weir_request *request);

/* Hands @request to its engine, the long way. With nic->lock held. */
void weir_request_admit(struct weir_request *request);

/* The engine is done with @request. With nic->lock held. Owes a weir_requests_notify(). */
void weir_request_finish(struct weir_request *request);

/* Ends a request from session->done: copies, callback. Without the lock. */
void weir_request_dispatch(struct weir_request *request);

/*
 * The rest of it: tells who waits, or its queue, and makes it free to be used again. With nic->lock
 * held. Owes a weir_requests_notify().
 */
void weir_request_dispatched(struct weir_request *request);

/*
 * Puts what is done in the queues where it belongs, all at once, so that who waits there finds it
 * together. With nic->lock held; owed by who has finished some.
 */
void weir_requests_notify(struct weir_session *session);

/*
 * In place of both, of one whose memory is the user's and whose end its queue alone is to be told:
 * it went out alone, has succeeded, and nothing else has ended since. With nic->lock held.
 */
void weir_request_notify_alone(struct weir_request *request);

/* Frees the memory of all. Nothing may be submitted any more. */
void weir_requests_fini(struct weir_session *session);

/**
 * weir_request_barrier_wait(), weir_request_move_wait(), weir_request_atomic_wait() - submit, and
 *	a thread will wait
 * @op: of the second a read or a write; of the third an atomic
 * @waiter: initialised; told when it is done
 *
 * Owes a weir_waiter_wait(). Return: as the public calls.
 */
int weir_request_barrier_wait(struct weir_session *session, struct weir_waiter *waiter);
int weir_request_move_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			   const struct weir_iov *iov, unsigned int iovcnt,
			   struct weir_waiter *waiter);
int weir_request_atomic_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			     const struct weir_iov *iov, uint64_t compare, uint64_t operand,
			     struct weir_waiter *waiter);

#endif
