/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Submission: the caller fills in a request; the caller or the holder of the lock hands it to the
 * engine.
 */
#include "core/engine/fastpath.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/request/latency.h"
#include "lib/client/request/prepare.h"
#include "lib/client/channel/pump.h"
#include "lib/client/request/waiter.h"

static WEIR_ALWAYS_INLINE void count_request(struct weir_session *session,
					     enum weir_bounce_mode mode, uint64_t bytes)
{
	session->counters->requests++;
	if (mode != WEIR_BOUNCE_NONE)
		weir_bounce_count(session, mode, bytes);
}

/* Times @request, if it is due. */
static void sample(struct weir_session *session, struct weir_request *request)
{
	if (session->sampler.left)
		return;
	weir_latency_choose(&session->sampler, request);
	session->reads_clock = weir_session_must_read_clock(session);
}

/* One request more has been submitted. */
static WEIR_ALWAYS_INLINE void pass_sampler(struct weir_session *session)
{
	if (!--session->sampler.left)
		session->reads_clock = true;
}

/* The submitting call may have returned already: failures are reported by the completion. */
void weir_request_admit(struct weir_request *request)
{
	struct weir_session *session = request->session;
	int rc = -ENOTCONN;

	weir_prepare_count(request);
	weir_list_add_tail(&session->live_requests, &request->link);
	if (weir_session_is_usable(session))
		rc = weir_engine_submit(&session->engine, &request->req, request->submitted_ns);
	if (rc) {
		request->req.status = rc;
		request->req.state = WEIR_REQ_DONE; /* unknown to the engine: see weir_cancel() */
		weir_request_finish(request);
		return;
	}
	count_request(session, request->bounce.mode, request->req.length);
	if (request->req.op > WEIR_OP_FADD)
		return;
	sample(session, request);
	pass_sampler(session);
}

/* Undoes a failed post. */
static void unpost(struct weir_request *request, struct weir_wr *wr)
{
	struct weir_session *session = request->session;
	struct weir_wc wc = { wr, -ENOTCONN };

	weir_list_add_tail(&session->live_requests, &request->link);
	weir_engine_completed(&session->engine, &wc, request->submitted_ns);
}

/* Starts the timer of a posted request, which may take a while. */
static WEIR_ALWAYS_INLINE void record_posted(struct weir_request *request, struct weir_wr *wr)
{
	struct weir_session *session = request->session;

	weir_prepare_count(request);
	weir_prepare_date(request, weir_now_ns());
	weir_fastpath_start_timer(&session->engine, wr, request->submitted_ns);
	weir_session_links_publish_window(session);
}

/*
 * Polls once before reading the clock: a device may complete a request while it is posted, and then
 * no time is needed.
 */
static WEIR_ALWAYS_INLINE bool poll_ended(struct weir_request *request,
					  struct weir_session_link *link, struct weir_wr *wr)
{
	struct weir_session *session = request->session;
	struct weir_cq *cq = link->cq;
	struct ibv_wc wcs[2];
	int i, got;

	got = ibv_poll_cq(cq->ibv, cq->wcs_max < 2 ? 1 : 2, wcs);
	if (weir_session_link_has_one_success(link, wcs, got))
		return true;
	record_posted(request, wr);
	for (i = 0; i < got; i++)
		weir_session_link_handle_wc(session, cq, &wcs[i], request->submitted_ns);
	return false;
}

/*
 * Not if the window policy needs the time, or if this poll must serve more than this request: all
 * events of a session without a thread, messages, failing links.
 */
static WEIR_ALWAYS_INLINE bool may_poll_before_clock(const struct weir_request *request)
{
	const struct weir_session *session = request->session;

	return !session->engine.window->learner && weir_session_has_thread(session) &&
	       session->recv_armed && weir_session_is_whole(session);
}

/* The engine has recorded the success and has nothing else in flight. */
static WEIR_ALWAYS_INLINE void complete_alone(struct weir_request *request)
{
	if (weir_request_needs_dispatch(request))
		weir_request_finish(request);
	else
		weir_request_notify_alone(request);
}

static WEIR_ALWAYS_INLINE void count_posted(struct weir_session *session,
					    const struct weir_request *request)
{
	count_request(session, request->bounce.mode, request->req.length);
	pass_sampler(session);
}

enum posted { POSTED_NOT, POSTED, POSTED_AND_ENDED };

/* Before a post: for a window that needs the time, or for a request that is to be timed. */
__attribute__((noinline, cold)) static void read_clock(struct weir_session *session,
						       struct weir_request *request)
{
	struct weir_window *window = session->engine.window;
	uint64_t now_ns = weir_now_ns();

