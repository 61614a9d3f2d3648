/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/deliver.h"
#include "lib/memory.h"
#include "lib/pump.h"
#include "lib/queue.h"
#include "lib/region.h"
#include "lib/request.h"
#include "lib/session.h"
#include "lib/waiter.h"

/* With nic->lock held. */
static struct weir_request *request_get(struct weir_session *session)
{
	struct weir_request *request;

	if (weir_list_is_empty(&session->free_requests)) {
		request = malloc(sizeof(*request));
		if (!request)
			return NULL;
		request->session = session;
	} else {
		request = weir_list_entry(session->free_requests.next, struct weir_request, link);
		weir_list_del(&request->link);
	}
	weir_list_add_tail(&session->live_requests, &request->link);
	return request;
}

void weir_request_recycle(struct weir_request *request)
{
	weir_list_del(&request->link);
	weir_list_add(&request->session->free_requests, &request->link);
}

void weir_requests_fini(struct weir_session *session)
{
	struct weir_list *list = &session->free_requests;

	while (!weir_list_is_empty(list)) {
		struct weir_request *request =
			weir_list_entry(list->next, struct weir_request, link);

		weir_list_del(&request->link);
		free(request);
	}
}

/* A close turns whatever a request would have ended with for want of a channel into one word. */
static int status_of(const struct weir_request *request)
{
	int status = request->req.status;

	return status == -ENOTCONN && request->session->stopping ? -ECANCELED : status;
}

/* The engine counted @retries down. */
static void count_retries(struct weir_request *request)
{
	struct weir_session *session = request->session;

	session->counters.retries += session->options.retries - request->req.retries;
}

static void finish_waiter(struct weir_request *request)
{
	count_retries(request);
	weir_waiter_done(request->waiter, request->session, status_of(request));
	weir_request_recycle(request);
}

static void finish_queue(struct weir_request *request)
{
	count_retries(request);
	weir_queue_put(request->completion.queue, request->completion.arg, status_of(request));
	weir_request_recycle(request);
}

static void finish_callback(struct weir_request *request)
{
	count_retries(request);
	request->req.status = status_of(request);
	weir_list_del(&request->link);
	weir_list_add_tail(&request->session->done, &request->link);
}

void weir_request_deliver(struct weir_request *request)
{
	request->completion.done(request->completion.arg, request->req.status);
}

/* Who is told, and how long it may take. */
static void complete_by(struct weir_request *request, const struct weir_completion *completion,
			struct weir_waiter *waiter, uint64_t now_ns)
{
	uint64_t timeout_ns = request->session->options.timeout_ns;

	if (waiter) {
		request->waiter = waiter;
		request->finish = finish_waiter;
	} else {
		request->completion = *completion;
		request->finish = completion->done ? finish_callback : finish_queue;
		if (completion->timeout_ns)
			timeout_ns = completion->timeout_ns;
	}
	request->req.deadline_ns = weir_after_ns(now_ns, timeout_ns);
}

/* With nic->lock held. @req is copied into a new request. */
static int submit_locked(struct weir_session *session, const struct weir_req *req,
			 const struct weir_completion *completion, struct weir_waiter *waiter,
			 struct weir_request **out)
{
	uint64_t now_ns = weir_now_ns();
	struct weir_request *request;
	int rc;

	if (session->stopping || session->down)
		return -ENOTCONN;
	request = request_get(session);
	if (!request)
		return -ENOMEM;
	request->req = *req;
	request->req.retries = (uint8_t)session->options.retries;
	complete_by(request, completion, waiter, now_ns);
	rc = weir_engine_submit(&session->engine, &request->req, now_ns);
	if (rc) {
		weir_request_recycle(request);
		return rc;
	}
	session->counters.requests++;
	if (out)
		*out = request;
	weir_pump_pull(session);
	weir_pump_poll(session, now_ns);
	return 0;
}

/*
 * Whoever waits comes back to poll; everybody else leaves the CQs armed.
 */
static int submit(struct weir_session *session, const struct weir_req *req,
		  const struct weir_completion *completion, struct weir_waiter *waiter,
		  struct weir_request **out)
{
	struct weir_queue *queue = completion && !completion->done ? completion->queue : NULL;
	int rc;

	if (queue && weir_queue_reserve(queue))
		return -ENOMEM;
	weir_session_lock(session);
	rc = submit_locked(session, req, completion, waiter, out);
	if (!rc && (!waiter || weir_waiter_is_done(waiter)))
		weir_pump_leave(session, false);
	weir_deliver(session);
	if (rc && queue)
		weir_queue_unreserve(queue);
	return rc;
}

/* A handle is good until @done returns; nobody could tell when one with a queue no longer is. */
static bool completion_is_valid(const struct weir_completion *completion,
				struct weir_request **handle)
{
	return completion && (completion->done || (completion->queue && !handle));
}

