/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests: the internal interface. A request joins the core's request and its completion. */
#ifndef WEIR_LIB_CLIENT_REQUEST_REQUEST_H
#define WEIR_LIB_CLIENT_REQUEST_REQUEST_H

#include <weir/request.h>
#include "core/base/inbox.h"
#include "core/engine/request.h"
#include "lib/client/memory/bounce.h"

struct weir_session;
struct weir_waiter;

/**
 * struct weir_request - one request, also of a message
 * @node: in the NIC's inbox, until admitted; or in the free list
 * @req: for the engine
 * @session: the owner
 * @submitted_ns: time of submission, unless posted at once
 * @is_timed: the latency counts, from @submitted_ns on; false in unused requests
 * @link: in the list of cancellable requests; of completed requests that need more than an event;
 *	or of completions not yet in their queues
 * @completion: chosen by the user; without @done and @queue, @arg is a struct weir_waiter
 * @bounce: buffer or registration in use
 */
struct weir_request {
	struct weir_inbox_node node;
	struct weir_req req;
	struct weir_session *session;
	uint64_t submitted_ns;
	bool is_timed;
	struct weir_list link;
	struct weir_completion completion;
	struct weir_bounce bounce;
};

/*
 * Return: true if a thread waits for the request; otherwise a callback or a queue reports the end.
 */
static inline bool weir_request_has_waiter(const struct weir_request *request)
{
	return !request->completion.done && !request->completion.queue;
}

/*
 * Return: true if the end of the request needs steps without nic->lock: a callback, or a copy. A
 * waiter does these steps itself.
 */
static inline bool weir_request_needs_dispatch(const struct weir_request *request)
{
	return request->completion.done ||
	       (request->completion.queue && request->bounce.mode != WEIR_BOUNCE_NONE);
}

/*
 * Allocates a request when the free list is empty; the caller owns the request until it is
 * submitted or released. NULL: no memory.
 */
struct weir_request *weir_request_new(struct weir_session *session);

/*
 * Copies read data to the user if @status is 0, gives local memory back, and frees the request.
 * Context: any thread; without locks. Return: @status.
 */
int weir_request_release(struct weir_request *request, int status);

/* Hands @request to its engine, off the fast path. Context: with nic->lock held. */
void weir_request_admit(struct weir_request *request);

/*
 * Ends @request when the engine is done. Owes a weir_requests_notify(). Context: with nic->lock
 * held.
 */
void weir_request_finish(struct weir_request *request);

/* First part of ending a request from session->done: copy, callback. Context: without the lock. */
void weir_request_dispatch(struct weir_request *request);

/*
 * Second part: frees the request, or leaves it to its queue. Owes a weir_requests_notify().
 * Context: with nic->lock held.
 */
void weir_request_dispatched(struct weir_request *request);

/*
 * Puts completed requests into their queues together, so that a waiting thread finds all at once.
 * Owed by a thread that has ended requests. Context: with nic->lock held.
 */
void weir_requests_notify(struct weir_session *session);

/*
 * Replaces the above for a request without dispatch, posted alone and successful, if no other
 * request has ended since. The waiter, if any, is the calling thread. Context: with nic->lock held.
 */
void weir_request_notify_alone(struct weir_request *request);

/* Frees the memory of all requests. No thread may submit any more. */
void weir_requests_fini(struct weir_session *session);

/**
 * weir_request_barrier_wait(), weir_request_move_wait(), weir_request_atomic_wait() - submit a
 * request that a thread will wait for
 * @op: move: a read or a write; atomic: an atomic
 * @waiter: initialised; notified on completion
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
