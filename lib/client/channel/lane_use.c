/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The use of lanes, without nic->lock. */
#include <limits.h>
#include <sched.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/client/channel/lanes.h"
#include "lib/client/channel/pump.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/request/prepare.h"
#include "lib/client/request/waiter.h"
#include "lib/client/session.h"

#define SPINS 1000 /* about as long as another lane's post of a few pages */
#define WAIT_NS 300000 /* for a claim, or for room: some round trips */
#define POLL_NS 50000 /* for an event: sleeping costs about as much */
#define WATCH_MS 1
#define EVENTS_MAX 32
#define WAKES_MAX 8

/* Completions that a thread has found, and not yet told. */
struct reaper {
	struct weir_queue *queue;
	struct weir_event events[EVENTS_MAX];
	unsigned int nr_events;
	uint32_t *wakes[WAKES_MAX];
	unsigned int nr_wakes;
};

static void wake_all(struct reaper *r)
{
	while (r->nr_wakes)
		weir_futex_wake(r->wakes[--r->nr_wakes], INT_MAX);
}

static void put_events(struct reaper *r)
{
	uint32_t *word;

	if (!r->nr_events)
		return;
	word = weir_queue_put(r->queue, r->events, r->nr_events);
	r->nr_events = 0;
	if (!word)
		return;
	if (r->nr_wakes == WAKES_MAX)
		wake_all(r);
	r->wakes[r->nr_wakes++] = word;
}

static void report(struct reaper *r, const struct weir_completion *completion)
{
	if (!completion->queue) {
		weir_waiter_done_at_once(completion->arg);
		return;
	}
	if (completion->queue != r->queue || r->nr_events == EVENTS_MAX)
		put_events(r);
	r->queue = completion->queue;
	r->events[r->nr_events++] = (struct weir_event){ completion->arg, 0 };
}

/* Down to lock_lane(): with the lane's lock. */

static void end_timing(struct weir_session_lane *lane, struct weir_request *request)
{
	request->is_timed = false;
	if (lane->nr_timed == WEIR_LANE_TIMED_MAX)
		return;
	lane->timed[lane->nr_timed].ns = weir_now_ns() - request->submitted_ns;
	lane->timed[lane->nr_timed++].kind = weir_latency_kind(request->req.op);
}

static void end_oldest(struct weir_lane_set *set, struct weir_session_lane *lane, struct reaper *r)
{
	struct weir_request *request = lane->requests[weir_lane_pop(&lane->core)];
	const struct weir_req *req = &request->req;

	if (request->is_timed)
		end_timing(lane, request);
	if (req->op == WEIR_OP_READ)
		lane->count.bytes_read += req->length;
	else
		lane->count.bytes_written += req->length;
	lane->loan.done++;
	weir_claims_give(&set->claims, req->remote, req->length, weir_req_modifies(req));
	report(r, &request->completion);
}

/* Leaves all to the engine. The caller owes a weir_combine_serve(), or a weir_pump_kick(). */
static void give_up(struct weir_session_lane *lane)
{
	lane->is_given_up = true;
	weir_inbox_push(&lane->link->session->nic->combine.inbox, &lane->link->returned.node);
}

static bool is_success(const struct weir_session_lane *lane, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->qp_num == lane->link->qp_num &&
	       wc->wr_id > WEIR_KEEPALIVE_WR;
}

static void end_up_to(struct weir_lane_set *set, struct weir_session_lane *lane, uint64_t wr_id,
		      struct reaper *r)
{
	uintptr_t ended = 0;

	while (lane->core.posted && ended != wr_id) {
		ended = (uintptr_t)lane->core.wrs[lane->core.oldest];
		end_oldest(set, lane, r);
	}
}

/*
 * Takes completions. Return: false if the lane is given up: the engine must see a failure, and
 * decide.
 */
static bool reap(struct weir_lane_set *set, struct weir_session_lane *lane, struct reaper *r)
{
	struct weir_cq *cq = lane->link->cq;
	int i, max = cq->wcs_max < WEIR_LANE_WCS ? (int)cq->wcs_max : WEIR_LANE_WCS;
	int got = ibv_poll_cq(cq->ibv, max, lane->wc);

	for (i = 0; i < got; i++) {
		if (!is_success(lane, &lane->wc[i])) {
			lane->nr_wcs = got - i;
			memmove(lane->wc, &lane->wc[i], (size_t)lane->nr_wcs * sizeof(*lane->wc));
			give_up(lane);
			break;
		}
		lane->count.completions++;
		end_up_to(set, lane, lane->wc[i].wr_id, r);
	}
	put_events(r);
	return !lane->is_given_up;
}

