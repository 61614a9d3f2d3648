/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way in: requests are filled in, dated, and handed to their engine, by this thread or by that
 * which has the lock.
 */
#include "core/lone.h"
#include "lib/link_one.h"
#include "lib/prepare.h"
#include "lib/pump.h"
#include "lib/waiter.h"

static WEIR_HOT void count(struct weir_session *session, enum weir_stage_way way, uint64_t bytes)
{
	session->counters->requests++;
	if (way != WEIR_STAGE_USER)
		weir_stage_count(session, way, bytes);
}

/* From now on its completion is to be looked for. */
static WEIR_HOT void begin(struct weir_request *request)
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
		request->req.state = WEIR_REQ_DONE; /* the engine does not know it: see
						     * weir_cancel() */
		weir_request_finish(request);
		return;
	}
	count(session, request->stage.way, request->req.length);
}

/* It was not posted after all. */
static void take_back(struct weir_request *request, struct weir_wr *wr)
{
	struct weir_session *session = request->session;
	struct weir_wc wc = { wr, -ENOTCONN };

	weir_list_add_tail(&session->live_requests, &request->link);
	weir_engine_completed(&session->engine, &wc, request->submitted_ns);
}

/* It is known to be posted, and what comes of it may be a matter of time. */
static WEIR_HOT void enter(struct weir_request *request, struct weir_wr *wr)
{
	struct weir_session *session = request->session;

	begin(request);
	weir_prepare_date(request, weir_now_ns());
	weir_lone_date(&session->engine, wr, request->submitted_ns);
	weir_links_show_window(session);
	if (request->stage.way != WEIR_STAGE_USER)
		weir_stage_tell(session);
}

/*
 * One look, before the clock is read: a device may be done when it has been posted to, and then
 * nobody needs to know when that was.
 */
static WEIR_HOT bool has_ended(struct weir_request *request, struct weir_link *link,
			       struct weir_wr *wr)
{
	struct weir_session *session = request->session;
	struct weir_cq *cq = link->cq;
	struct ibv_wc wcs[2];
	int i, got;

	got = ibv_poll_cq(cq->ibv, cq->wcs_max < 2 ? 1 : 2, wcs);
	if (weir_link_succeeded_alone(link, wcs, got))
		return true;
	enter(request, wr);
	for (i = 0; i < got; i++)
		weir_link_take(session, cq, &wcs[i], request->submitted_ns);
	return false;
}

/*
 * Not where somebody wants the time, nor where whoever comes by has to see to more than his own: to
 * all there is in a session without a thread, to messages, to links that go down.
 */
static WEIR_HOT bool may_look_first(const struct weir_request *request)
{
	const struct weir_session *session = request->session;

	return request->stage.way == WEIR_STAGE_USER && !session->engine.window->policy &&
	       session->has_thread && session->recv_armed && weir_session_is_whole(session);
}

/* The engine knows that it has succeeded, and has nothing else. */
static WEIR_HOT void end(struct weir_request *request)
{
	if (weir_prepare_for_queue(&request->completion)) {
		weir_request_tell_alone(request);
		return;
	}
	if (weir_request_has_waiter(request))
		weir_waiter_begin(request->session);
	weir_request_finish(request);
}

enum posted { POSTED_NOT, POSTED, POSTED_AND_ENDED };

/* The short way of what comes alone. Its session is to be polled now, at the window's time. */
static WEIR_HOT enum posted post(struct weir_session *session, struct weir_request *request)
{
	struct weir_window *window = session->engine.window;
	struct weir_link *link;
	struct weir_wr *wr;
	bool is_posted;

	if (window->policy)
		weir_window_tick(window, weir_now_ns());
	wr = weir_lone_post(&session->engine, &request->req);
	if (!wr)
		return POSTED_NOT;
	link = &session->links[wr->channel];
	is_posted = weir_link_post_one(link, wr);
	count(session, request->stage.way, request->req.length);
	if (!is_posted) {
		enter(request, wr);
		take_back(request, wr);
	} else if (!may_look_first(request)) {
		enter(request, wr);
	} else if (has_ended(request, link, wr)) {
		end(request);
		return POSTED_AND_ENDED;
	}
	return POSTED;
}

/* @request is filled in, and its end is promised. After a weir_serve_begin(). */
static WEIR_HOT void serve(struct weir_session *session, struct weir_request *request)
{
	struct weir_nic *nic = session->nic;

	switch (post(session, request)) {
	case POSTED_NOT:
		weir_prepare_date(request, weir_now_ns());
		weir_serve_admit(nic, request, session);
		break;
	case POSTED:
		weir_serve_posted(nic, session);
		break;
	case POSTED_AND_ENDED:
		weir_serve_ended(nic, session);
		break;
	}
}

/* The same, without the lock. */
static void submit(struct weir_session *session, struct weir_request *request)
{
	if (weir_serve_begin(session->nic)) {
		serve(session, request);
		return;
	}
	weir_prepare_date(request, weir_now_ns());
	weir_serve_leave(session->nic, &request->node, &request->node, session);
}

int weir_prepare_give_up(struct weir_request *request, int rc)
{
	request->req.status = rc;
	weir_stage_out(request->session, &request->req, &request->stage);
	weir_request_put(request);
	return rc;
}

/* The operands are an atomic's. */
static int transfer_with(struct weir_region *region, enum weir_op op, uint64_t offset,
			 const struct weir_iov *iov, unsigned int iovcnt, uint64_t compare,
			 uint64_t operand, const struct weir_completion *completion,
			 struct weir_request **out)
{
	struct weir_session *session = region->session;
	struct weir_request *request = weir_prepare_get(session, false);
	int rc;

