/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way in: requests are filled in, dated, and handed to their engine, by this thread or by that
 * which has the lock.
 */
#include <errno.h>

#include "core/lone.h"
#include "lib/clock.h"
#include "lib/memory.h"
#include "lib/pump.h"
#include "lib/queue.h"
#include "lib/region.h"
#include "lib/request.h"
#include "lib/session.h"
#include "lib/waiter.h"

/* On the way of each request: a call costs more than what these do. */
#define HOT inline __attribute__((always_inline))

static HOT struct weir_request *request_get(struct weir_session *session)
{
	struct weir_inbox_node *node = weir_spare_get(&session->spares);

	return node ? container_of(node, struct weir_request, node) : weir_request_new(session);
}

static HOT void count(struct weir_session *session, enum weir_stage_way way, uint64_t bytes)
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

/* From now on its completion is to be looked for. */
static HOT void begin(struct weir_request *request)
{
	struct weir_session *session = request->session;

	if (weir_request_has_waiter(request))
		weir_waiter_begin(session);
	else
		session->owed = true;
}

/* Its call has returned, perhaps: what is refused now ends by its completion. */
void weir_request_admit(struct weir_request *request)
{
	struct weir_session *session = request->session;
	int rc = -ENOTCONN;

	begin(request);
	weir_list_add_tail(&session->live_requests, &request->link);
	if (!session->stopping && !session->down)
		rc = weir_engine_submit(&session->engine, &request->req, request->submitted_ns);
	if (rc) {
		request->req.status = rc;
		request->req.state = WEIR_REQ_DONE; /* the engine does not know it: see weir_cancel() */
		weir_request_finish(request);
		return;
	}
	count(session, request->stage.way, request->req.length);
}

/* When it was submitted, and when it must be done. */
static void date(struct weir_request *request, uint64_t now_ns)
{
	uint64_t timeout_ns = request->completion.timeout_ns;

	if (!timeout_ns)
		timeout_ns = request->session->options.timeout_ns;
	request->submitted_ns = now_ns;
	request->req.deadline_ns = weir_after_ns(request->submitted_ns, timeout_ns);
}

/* It was not posted after all. */
static void take_back(struct weir_request *request, struct weir_wr *wr)
{
	struct weir_session *session = request->session;
	struct weir_wc wc = { wr, -ENOTCONN };

	weir_list_add_tail(&session->live_requests, &request->link);
	weir_engine_completed(&session->engine, &wc, request->submitted_ns);
}

/* The short way of what comes alone. Its session is to be polled now, at the window's time. */
static HOT bool post(struct weir_request *request)
{
	struct weir_session *session = request->session;
	struct weir_window *window = session->engine.window;
	struct weir_wr *wr;
	bool is_posted;

	if (window->policy)
		weir_window_tick(window, weir_now_ns());
	wr = weir_lone_post(&session->engine, &request->req);
	if (!wr)
		return false;
	is_posted = weir_link_post_one(&session->links[wr->channel], wr);
	begin(request);
	count(session, request->stage.way, request->req.length);
	date(request, weir_now_ns());
	weir_window_tick(window, request->submitted_ns);
	if (!is_posted)
		take_back(request, wr);
	return true;
}

static inline bool is_over(const struct weir_session *session)
{
	return __atomic_load_n(&session->stopping, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&session->down, __ATOMIC_RELAXED);
}

/* Who is told of @request's end, and how often it may be tried; on failure nobody is. */
static HOT int promise(struct weir_request *request, const struct weir_completion *completion,
			  struct weir_request **out)
{
	struct weir_session *session = request->session;

	if (is_over(session))
		return -ENOTCONN;
	if (!completion->done && completion->queue && weir_queue_reserve(completion->queue))
		return -ENOMEM;
	request->completion = *completion;
	request->req.retries = (uint8_t)session->options.retries;
	if (completion->hint)
		request->req.hint = (uint8_t)completion->hint;
	if (out)
		*out = request;
	return 0;
}

