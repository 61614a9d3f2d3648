/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Preparation of requests before submission, alone or with others: fill in the request and reserve
 * room for its completion. Context of all: any thread; without locks.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_PREPARE_H
#define WEIR_LIB_CLIENT_REQUEST_PREPARE_H

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/client/memory/memory.h"
#include "lib/client/request/queue.h"
#include "lib/client/memory/region.h"
#include "lib/client/request/request.h"
#include "lib/client/request/waiter.h"
#include "lib/client/session.h"

/* On the path of each request: a call costs more than these functions do. */
#define WEIR_ALWAYS_INLINE inline __attribute__((always_inline))

/* @has_lock: the caller holds nic->lock, which guards the cached object. */
static WEIR_ALWAYS_INLINE struct weir_request *weir_prepare_get(struct weir_session *session,
								bool has_lock)
{
	struct weir_inbox_node *node = has_lock ? weir_freelist_get_kept(&session->spares) :
						  weir_freelist_get_some(&session->spares, 1);

	return node ? container_of(node, struct weir_request, node) : weir_request_new(session);
}

/* Sets the times of submission and deadline. A request that is timed has the former already. */
static inline void weir_prepare_date(struct weir_request *request, uint64_t now_ns)
{
	uint64_t timeout_ns = request->completion.timeout_ns;

	if (!timeout_ns)
		timeout_ns = request->session->options.timeout_ns;
	if (!request->is_timed)
		request->submitted_ns = now_ns;
	request->req.deadline_ns = weir_after_ns(now_ns, timeout_ns);
}

/* From now on a thread must poll for the completion. Context: with nic->lock held. */
static WEIR_ALWAYS_INLINE void weir_prepare_count(struct weir_request *request)
{
	struct weir_session *session = request->session;

	if (weir_request_has_waiter(request))
		weir_waiter_begin(session);
	else
		session->is_owed = true;
}

static inline bool weir_prepare_for_queue(const struct weir_completion *completion)
{
	return !completion->done && completion->queue;
}

/* Only a session that has joined the NIC's classes has a waiter for each class. */
static inline void weir_prepare_hint(struct weir_request *request, enum weir_hint hint)
{
	unsigned int heat = hint & WEIR_REGION_HINTS, class_nr = hint / (WEIR_REGION_HINTS + 1);

	if (heat)
		request->req.hint = (uint8_t)heat;
	if (class_nr && class_nr <= WEIR_CLASS_BULK &&
	    __atomic_load_n(&request->session->has_class, __ATOMIC_RELAXED))
		request->req.class = (uint8_t)class_nr;
}

/*
 * Stores how @request reports its completion, and the number of retries; on failure nothing will be
 * reported. @has_room: the queue has room, or there is no queue.
 */
static WEIR_ALWAYS_INLINE int weir_prepare_promise(struct weir_request *request,
						   const struct weir_completion *completion,
						   struct weir_request **out, bool has_room)
{
	struct weir_session *session = request->session;

	if (!weir_session_is_usable(session))
		return -ENOTCONN;
	if (weir_prepare_for_queue(completion)) { /* no handle: weir_prepare_is_valid() */
		if (!has_room && weir_queue_reserve(completion->queue, 1))
			return -ENOMEM;
	} else if (out) {
		*out = request;
	}
	request->completion = *completion;
	request->req.retries = (uint8_t)session->options.retries;
	if (completion->hint)
		weir_prepare_hint(request, completion->hint);
	return 0;
}

/*
 * A handle is valid until @done returns. With a queue, no caller could tell when the handle
 * expires.
 */
static inline bool weir_prepare_is_valid(const struct weir_completion *completion,
					 struct weir_request **handle)
{
	return completion && (completion->done || (completion->queue && !handle));
}

static inline bool weir_prepare_is_transfer(const struct weir_session *session,
					    const struct weir_transfer *t)
{
	return t->region->session == session && t->direction <= WEIR_WRITE &&
	       weir_prepare_is_valid(&t->completion, t->request);
}

static WEIR_ALWAYS_INLINE enum weir_op weir_prepare_op(const struct weir_transfer *t)
{
	return t->direction == WEIR_READ ? WEIR_OP_READ : WEIR_OP_WRITE;
}

static WEIR_ALWAYS_INLINE int weir_prepare_remote(struct weir_req *req,
						  const struct weir_region *region, uint64_t offset)
{
	if (offset > region->length || req->length > region->length - offset)
		return -EINVAL;
	if (region->read_only && req->op != WEIR_OP_READ)
		return -EACCES;
	req->remote = region->addr + offset;
	req->exclusive = region->exclusive;
	req->hint = __atomic_load_n(&region->hint, __ATOMIC_RELAXED);
	req->class = __atomic_load_n(&region->class_nr, __ATOMIC_RELAXED);
	req->rkey = region->rkey;
	return 0;
}

/*
 * Fills in the rest of @request; the op and an atomic's operands are set. On failure @request is
 * free.
 */
static WEIR_ALWAYS_INLINE int weir_prepare(struct weir_request *request,
					   const struct weir_region *region, uint64_t offset,
					   const struct weir_iov *iov, unsigned int iovcnt,
					   const struct weir_completion *completion,
					   struct weir_request **out, bool has_room)
{
	struct weir_session *session = region->session;
	struct weir_req *req = &request->req;
	int rc = 0;

	if (!weir_bounce_map_registered(session->nic, req, iov, iovcnt, &request->bounce))
		rc = weir_bounce_map(session, req, iov, iovcnt, &request->bounce);
	if (!rc)
		rc = weir_prepare_remote(req, region, offset);
	if (!rc)
		rc = weir_prepare_promise(request, completion, out, has_room);
	return rc ? weir_request_release(request, rc) : 0;
}

/*
 * transfers.c: pushes several requests to the NIC's inbox in one step. @submitted receives their
 * number. Return: as weir_transfer_async().
 */
int weir_transfers_enqueue(struct weir_session *session, const struct weir_transfer *transfers,
			   unsigned int count, unsigned int *submitted);

#endif