	if (!request)
		return -ENOMEM;
	request->req.op = op;
	request->req.compare = compare;
	request->req.operand = operand;
	rc = weir_prepare(request, region, offset, iov, iovcnt, completion, out, false);
	if (!rc)
		submit(session, request);
	return rc;
}

/* A read or write of one registered piece, after a weir_serve_begin(). */
static WEIR_HOT int transfer_locked(struct weir_region *region, enum weir_op op, uint64_t offset,
				    const struct weir_iov *iov,
				    const struct weir_completion *completion,
				    struct weir_request **out)
{
	struct weir_session *session = region->session;
	struct weir_request *request = weir_prepare_get(session, true);
	int rc = -ENOMEM;

	if (request) {
		request->req.op = op;
		rc = weir_prepare(request, region, offset, iov, 1, completion, out, false);
	}
	if (rc)
		weir_nic_unlock(session->nic);
	else
		serve(session, request);
	return rc;
}

/*
 * The lock is taken before there is a request where nothing is to be copied or registered to fill
 * it in, which takes no longer than to take one that is at hand without the lock.
 */
static WEIR_HOT bool is_locked_first(struct weir_region *region, const struct weir_iov *iov,
				     unsigned int iovcnt)
{
	return iovcnt == 1 && iov && iov->memory && weir_serve_begin(region->session->nic);
}

static WEIR_HOT int transfer(struct weir_region *region, enum weir_op op, uint64_t offset,
			     const struct weir_iov *iov, unsigned int iovcnt,
			     const struct weir_completion *completion, struct weir_request **out)
{
	if (is_locked_first(region, iov, iovcnt))
		return transfer_locked(region, op, offset, iov, completion, out);
	return transfer_with(region, op, offset, iov, iovcnt, 0, 0, completion, out);
}

static WEIR_HOT int move(struct weir_region *region, enum weir_op op, uint64_t offset,
		const struct weir_iov *iov, unsigned int iovcnt,
		const struct weir_completion *completion, struct weir_request **out)
{
	if (!weir_prepare_is_valid(completion, out))
		return -EINVAL;
	return transfer(region, op, offset, iov, iovcnt, completion, out);
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

/* As it would go by itself. */
static WEIR_HOT int transfer_one(const struct weir_transfer *t)
{
	if (t->direction > WEIR_WRITE)
		return -EINVAL;
	return move(t->region, weir_prepare_op(t), t->offset, t->iov, t->iovcnt, &t->completion,
		    t->request);
}

int weir_transfer_async(const struct weir_transfer *transfers, unsigned int count,
			unsigned int *submitted)
{
	unsigned int ignored;
	int rc;

	if (count == 1) {
		rc = transfer_one(transfers);
		if (submitted)
			*submitted = !rc;
		return rc;
	}
	if (!submitted)
		submitted = &ignored;
	*submitted = 0;
	if (!count)
		return 0;
	return weir_transfers_leave(transfers->region->session, transfers, count, submitted);
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

	if (!is_aligned(region, offset) || !weir_prepare_is_valid(completion, request))
		return -EINVAL;
	return transfer_with(region, WEIR_OP_CAS, offset, &iov, 1, expected, desired, completion,
			     request);
}

int weir_fetch_add_async(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old,
			 struct weir_memory *memory, const struct weir_completion *completion,
			 struct weir_request **request)
{
	struct weir_iov iov = { old, sizeof(*old), memory };

	if (!is_aligned(region, offset) || !weir_prepare_is_valid(completion, request))
		return -EINVAL;
	return transfer_with(region, WEIR_OP_FADD, offset, &iov, 1, 0, add, completion, request);
}

static int barrier(struct weir_session *session, const struct weir_completion *completion)
{
	struct weir_request *request = weir_prepare_get(session, false);
	int rc;

	if (!request)
		return -ENOMEM;
	request->req.op = WEIR_OP_BARRIER;
	request->stage.way = WEIR_STAGE_USER;
	rc = weir_prepare_promise(request, completion, NULL, false);
	if (rc)
		weir_request_put(request);
	else
		submit(session, request);
	return rc;
}

int weir_barrier_async(struct weir_session *session, const struct weir_completion *completion)
{
	return weir_prepare_is_valid(completion, NULL) ? barrier(session, completion) : -EINVAL;
}

int weir_request_barrier_wait(struct weir_session *session, struct weir_waiter *waiter)
{
	return barrier(session, &(struct weir_completion){ .arg = waiter });
}

/*
 * Each branch has a completion of its own. The first one's address stays in this function, so the
 * compiler keeps its fields as constants: 15 instructions fewer before the post.
 */
int weir_request_move_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			   const struct weir_iov *iov, unsigned int iovcnt,
			   struct weir_waiter *waiter)
{
	if (is_locked_first(region, iov, iovcnt))
		return transfer_locked(region, op, offset, iov,
				       &(struct weir_completion){ .arg = waiter }, NULL);
	return transfer_with(region, op, offset, iov, iovcnt, 0, 0,
			     &(struct weir_completion){ .arg = waiter }, NULL);
}

int weir_request_atomic_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			     const struct weir_iov *iov, uint64_t compare, uint64_t operand,
			     struct weir_waiter *waiter)
{
	return transfer_with(region, op, offset, iov, 1, compare, operand,
			     &(struct weir_completion){ .arg = waiter }, NULL);
}