	if (window->learner)
		weir_window_tick(window, now_ns);
	request->submitted_ns = now_ns;
	sample(session, request);
}

/* The fast path of a single request. The caller then polls the session at the window's time. */
static WEIR_ALWAYS_INLINE enum posted post_alone(struct weir_session *session,
						 struct weir_request *request)
{
	struct weir_session_link *link;
	struct weir_wr *wr;

	if (session->reads_clock)
		read_clock(session, request);
	wr = weir_fastpath_post(&session->engine, &request->req);
	if (!wr)
		return POSTED_NOT;
	link = &session->links[wr->channel];
	if (!weir_session_link_post_one(link, wr)) {
		count_posted(session, request);
		record_posted(request, wr);
		unpost(request, wr);
		return POSTED;
	}
	count_posted(session, request);
	if (!may_poll_before_clock(request)) {
		record_posted(request, wr);
		return POSTED;
	}
	if (!poll_ended(request, link, wr))
		return POSTED;
	if (request->is_timed)
		weir_latency_end(request);
	complete_alone(request);
	return POSTED_AND_ENDED;
}

/* @request is filled in, and its completion has room. After a weir_combine_begin(). */
static WEIR_ALWAYS_INLINE void submit_locked(struct weir_session *session,
					     struct weir_request *request)
{
	struct weir_nic *nic = session->nic;

	switch (post_alone(session, request)) {
	case POSTED_NOT:
		weir_prepare_date(request, weir_now_ns());
		weir_combine_admit(nic, request, session);
		break;
	case POSTED:
		weir_combine_posted(nic, session);
		break;
	case POSTED_AND_ENDED:
		weir_combine_ended(nic, session);
		break;
	}
}

/* As submit_locked(), without the lock. */
static void submit(struct weir_session *session, struct weir_request *request)
{
	if (weir_combine_begin(session->nic)) {
		submit_locked(session, request);
		return;
	}
	weir_prepare_date(request, weir_now_ns());
	weir_combine_enqueue(session->nic, &request->node, &request->node, session);
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

/* A read or write of one registered piece, after a weir_combine_begin(). */
static WEIR_ALWAYS_INLINE int transfer_locked(struct weir_region *region, enum weir_op op,
					      uint64_t offset, const struct weir_iov *iov,
					      const struct weir_completion *completion,
					      struct weir_request **out)
{
	struct weir_session *session = region->session;
	struct weir_request *request = weir_prepare_get(session, true);
	int rc = -ENOMEM;

	if (!iov->memory)
		__builtin_unreachable(); /* is_locked_first(): two instructions fewer */
	if (request) {
		request->req.op = op;
		rc = weir_prepare(request, region, offset, iov, 1, completion, out, false);
	}
	if (rc)
		weir_combine_unlock(session->nic);
	else
		submit_locked(session, request);
	return rc;
}

/*
 * Registered memory needs no copy and no registration. The lock is then taken first: preparing
 * under the lock takes no longer than getting a free request without the lock.
 */
static WEIR_ALWAYS_INLINE bool is_locked_first(struct weir_region *region,
					       const struct weir_iov *iov, unsigned int iovcnt)
{
	return iovcnt == 1 && iov && iov->memory && weir_combine_begin(region->session->nic);
}

static WEIR_ALWAYS_INLINE int transfer_by_engine(struct weir_region *region, enum weir_op op,
						 uint64_t offset, const struct weir_iov *iov,
						 unsigned int iovcnt,
						 const struct weir_completion *completion,
						 struct weir_request **out)
{
	if (is_locked_first(region, iov, iovcnt))
		return transfer_locked(region, op, offset, iov, completion, out);
	return transfer_with(region, op, offset, iov, iovcnt, 0, 0, completion, out);
}

static bool lane_takes(struct weir_region *region, enum weir_op op, uint64_t offset,
		       const struct weir_iov *iov, unsigned int iovcnt,
		       const struct weir_completion *completion, struct weir_request **out)
{
	const struct weir_transfer transfer = {
		.direction = op == WEIR_OP_READ ? WEIR_READ : WEIR_WRITE,
		.region = region,
		.offset = offset,
		.iov = iov,
		.iovcnt = iovcnt,
		.completion = *completion,
		.request = out,
	};

	return weir_lanes_transfer(region->session, &transfer, 1);
}

/* Out of line, as a last call: a thread alone has no lanes, and should not pay for them. */
__attribute__((noinline)) static int transfer_by_lane(struct weir_region *region, enum weir_op op,
						      uint64_t offset, const struct weir_iov *iov,
						      unsigned int iovcnt,
						      const struct weir_completion *completion,
						      struct weir_request **out)
{
	if (lane_takes(region, op, offset, iov, iovcnt, completion, out))
		return 0;
	return transfer_by_engine(region, op, offset, iov, iovcnt, completion, out);
}

static WEIR_ALWAYS_INLINE int transfer(struct weir_region *region, enum weir_op op, uint64_t offset,
				       const struct weir_iov *iov, unsigned int iovcnt,
				       const struct weir_completion *completion,
				       struct weir_request **out)
{
	if (weir_lanes_are_lent(region->session))
		return transfer_by_lane(region, op, offset, iov, iovcnt, completion, out);
	return transfer_by_engine(region, op, offset, iov, iovcnt, completion, out);
}

static WEIR_ALWAYS_INLINE int transfer_checked(struct weir_region *region, enum weir_op op,
					       uint64_t offset, const struct weir_iov *iov,
					       unsigned int iovcnt,
					       const struct weir_completion *completion,
					       struct weir_request **out)
{
	if (!weir_prepare_is_valid(completion, out))
		return -EINVAL;
	return transfer(region, op, offset, iov, iovcnt, completion, out);
}

int weir_read_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		    unsigned int iovcnt, const struct weir_completion *completion,
		    struct weir_request **request)
{
	return transfer_checked(region, WEIR_OP_READ, offset, iov, iovcnt, completion, request);
}