/* @request is filled in, and its end is promised. */
static HOT void submit(struct weir_request *request)
{
	struct weir_session *session = request->session;
	struct weir_nic *nic = session->nic;

	if (!weir_serve_begin(nic)) {
		date(request, weir_now_ns());
		weir_serve_leave(nic, &request->node, &request->node, session);
	} else if (post(request)) {
		weir_serve_posted(nic, session);
	} else {
		date(request, weir_now_ns());
		weir_serve_admit(nic, request, session);
	}
}

/* A handle is good until @done returns; nobody could tell when one with a queue no longer is. */
static inline bool completion_is_valid(const struct weir_completion *completion,
				struct weir_request **handle)
{
	return completion && (completion->done || (completion->queue && !handle));
}

static HOT int fill_remote(struct weir_req *req, const struct weir_region *region,
			      uint64_t offset)
{
	if (offset > region->length || req->length > region->length - offset)
		return -EINVAL;
	if (region->read_only && req->op != WEIR_OP_READ)
		return -EACCES;
	req->remote = region->addr + offset;
	req->exclusive = region->exclusive;
	req->hint = __atomic_load_n(&region->hint, __ATOMIC_RELAXED);
	req->rkey = region->rkey;
	return 0;
}

__attribute__((cold))
static int give_up(struct weir_request *request, int rc)
{
	request->req.status = rc;
	weir_stage_out(request->session, &request->req, &request->stage);
	weir_request_put(request);
	return rc;
}

/* Fills in the rest: its op, and the operands of an atomic, are there. On failure it is free again. */
static HOT int prepare(struct weir_request *request, const struct weir_region *region,
			  uint64_t offset, const struct weir_iov *iov, unsigned int iovcnt,
			  const struct weir_completion *completion, struct weir_request **out)
{
	struct weir_session *session = region->session;
	struct weir_req *req = &request->req;
	int rc = 0;

	if (!weir_stage_in_one(session->nic, req, iov, iovcnt, &request->stage))
		rc = weir_stage_in(session, req, iov, iovcnt, &request->stage);
	if (!rc)
		rc = fill_remote(req, region, offset);
	if (!rc)
		rc = promise(request, completion, out);
	return rc ? give_up(request, rc) : 0;
}

static HOT int transfer(struct weir_request *request, const struct weir_region *region,
			   uint64_t offset, const struct weir_iov *iov, unsigned int iovcnt,
			   const struct weir_completion *completion, struct weir_request **out)
{
	int rc = prepare(request, region, offset, iov, iovcnt, completion, out);

	if (!rc)
		submit(request);
	return rc;
}

static HOT int move(struct weir_region *region, enum weir_op op, uint64_t offset,
		const struct weir_iov *iov, unsigned int iovcnt,
		const struct weir_completion *completion, struct weir_request **out)
{
	struct weir_request *request;

	if (!completion_is_valid(completion, out))
		return -EINVAL;
	request = request_get(region->session);
	if (!request)
		return -ENOMEM;
	request->req.op = op;
	return transfer(request, region, offset, iov, iovcnt, completion, out);
}

int weir_read_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		    unsigned int iovcnt, const struct weir_completion *completion,
		    struct weir_request **request)
{
	return move(region, WEIR_OP_READ, offset, iov, iovcnt, completion, request);
}

int weir_write_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		     unsigned int iovcnt, const struct weir_completion *completion,
		     struct weir_request **request)
{
	return move(region, WEIR_OP_WRITE, offset, iov, iovcnt, completion, request);
}

/* One of several: ready to be left, on success. */
static int prepare_one(struct weir_session *session, const struct weir_transfer *t,
		       struct weir_request **request)
{
	if (t->region->session != session || t->direction > WEIR_WRITE ||
	    !completion_is_valid(&t->completion, t->request))
		return -EINVAL;
	*request = request_get(session);
	if (!*request)
		return -ENOMEM;
	(*request)->req.op = t->direction == WEIR_READ ? WEIR_OP_READ : WEIR_OP_WRITE;
	return prepare(*request, t->region, t->offset, t->iov, t->iovcnt, &t->completion,
		       t->request);
}