static bool has_some(const struct weir_session_lane *lane)
{
	return lane->core.is_lent && lane->core.posted && !lane->is_given_up;
}

/*
 * Takes completions of the lanes that no other thread uses, but for @mine. A lane that must be
 * given up is left to the thread of its session: another thread may close that session once the
 * lane is unlocked, and with it the NIC.
 */
static void reap_others(struct weir_lane_set *set, const struct weir_session_lane *mine,
			struct reaper *r)
{
	unsigned int i, count = __atomic_load_n(&set->count, __ATOMIC_RELAXED);

	for (i = 0; i < count; i++) {
		struct weir_session_lane *lane = &set->lane[i];

		if (lane == mine || !weir_spinlock_trylock(&lane->lock))
			continue;
		if (has_some(lane) && !reap(set, lane, r))
			weir_pump_kick(lane->link->session);
		weir_spinlock_unlock(&lane->lock);
	}
}

/* A wait with a lane's lock. */
struct lane_wait {
	unsigned int tries;
	uint64_t until_ns;
};

/*
 * Waits a little, for what other requests must give back. Not if the lanes are wanted back: what is
 * in flight keeps its claims until then.
 */
static bool wait_a_little(struct weir_session *session, struct weir_session_lane *lane,
			  struct reaper *r, struct lane_wait *wait)
{
	if (weir_lanes_are_lent(session) != WEIR_LANES_LENT ||
	    weir_inbox_may_have(&session->nic->combine.inbox) || !reap(session->lanes.set, lane, r))
		return false;
	wake_all(r);
	if (!wait->tries++)
		lane->loan.waited++;
	if (wait->tries < SPINS)
		return true;
	if (wait->tries == SPINS)
		wait->until_ns = weir_now_ns() + WAIT_NS;
	reap_others(session->lanes.set, lane, r);
	wake_all(r);
	sched_yield();
	return weir_now_ns() < wait->until_ns;
}

/* @may_wait: the caller holds no claim of a request that is not posted. */
static bool claim(struct weir_session *session, struct weir_session_lane *lane,
		  const struct weir_req *req, bool may_wait, struct reaper *r)
{
	struct lane_wait wait = { 0 };

	do {
		if (weir_claims_take(&session->lanes.set->claims, req->remote, req->length,
				     weir_req_modifies(req)))
			return true;
	} while (may_wait && wait_a_little(session, lane, r, &wait));
	return false;
}

static bool await_room(struct weir_session *session, struct weir_session_lane *lane,
		       uint64_t length, struct reaper *r)
{
	struct lane_wait wait = { 0 };

	while (!weir_lane_room(&lane->core) || length > lane->core.bytes_max - lane->core.bytes) {
		if (!wait_a_little(session, lane, r, &wait))
			return false;
	}
	return true;
}

/* Whether @t and the transfer after it are neighbours, in this order. */
static bool are_neighbours(const struct weir_transfer *t)
{
	return t[0].direction == t[1].direction && t[0].region == t[1].region && t[0].iovcnt == 1 &&
	       t[0].iov && t[0].offset + t[0].iov->length == t[1].offset;
}

/* Whether the engine should have @t, because it merges. Two neighbours may be a coincidence. */
static bool is_run(const struct weir_session *session, const struct weir_transfer *t,
		   unsigned int count)
{
	return session->engine.merge && count > 1 && are_neighbours(t) &&
	       (count == 2 || are_neighbours(t + 1));
}

/* What a lane can take, and the checks of weir_prepare(). */
static bool prepare(struct weir_session *session, struct weir_request *request,
		    const struct weir_transfer *t)
{
	struct weir_req *req = &request->req;

	if (t->region->session != session || t->direction > WEIR_WRITE || t->request ||
	    t->completion.done)
		return false;
	req->op = weir_prepare_op(t);
	return weir_bounce_map_registered(session->nic, req, t->iov, t->iovcnt, &request->bounce) &&
	       !weir_prepare_remote(req, t->region, t->offset) && weir_req_is_plain(req) &&
	       req->length <= session->engine.fragment_bytes &&
	       req->length <= WEIR_LANE_CHAIN_BYTES &&
	       (!session->engine.selector || req->op == WEIR_OP_READ) &&
	       !weir_prepare_promise(request, &t->completion, NULL, true);
}

