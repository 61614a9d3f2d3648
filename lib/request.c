/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "core/lone.h"
#include "lib/clock.h"
#include "lib/deliver.h"
#include "lib/memory.h"
#include "lib/pump.h"
#include "lib/queue.h"
#include "lib/region.h"
#include "lib/request.h"
#include "lib/session.h"
#include "lib/waiter.h"

static struct weir_request *request_new(struct weir_session *session)
{
	struct weir_request *request = malloc(sizeof(*request));

	if (!request)
		return NULL;
	request->session = session;
	weir_list_init(&request->link);
	return request;
}

static struct weir_request *request_get(struct weir_session *session)
{
	struct weir_inbox_node *node = weir_spare_get(&session->spares);

	return node ? container_of(node, struct weir_request, node) : request_new(session);
}

static void request_put(struct weir_request *request)
{
	weir_spare_put(&request->session->spares, &request->node);
}

static void request_recycle(struct weir_request *request)
{
	weir_list_del(&request->link);
	request_put(request);
}

void weir_requests_fini(struct weir_session *session)
{
	struct weir_inbox_node *node;

	while ((node = weir_spare_get(&session->spares)))
		free(container_of(node, struct weir_request, node));
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

/* Who is to be told. */
static bool has_callback(const struct weir_request *request)
{
	return request->completion.done;
}

static bool has_waiter(const struct weir_request *request)
{
	return !request->completion.done && !request->completion.queue;
}

static void tell_waiter(struct weir_request *request)
{
	weir_waiter_done(request->completion.arg, request->session, request->req.status);
}

static void tell_other(struct weir_request *request)
{
	const struct weir_completion *completion = &request->completion;

	if (completion->done)
		completion->done(completion->arg, request->req.status);
	else
		weir_queue_put(completion->queue, completion->arg, request->req.status);
}

static void finish(struct weir_request *request)
{
	count_retries(request);
	request->req.status = status_of(request);
	if (request->stage.way != WEIR_STAGE_USER || has_callback(request)) {
		weir_list_del(&request->link);
		weir_list_add_tail(&request->session->done, &request->link);
		return;
	}
	if (has_waiter(request))
		tell_waiter(request);
	else
		tell_other(request);
	request_recycle(request);
}

void weir_request_finish(struct weir_request *request)
{
	if (request->req.op == WEIR_OP_SEND)
		weir_messages_finish(request);
	else
		finish(request);
}

void weir_request_deliver(struct weir_request *request)
{
	weir_stage_out(request->session, &request->req, &request->stage);
	if (!has_waiter(request))
		tell_other(request);
}

void weir_request_delivered(struct weir_request *request)
{
	if (has_waiter(request))
		tell_waiter(request);
	request_recycle(request);
}

static void count(struct weir_session *session, enum weir_stage_way way, uint64_t bytes)
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
static void begin(struct weir_request *request)
{
	struct weir_session *session = request->session;

	if (has_waiter(request))
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
		finish(request);
		return;
	}
	count(session, request->stage.way, request->req.length);
}

/* When it was submitted, and when it must be done. */
static void date(struct weir_request *request)
{
	uint64_t timeout_ns = request->completion.timeout_ns;

	if (!timeout_ns)
		timeout_ns = request->session->options.timeout_ns;
	request->submitted_ns = weir_now_ns();
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
static bool post(struct weir_request *request)
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
	date(request);
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

/* @request is filled in but for its end; on failure it stays the caller's. */
static inline int submit(struct weir_request *request, const struct weir_completion *completion,
			 struct weir_request **out)
{
	struct weir_session *session = request->session;
	struct weir_nic *nic = session->nic;

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
	if (!weir_serve_begin(nic)) {
		date(request);
		weir_serve_leave(nic, request, session);
	} else if (post(request)) {
		weir_serve_posted(nic, session);
	} else {
		date(request);
		weir_serve_admit(nic, request, session);
	}
	return 0;
}

/* A handle is good until @done returns; nobody could tell when one with a queue no longer is. */
static inline bool completion_is_valid(const struct weir_completion *completion,
				struct weir_request **handle)
{
	return completion && (completion->done || (completion->queue && !handle));
}

static inline int fill_remote(struct weir_req *req, const struct weir_region *region,
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
	request_put(request);
	return rc;
}

/* Goes from @request's op, and the operands of an atomic; on failure it is free again. */
static inline int transfer(struct weir_request *request, const struct weir_region *region,
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
		rc = submit(request, completion, out);
	return rc ? give_up(request, rc) : 0;
}

static inline int move(struct weir_region *region, enum weir_op op, uint64_t offset,
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
	rc = submit(request, completion, NULL);
	if (rc)
		request_put(request);
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