/* They are left in the inbox with one step, so that whoever takes one of them has all. */
static int transfer_some(struct weir_session *session, const struct weir_transfer *transfers,
			 unsigned int count, unsigned int *submitted)
{
	struct weir_inbox_node *newest = NULL, *oldest = NULL;
	uint64_t now_ns = weir_now_ns();
	struct weir_request *request;
	unsigned int i;
	int rc = 0;

	for (i = 0; i < count; i++) {
		rc = prepare_one(session, &transfers[i], &request);
		if (rc)
			break;
		date(request, now_ns);
		request->node.next = newest;
		newest = &request->node;
		oldest = oldest ? oldest : newest;
	}
	*submitted = i;
	if (newest)
		weir_serve_leave(session->nic, newest, oldest, session);
	return rc;
}

/* As it would go by itself. */
static int transfer_one(const struct weir_transfer *transfer, unsigned int *submitted)
{
	struct weir_request *request;
	int rc = prepare_one(transfer->region->session, transfer, &request);

	*submitted = !rc;
	if (!rc)
		submit(request);
	return rc;
}

int weir_transfer_async(const struct weir_transfer *transfers, unsigned int count,
			unsigned int *submitted)
{
	unsigned int ignored;

	if (!submitted)
		submitted = &ignored;
	*submitted = 0;
	if (!count)
		return 0;
	if (count == 1)
		return transfer_one(transfers, submitted);
	return transfer_some(transfers->region->session, transfers, count, submitted);
}

/* The operands are an atomic's. */
static int transfer_new(struct weir_region *region, enum weir_op op, uint64_t offset,
			const struct weir_iov *iov, unsigned int iovcnt, uint64_t compare,
			uint64_t operand, const struct weir_completion *completion,
			struct weir_request **out)
{
	struct weir_request *request = request_get(region->session);

	if (!request)
		return -ENOMEM;
	request->req.op = op;
	request->req.compare = compare;
	request->req.operand = operand;
	return transfer(request, region, offset, iov, iovcnt, completion, out);
}

/* The engine would say so, too, but only when the call has returned. */
static bool is_aligned(const struct weir_region *region, uint64_t offset)
{
	return !((region->addr + offset) % sizeof(uint64_t));
}

int weir_compare_swap_async(struct weir_region *region, uint64_t offset, uint64_t expected,
			    uint64_t desired, uint64_t *old, struct weir_memory *memory,
			    const struct weir_completion *completion, struct weir_request **request)
{
	struct weir_iov iov = { old, sizeof(*old), memory };

	if (!is_aligned(region, offset) || !completion_is_valid(completion, request))
		return -EINVAL;
	return transfer_new(region, WEIR_OP_CAS, offset, &iov, 1, expected, desired, completion,
			    request);
}

int weir_fetch_add_async(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old,
			 struct weir_memory *memory, const struct weir_completion *completion,
			 struct weir_request **request)
{
	struct weir_iov iov = { old, sizeof(*old), memory };

	if (!is_aligned(region, offset) || !completion_is_valid(completion, request))
		return -EINVAL;
	return transfer_new(region, WEIR_OP_FADD, offset, &iov, 1, 0, add, completion, request);
}

static int barrier(struct weir_session *session, const struct weir_completion *completion)
{
	struct weir_request *request = request_get(session);
	int rc;

	if (!request)
		return -ENOMEM;
	request->req.op = WEIR_OP_BARRIER;
	request->stage.way = WEIR_STAGE_USER;
	rc = promise(request, completion, NULL);
	if (rc)
		weir_request_put(request);
	else
		submit(request);
	return rc;
}

int weir_barrier_async(struct weir_session *session, const struct weir_completion *completion)
{
	return completion_is_valid(completion, NULL) ? barrier(session, completion) : -EINVAL;
}

int weir_request_barrier_wait(struct weir_session *session, struct weir_waiter *waiter)
{
	return barrier(session, &(struct weir_completion){ .arg = waiter });
}

int weir_request_transfer_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			       const struct weir_iov *iov, unsigned int iovcnt, uint64_t compare,
			       uint64_t operand, struct weir_waiter *waiter)
{
	return transfer_new(region, op, offset, iov, iovcnt, compare, operand,
			    &(struct weir_completion){ .arg = waiter }, NULL);
}