/*
 * Prepares the first transfers that one chain can have: of one queue, and as long as the window
 * allows. Return: their number. @bytes: receives their length
 */
static uint32_t gather(struct weir_session *session, struct weir_session_lane *lane,
		       const struct weir_transfer *t, unsigned int count, uint32_t *bytes,
		       struct reaper *r)
{
	uint32_t i, max = session->engine.chain_max;

	*bytes = 0;
	if (is_run(session, t, count) || !await_room(session, lane, 1, r))
		return 0;
	for (i = 0; i < count && i < max && i < weir_lane_room(&lane->core); i++) {
		struct weir_request *request =
			lane->requests[weir_lane_slot(&lane->core, lane->core.posted + i)];
		const struct weir_req *req = &request->req;

		if (t[i].completion.queue != t[0].completion.queue ||
		    !prepare(session, request, &t[i]) ||
		    (!i && !await_room(session, lane, req->length, r)) ||
		    *bytes + req->length > WEIR_LANE_CHAIN_BYTES ||
		    *bytes + req->length > lane->core.bytes_max - lane->core.bytes ||
		    !claim(session, lane, req, !i, r))
			break;
		*bytes += (uint32_t)req->length;
		weir_lane_meet(&lane->core, req->remote, req->length);
	}
	return i;
}

/* Takes back what gather() has claimed. */
static void give_claims(struct weir_session *session, struct weir_session_lane *lane,
			uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t slot = weir_lane_slot(&lane->core, lane->core.posted + i);
		const struct weir_req *req = &lane->requests[slot]->req;

		weir_claims_give(&session->lanes.set->claims, req->remote, req->length,
				 weir_req_modifies(req));
	}
}

static void fill(struct weir_session_lane *lane, uint32_t slot, struct ibv_send_wr *out,
		 bool is_last)
{
	struct weir_wr *wr = lane->core.wrs[slot];

	weir_fragment_whole(wr, &lane->requests[slot]->req);
	weir_session_link_fill_common(out, wr);
	weir_session_link_fill_transfer(out, wr);
	out->next = is_last ? NULL : out + 1;
	if (wr->length <= lane->link->inline_max && out->opcode == IBV_WR_RDMA_WRITE) {
		out->send_flags = IBV_SEND_INLINE;
		lane->count.inlined++;
	}
	if (is_last)
		out->send_flags |= IBV_SEND_SIGNALED;
}

/* Return: true if the device has accepted all @count WRs. */
static bool post(struct weir_session_lane *lane, uint32_t count, uint32_t bytes)
{
	struct ibv_send_wr wrs[WEIR_BATCH_MAX], *bad = wrs;
	uint32_t i;

	for (i = 0; i < count; i++)
		fill(lane, weir_lane_slot(&lane->core, lane->core.posted + i), &wrs[i],
		     i + 1 == count);
	weir_lane_add(&lane->core, count, bytes);
	lane->count.requests += count;
	lane->count.doorbells++;
	lane->count.chains += count > 1;
	if (!ibv_post_send(lane->link->id->qp, wrs, &bad))
		return true;
	lane->refused = count - (uint32_t)(bad - wrs);
	return false;
}

/* Times at most one request of a chain, which is about to be posted. */
static void begin_timing(struct weir_session_lane *lane, uint32_t count)
{
	struct weir_latency_sampler *sampler = &lane->sampler;
	uint32_t chosen = sampler->left, after;

	if (chosen >= count) {
		sampler->left -= count;
		return;
	}
	weir_latency_begin(sampler,
			   lane->requests[weir_lane_slot(&lane->core, lane->core.posted + chosen)]);
	after = count - chosen; /* and itself */
	sampler->left -= sampler->left < after ? sampler->left : after;
}

/*
 * The set from which @queue gets events, so that its threads know where to look. Return: false if
 * another session's lanes have requests in flight, and may owe it some.
 */