/* Turns the user's pieces into the request's. */
static int fill_local(struct weir_req *req, const struct weir_session *session,
		      const struct weir_iov *iov, unsigned int iovcnt)
{
	unsigned int i;

	if (!iov || iovcnt < 1 || iovcnt > WEIR_SGE_MAX)
		return -EINVAL;
	req->nr_sge = (uint8_t)iovcnt;
	for (i = 0; i < iovcnt; i++) {
		if (iov[i].memory->session->nic != session->nic || iov[i].length > UINT32_MAX ||
		    !weir_memory_covers(iov[i].memory, iov[i].addr, iov[i].length))
			return -EINVAL;
		req->sge[i] = (struct weir_sge){ (uintptr_t)iov[i].addr, (uint32_t)iov[i].length,
						 iov[i].memory->mr->lkey };
		req->length += iov[i].length;
	}
	return 0;
}

static int fill_remote(struct weir_req *req, const struct weir_region *region, uint64_t offset)
{
	if (!req->length || offset > region->length || req->length > region->length - offset)
		return -EINVAL;
	if (region->read_only && req->op != WEIR_OP_READ)
		return -EACCES;
	req->remote = region->addr + offset;
	req->rkey = region->rkey;
	return 0;
}

static int fill(struct weir_req *req, const struct weir_region *region, enum weir_op op,
		uint64_t offset, const struct weir_iov *iov, unsigned int iovcnt)
{
	int rc;

	req->op = op;
	req->length = 0;
	rc = fill_local(req, region->session, iov, iovcnt);
	return rc ? rc : fill_remote(req, region, offset);
}

static int transfer(struct weir_region *region, enum weir_op op, uint64_t offset,
		    const struct weir_iov *iov, unsigned int iovcnt,
		    const struct weir_completion *completion, struct weir_request **request)
{
	struct weir_req req;
	int rc;

	if (!completion_is_valid(completion, request))
		return -EINVAL;
	rc = fill(&req, region, op, offset, iov, iovcnt);
	return rc ? rc : submit(region->session, &req, completion, NULL, request);
}

int weir_read_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		    unsigned int iovcnt, const struct weir_completion *completion,
		    struct weir_request **request)
{
	return transfer(region, WEIR_OP_READ, offset, iov, iovcnt, completion, request);
}

int weir_write_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		     unsigned int iovcnt, const struct weir_completion *completion,
		     struct weir_request **request)
{
	return transfer(region, WEIR_OP_WRITE, offset, iov, iovcnt, completion, request);
}

static int atomic(struct weir_region *region, enum weir_op op, uint64_t offset, uint64_t compare,
		  uint64_t operand, uint64_t *old, struct weir_memory *memory,
		  const struct weir_completion *completion, struct weir_request **request)
{
	struct weir_iov iov = { old, sizeof(*old), memory };
	struct weir_req req;
	int rc;

	if (!completion_is_valid(completion, request))
		return -EINVAL;
	rc = fill(&req, region, op, offset, &iov, 1);
	if (rc)
		return rc;
	req.compare = compare;
	req.operand = operand;
	return submit(region->session, &req, completion, NULL, request);
}

int weir_compare_swap_async(struct weir_region *region, uint64_t offset, uint64_t expected,
			    uint64_t desired, uint64_t *old, struct weir_memory *memory,
			    const struct weir_completion *completion, struct weir_request **request)
{
	return atomic(region, WEIR_OP_CAS, offset, expected, desired, old, memory, completion,
		      request);
}

int weir_fetch_add_async(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old,
			 struct weir_memory *memory, const struct weir_completion *completion,
			 struct weir_request **request)
{
	return atomic(region, WEIR_OP_FADD, offset, 0, add, old, memory, completion, request);
}

int weir_barrier_async(struct weir_session *session, const struct weir_completion *completion)
{
	struct weir_req req = { .op = WEIR_OP_BARRIER };

	if (!completion_is_valid(completion, NULL))
		return -EINVAL;
	return submit(session, &req, completion, NULL, NULL);
}

int weir_request_barrier_wait(struct weir_session *session, struct weir_waiter *waiter)
{
	struct weir_req req = { .op = WEIR_OP_BARRIER };

	return submit(session, &req, NULL, waiter, NULL);
}

int weir_request_transfer_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			       const struct weir_iov *iov, uint64_t compare, uint64_t operand,
			       struct weir_waiter *waiter)
{
	struct weir_req req;
	int rc;

	rc = fill(&req, region, op, offset, iov, 1);
	if (rc)
		return rc;
	req.compare = compare;
	req.operand = operand;
	return submit(region->session, &req, NULL, waiter, NULL);
}

int weir_cancel(struct weir_request *request)
{
	struct weir_session *session = request->session;
	int rc;

	weir_session_lock(session);
	rc = weir_engine_cancel(&session->engine, &request->req);
	weir_pump_pull(session);
	weir_pump_leave(session, false);
	weir_deliver(session);
	return rc;
}