int weir_write_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		     unsigned int iovcnt, const struct weir_completion *completion,
		     struct weir_request **request)
{
	return transfer_checked(region, WEIR_OP_WRITE, offset, iov, iovcnt, completion, request);
}

/* As the single call. */
static WEIR_ALWAYS_INLINE int transfer_one(const struct weir_transfer *t)
{
	if (t->direction > WEIR_WRITE)
		return -EINVAL;
	return transfer_checked(t->region, weir_prepare_op(t), t->offset, t->iov, t->iovcnt,
				&t->completion, t->request);
}

/* As weir_transfer_async(). The first transfers may go by a lane. */
static int transfer_many(const struct weir_transfer *transfers, unsigned int count,
			 unsigned int *submitted)
{
	struct weir_session *session = transfers->region->session;
	unsigned int done = 0;
	int rc;

	if (weir_lanes_are_lent(session) && weir_prepare_for_queue(&transfers->completion))
		done = weir_lanes_transfer(session, transfers, count);
	if (done == count) {
		*submitted = count;
		return 0;
	}
	rc = weir_transfers_enqueue(session, transfers + done, count - done, submitted);
	*submitted += done;
	return rc;
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
	return transfer_many(transfers, count, submitted);
}

/* The engine checks too, but only after the call has returned. */
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
	request->bounce.mode = WEIR_BOUNCE_NONE;
	rc = weir_prepare_promise(request, completion, NULL, false);
	if (rc)
		return weir_request_release(request, rc);
	submit(session, request);
	return 0;
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
static WEIR_ALWAYS_INLINE int move_by_engine(struct weir_region *region, enum weir_op op,
					     uint64_t offset, const struct weir_iov *iov,
					     unsigned int iovcnt, struct weir_waiter *waiter)
{
	if (is_locked_first(region, iov, iovcnt))
		return transfer_locked(region, op, offset, iov,
				       &(struct weir_completion){ .arg = waiter }, NULL);
	return transfer_with(region, op, offset, iov, iovcnt, 0, 0,
			     &(struct weir_completion){ .arg = waiter }, &waiter->request);
}

/* As transfer_by_lane(). */
__attribute__((noinline)) static int move_by_lane(struct weir_region *region, enum weir_op op,
						  uint64_t offset, const struct weir_iov *iov,
						  unsigned int iovcnt, struct weir_waiter *waiter)
{
	if (lane_takes(region, op, offset, iov, iovcnt,
		       &(struct weir_completion){ .arg = waiter }, NULL))
		return 0;
	return move_by_engine(region, op, offset, iov, iovcnt, waiter);
}

int weir_request_move_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			   const struct weir_iov *iov, unsigned int iovcnt,
			   struct weir_waiter *waiter)
{
	if (weir_lanes_are_lent(region->session))
		return move_by_lane(region, op, offset, iov, iovcnt, waiter);
	return move_by_engine(region, op, offset, iov, iovcnt, waiter);
}

int weir_request_atomic_wait(struct weir_region *region, enum weir_op op, uint64_t offset,
			     const struct weir_iov *iov, uint64_t compare, uint64_t operand,
			     struct weir_waiter *waiter)
{
	return transfer_with(region, op, offset, iov, 1, compare, operand,
			     &(struct weir_completion){ .arg = waiter }, &waiter->request);
}
