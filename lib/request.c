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

	session->counters->retries += session->options.retries - request->req.retries;
}

static void tell_waiter(struct weir_request *request)
{
	weir_waiter_done(request->waiter, request->session, request->req.status);
}

static void tell_queue(struct weir_request *request)
{
	weir_queue_put(request->completion.queue, request->completion.arg, request->req.status);
}

static void tell_callback(struct weir_request *request)
{
	request->completion.done(request->completion.arg, request->req.status);
}

static void finish(struct weir_request *request)
{
	count_retries(request);
	request->req.status = status_of(request);
	if (request->stage.way != WEIR_STAGE_USER || request->tell == tell_callback) {
		weir_list_del(&request->link);
		weir_list_add_tail(&request->session->done, &request->link);
		return;
	}
	request->tell(request);
	weir_request_recycle(request);
}

void weir_request_deliver(struct weir_request *request)
{
	struct weir_session *session = request->session;

	weir_stage_out(session, &request->req, &request->stage);
	if (request->tell != tell_waiter) {
		request->tell(request);
		return;
	}
	weir_session_lock(session);
	request->tell(request);
	weir_session_unlock(session);
}

/* Who is told, and how long it may take. */
static void complete_by(struct weir_request *request, const struct weir_completion *completion,
			struct weir_waiter *waiter, uint64_t now_ns)
{
	uint64_t timeout_ns = request->session->options.timeout_ns;

	if (waiter) {
		request->waiter = waiter;
		request->tell = tell_waiter;
	} else {
		request->completion = *completion;
		request->tell = completion->done ? tell_callback : tell_queue;
		if (completion->timeout_ns)
			timeout_ns = completion->timeout_ns;
	}
	request->req.deadline_ns = weir_after_ns(now_ns, timeout_ns);
}

static void count_stage(struct weir_session *session, enum weir_stage_way way, uint64_t bytes)
{
	session->counters->requests++;
	session->counters->pre += way == WEIR_STAGE_PRE;
	session->counters->dyn += way == WEIR_STAGE_DYN;
	if (way != WEIR_STAGE_USER)
		weir_session_note(session, &(struct weir_trace_record){
			.what = way == WEIR_STAGE_PRE ? WEIR_TRACE_COPY : WEIR_TRACE_REGISTER,
			.reqs = 1,
			.bytes = bytes,
		});
}

/* With nic->lock held. @req and @stage are copied into a new request. */
static int submit_locked(struct weir_session *session, const struct weir_req *req,
			 const struct weir_stage *stage, const struct weir_completion *completion, struct weir_waiter *waiter,
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
	request->finish = finish;
	request->stage.way = stage->way;
	if (stage->way != WEIR_STAGE_USER)
		request->stage = *stage;
	complete_by(request, completion, waiter, now_ns);
	rc = weir_engine_submit(&session->engine, &request->req, now_ns);
	if (rc) {
		weir_request_recycle(request);
		return rc;
	}
	count_stage(session, stage->way, req->length);
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
		  const struct weir_stage *stage, const struct weir_completion *completion, struct weir_waiter *waiter,
		  struct weir_request **out)
{
	struct weir_queue *queue = completion && !completion->done ? completion->queue : NULL;
	int rc;

	if (queue && weir_queue_reserve(queue))
		return -ENOMEM;
	weir_session_lock(session);
	rc = submit_locked(session, req, stage, completion, waiter, out);
	if (rc)
		weir_deliver(session);
	else
		weir_pump_deliver(session, waiter);
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

static int fill_remote(struct weir_req *req, const struct weir_region *region, uint64_t offset)
{
	if (!req->length || offset > region->length || req->length > region->length - offset)
		return -EINVAL;
	if (region->read_only && req->op != WEIR_OP_READ)
		return -EACCES;
	req->remote = region->addr + offset;
	req->exclusive = region->exclusive;
	req->rkey = region->rkey;
	return 0;
}

/* @req: its op is set, and the operands of an atomic. */
static int transfer(struct weir_region *region, struct weir_req *req, uint64_t offset,
		    const struct weir_iov *iov, unsigned int iovcnt,
		    const struct weir_completion *completion, struct weir_waiter *waiter,
		    struct weir_request **request)
{
	struct weir_session *session = region->session;
	struct weir_stage stage;
	int rc;

	if (!waiter && !completion_is_valid(completion, request))
		return -EINVAL;
	rc = weir_stage_in(session, req, iov, iovcnt, &stage);
	if (rc)
		return rc;
	rc = fill_remote(req, region, offset);
	if (!rc)
		rc = submit(session, req, &stage, completion, waiter, request);
	if (rc) {
		req->status = rc;
		weir_stage_out(session, req, &stage);
	}
	return rc;
}

int weir_read_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		    unsigned int iovcnt, const struct weir_completion *completion,
		    struct weir_request **request)
{
	struct weir_req req;

	req.op = WEIR_OP_READ;
	return transfer(region, &req, offset, iov, iovcnt, completion, NULL, request);
}

int weir_write_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		     unsigned int iovcnt, const struct weir_completion *completion,
		     struct weir_request **request)
{
	struct weir_req req;

	req.op = WEIR_OP_WRITE;
	return transfer(region, &req, offset, iov, iovcnt, completion, NULL, request);
}

static int atomic(struct weir_region *region, enum weir_op op, uint64_t offset, uint64_t compare,
		  uint64_t operand, uint64_t *old, struct weir_memory *memory,
		  const struct weir_completion *completion, struct weir_request **request)
{
	struct weir_iov iov = { old, sizeof(*old), memory };
	struct weir_req req;

	req.op = op;
	req.compare = compare;
	req.operand = operand;
	return transfer(region, &req, offset, &iov, 1, completion, NULL, request);
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

static const struct weir_stage nothing_staged = { .way = WEIR_STAGE_USER };

int weir_barrier_async(struct weir_session *session, const struct weir_completion *completion)
{
	struct weir_req req = { .op = WEIR_OP_BARRIER };

	if (!completion_is_valid(completion, NULL))
		return -EINVAL;
	return submit(session, &req, &nothing_staged, completion, NULL, NULL);
}

int weir_request_barrier_wait(struct weir_session *session, struct weir_waiter *waiter)
{
	struct weir_req req = { .op = WEIR_OP_BARRIER };

	return submit(session, &req, &nothing_staged, NULL, waiter, NULL);
}

int weir_request_transfer_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			       const struct weir_iov *iov, uint64_t compare, uint64_t operand,
			       struct weir_waiter *waiter)
{
	struct weir_req req;

	req.op = op;
	req.compare = compare;
	req.operand = operand;
	return transfer(region, &req, offset, iov, 1, NULL, waiter, NULL);
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