static bool is_source_of(struct weir_lane_set *set, struct weir_queue *queue)
{
	struct weir_lane_set *found = __atomic_load_n(&queue->lanes, __ATOMIC_RELAXED);

	if (found == set)
		return true;
	if (found && __atomic_load_n(&found->are_lent, __ATOMIC_RELAXED))
		return false;
	return __atomic_compare_exchange_n(&queue->lanes, &found, set, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* Room for @count events, which a thread takes that waits for them. */
static bool reserve(struct weir_session *session, struct weir_queue *queue, uint32_t count)
{
	return !queue ||
	       (!weir_queue_has_sleeper(queue) && is_source_of(session->lanes.set, queue) &&
		!weir_queue_reserve(queue, count));
}

/* Posts a chain. Return: how many of the first transfers it has; 0: they take another way. */
static uint32_t post_some(struct weir_session *session, struct weir_session_lane *lane,
			  const struct weir_transfer *t, unsigned int count, struct reaper *r)
{
	uint32_t bytes, found = gather(session, lane, t, count, &bytes, r);

	if (!found)
		return 0;
	if (lane->is_given_up || !reserve(session, t->completion.queue, found)) {
		give_claims(session, lane, found);
		return 0;
	}
	begin_timing(lane, found);
	if (!post(lane, found, bytes))
		give_up(lane);
	else
		reap(session->lanes.set, lane, r);
	return found;
}

/* The session's thread takes what no other thread does. */
static void call_watch(struct weir_session *session)
{
	if (!__atomic_load_n(&session->lanes.is_watched, __ATOMIC_SEQ_CST) &&
	    !__atomic_exchange_n(&session->lanes.is_watched, true, __ATOMIC_SEQ_CST))
		weir_pump_kick(session);
}

/* Takes the lock of a lane: of the caller's CPU, or another one if that is taken. */
static struct weir_session_lane *lock_lane(struct weir_lane_set *set)
{
	unsigned int i, mine = (unsigned int)sched_getcpu() % set->count;

	for (i = 0; i < set->count; i++) {
		struct weir_session_lane *lane = &set->lane[(mine + i) % set->count];

		if (weir_spinlock_trylock(&lane->lock))
			return lane;
	}
	weir_spinlock_lock(&set->lane[mine].lock);
	return &set->lane[mine];
}

static bool is_loan_over(const struct weir_session *session, struct weir_session_lane *lane)
{
	const struct weir_loans *loans = &session->lanes.loans;

	lane->loan.has_met = session->engine.merge && weir_lane_has_met(&lane->core);
	lane->loan.chains = lane->count.doorbells;
	if (weir_loan_needs_time(&lane->loan))
		weir_loan_note_time(&lane->loan, weir_now_ns());
	return lane->is_given_up || lane->nr_timed == WEIR_LANE_TIMED_MAX ||
	       weir_loans_is_over(loans, &lane->loan);
}

/*
 * Posts on a lane until a thread must be woken, or the rest must take another way. When the last
 * request is done and the lane unlocked, the session may be gone. Return: true if there may be more
 * to post here.
 */
static bool use_lane(struct weir_session *session, const struct weir_transfer *t,
		     unsigned int count, unsigned int *done)
{
	struct weir_session_lane *lane = lock_lane(session->lanes.set);
	struct weir_nic *nic = session->nic;
	struct reaper r = { .nr_events = 0 };
	bool must_serve = false, goes_on = true;
	uint32_t posted;

	if (lane->is_given_up || !weir_lane_may_post(&lane->core, &nic->combine.inbox)) {
		weir_spinlock_unlock(&lane->lock);
		return false;
	}
	while (goes_on && *done < count && !r.nr_wakes) {
		posted = post_some(session, lane, &t[*done], count - *done, &r);
		*done += posted;
		goes_on = posted && !lane->is_given_up &&
			  weir_lanes_are_lent(session) == WEIR_LANES_LENT;
	}
	if (has_some(lane))
		call_watch(session);
	must_serve = is_loan_over(session, lane);
	weir_spinlock_unlock(&lane->lock);
	wake_all(&r);
	if (must_serve)
		weir_combine_serve(nic, session);
	return goes_on && !must_serve;
}

/* Return: whether the lanes are lent. */
static bool await_loan(struct weir_session *session)
{
	uint64_t until_ns = 0;
	uint8_t hint;

	/* Pairs with lend_all(): the lanes and their claims are made. */
	while ((hint = __atomic_load_n(&session->lanes.hint, __ATOMIC_ACQUIRE)) ==
	       WEIR_LANES_SOON) {
		if (!until_ns)
			until_ns = weir_now_ns() + WAIT_NS;
		else if (weir_now_ns() >= until_ns)
			return false;
		sched_yield();
	}
	return hint == WEIR_LANES_LENT;
}

unsigned int weir_lanes_transfer(struct weir_session *session, const struct weir_transfer *t,
				 unsigned int count)
{
	unsigned int done = 0;

	if (!await_loan(session))
		return 0;
	while (done < count && use_lane(session, t, count, &done))
		;
	return done;
}

void weir_lanes_reap(struct weir_lane_set *set)
{
	struct reaper r = { .nr_events = 0 };

	reap_others(set, NULL, &r);
	wake_all(&r);
}

/* Gives up a lane that has requests in flight, and with it all lanes. */
static void give_up_all(struct weir_lane_set *set)
{
	unsigned int i, count = __atomic_load_n(&set->count, __ATOMIC_RELAXED);
	bool found = false;

	for (i = 0; i < count && !found; i++) {
		struct weir_session_lane *lane = &set->lane[i];

		weir_spinlock_lock(&lane->lock);
		found = has_some(lane);
		if (found) {
			give_up(lane);
			weir_pump_kick(lane->link->session);
		}
		weir_spinlock_unlock(&lane->lock);
	}
}

void weir_lanes_await_event(struct weir_lane_set *set, const struct weir_queue *queue,
			    uint64_t deadline_ns)
{
	uint64_t now_ns = weir_now_ns(), until_ns = now_ns + POLL_NS;

	if (until_ns > deadline_ns)
		until_ns = deadline_ns;
	for (;;) {
		weir_lanes_reap(set);
		if (weir_queue_may_have(queue) || now_ns >= until_ns ||
		    !__atomic_load_n(&set->are_lent, __ATOMIC_RELAXED))
			break;
		sched_yield();
		now_ns = weir_now_ns();
	}
	if (now_ns < deadline_ns && !weir_queue_may_have(queue))
		give_up_all(set);
}

void weir_lanes_await_done(struct weir_session *session, struct weir_waiter *waiter)
{
	uint64_t until_ns = weir_now_ns() + POLL_NS;

	while (__atomic_load_n(&session->lanes.hint, __ATOMIC_ACQUIRE) == WEIR_LANES_LENT &&
	       weir_now_ns() < until_ns) {
		weir_lanes_reap(session->lanes.set);
		if (weir_waiter_is_done(waiter))
			return;
		sched_yield();
	}
}

/* One lane at the last look. */
struct lane_seen {
	uint64_t done;
	bool has_some, is_used;
};

/*
 * Looks at one lane. A lane without progress since the last look has no thread, so it is reaped.
 * Return: false if that has not helped.
 */
static bool look_at(struct weir_lane_set *set, struct weir_session_lane *lane,
		    struct lane_seen *seen, struct reaper *r)
{
	bool is_well = true;

	seen->is_used = !weir_spinlock_trylock(&lane->lock);
	if (seen->is_used)
		return true;
	if (has_some(lane) && seen->has_some && lane->loan.done == seen->done)
		is_well = reap(set, lane, r) && lane->loan.done != seen->done;
	seen->has_some = has_some(lane);
	seen->done = lane->loan.done;
	weir_spinlock_unlock(&lane->lock);
	return is_well;
}

/* Return: true if requests are in flight, and all lanes make progress. */
static bool look_at_all(struct weir_session *session, struct lane_seen *seen)
{
	struct weir_lane_set *set = session->lanes.set;
	struct reaper r = { .nr_events = 0 };
	bool is_well = true, has_any = false;
	unsigned int i;

	for (i = 0; i < set->count; i++) {
		uint64_t before = seen[i].done;

		is_well &= look_at(set, &set->lane[i], &seen[i], &r);
		has_any |= seen[i].has_some || seen[i].is_used || seen[i].done != before;
	}
	wake_all(&r);
	return is_well && has_any;
}

void weir_lanes_watch(struct weir_session *session)
{
	struct lane_seen seen[WEIR_CHANNEL_MAX] = { 0 };
	struct epoll_event event;

	while (__atomic_load_n(&session->lanes.hint, __ATOMIC_ACQUIRE) == WEIR_LANES_LENT &&
	       !weir_inbox_may_have(&session->nic->combine.inbox) && look_at_all(session, seen) &&
	       epoll_wait(session->epoll_fd, &event, 1, WATCH_MS) == 0)
		;
	__atomic_store_n(&session->lanes.is_watched, false, __ATOMIC_SEQ_CST);
}
