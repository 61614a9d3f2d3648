/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/client/channel/lanes.h"
#include "lib/client/channel/pump.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/request/prepare.h"
#include "lib/client/request/waiter.h"
#include "lib/client/session.h"

#define PAUSE_MAX 65536 /* chances to lend */
#define LOAN_CHAINS 4096 /* then the session's counters are brought up to date */
#define GAIN_MIN 256 /* requests that pay for lending the lanes */
#define CLAIM_SPINS 1000 /* about as long as another lane's post of a few pages */
#define CLAIM_TRIES 1100

void weir_lanes_fini(struct weir_session *session)
{
	struct weir_session_lanes *lanes = &session->lanes;
	unsigned int i, j;

	for (i = 0; i < lanes->count; i++) {
		for (j = 0; j < WEIR_LANE_WRS; j++)
			free(lanes->lane[i].requests[j]);
	}
	free(lanes->lane);
	free(lanes->claims);
}

/* Down to weir_lanes_recall(): with nic->lock held. */
static bool make_lanes(struct weir_session *session)
{
	struct weir_session_lanes *lanes = &session->lanes;
	unsigned int i, count = session->options.channels;

	if (lanes->count)
		return true;
	lanes->claims = calloc(1, sizeof(*lanes->claims));
	lanes->lane = aligned_alloc(__alignof__(*lanes->lane), count * sizeof(*lanes->lane));
	if (!lanes->lane || !lanes->claims) {
		weir_lanes_fini(session);
		lanes->lane = NULL;
		lanes->claims = NULL;
		return false;
	}
	for (i = 0; i < count; i++) {
		lanes->lane[i] = (struct weir_session_lane){ .link = &session->links[i] };
		weir_latency_init(&lanes->lane[i].sampler, session->sampler.random + i);
	}
	lanes->count = count;
	return true;
}

/* Replaces the requests that the engine has got. */
static bool fill_up(struct weir_session *session, struct weir_session_lane *lane)
{
	unsigned int i;

	for (i = 0; i < WEIR_LANE_WRS; i++) {
		if (!lane->requests[i])
			lane->requests[i] = weir_prepare_get(session, true);
		if (!lane->requests[i])
			return false;
	}
	return true;
}

static bool link_is_still(const struct weir_session_link *link)
{
	return link->has_own_cq && link->core.state == WEIR_LINK_UP && !link->core.is_posting &&
	       !link->core.is_probed && !link->core.in_flight.count;
}

static bool links_are_still(const struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->options.channels; i++) {
		if (!link_is_still(&session->links[i]))
			return false;
	}
	return weir_session_is_whole(session);
}

static void lend_all(struct weir_session *session)
{
	struct weir_session_lanes *lanes = &session->lanes;
	unsigned int i;

	weir_list_add_tail(&session->nic->lent, &lanes->link);
	session->nic->is_lent = true;
	for (i = 0; i < lanes->count; i++) {
		struct weir_session_lane *lane = &lanes->lane[i];

		weir_spinlock_lock(&lane->lock);
		if (fill_up(session, lane))
			weir_lane_lend(&session->engine, &lane->core, (uint16_t)i);
		weir_spinlock_unlock(&lane->lock);
	}
	__atomic_store_n(&lanes->are_lent, true, __ATOMIC_RELEASE);
}

static bool may_lend(const struct weir_session *session)
{
	return session->options.channels > 1 && weir_session_has_thread(session) &&
	       session->state == WEIR_SESSION_OPEN && links_are_still(session) &&
	       !weir_session_has_callbacks(session) &&
	       weir_lane_may_lend(&session->engine, session->options.channels);
}

void weir_lanes_offer(struct weir_session *session)
{
	struct weir_session_lanes *lanes = &session->lanes;
	struct weir_nic *nic = session->nic;
	uint32_t paused, crowd = __atomic_load_n(&nic->crowd, __ATOMIC_RELAXED);

	if (!crowd || weir_inbox_may_have(&nic->combine.inbox))
		return;
	__atomic_store_n(&nic->crowd, crowd - 1, __ATOMIC_RELAXED);
	paused = __atomic_load_n(&lanes->paused, __ATOMIC_RELAXED);
	if (paused) {
		__atomic_store_n(&lanes->paused, paused - 1, __ATOMIC_RELAXED);
		return;
	}
	if (may_lend(session) && make_lanes(session))
		lend_all(session);
}

static void give_claims(struct weir_session_lanes *lanes, const struct weir_session_lane *lane,
			uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct weir_req *req = &lane->requests[i]->req;

		weir_claims_give(lanes->claims, req->remote, req->length, weir_req_modifies(req));
	}
}

static void publish_latencies(struct weir_session *session, struct weir_session_lane *lane)
{
	uint32_t i;

	for (i = 0; i < lane->nr_timed; i++)
		weir_histogram_add(&session->stats_shm->latency[lane->timed[i].kind],
				   lane->timed[i].ns);
	lane->nr_timed = 0;
}

/* Return: requests counted. */
static uint64_t publish_counts(struct weir_session *session, struct weir_session_lane *lane)
{
	struct weir_counters *c = session->counters;
	uint64_t requests = lane->count.requests;

	c->requests += requests;
	c->work_requests += requests;
	c->doorbells += lane->count.doorbells;
	c->unlocked += lane->count.doorbells;
	c->completions += lane->count.completions;
	c->chains += lane->count.chains;
	c->inlined += lane->count.inlined;
	c->bytes_read += lane->count.bytes_read;
	c->bytes_written += lane->count.bytes_written;
	memset(&lane->count, 0, sizeof(lane->count));
	publish_latencies(session, lane);
	return requests;
}

/* Takes one lane back; the engine gets a chain that is not done. No lane is lent any more. */
static void take_back(struct weir_session *session, struct weir_session_lane *lane)
{
	uint32_t i, count = lane->core.posted;
	uint64_t now_ns = count ? weir_now_ns() : 0;

	give_claims(&session->lanes, lane, count);
	lane->late = count ? lane->core.wrs[0] : NULL;
	for (i = 0; i < count; i++) {
		struct weir_request *request = lane->requests[i];

		weir_prepare_date(request, now_ns);
		weir_prepare_count(request);
		weir_list_add_tail(&session->live_requests, &request->link);
		lane->requests[i] = NULL;
	}
	weir_lane_return(&session->engine, &lane->core, now_ns);
}

/* Tells the engine what the device refused or completed late. The engine has all lanes back. */
static void catch_up(struct weir_session *session, struct weir_session_lane *lane)
{
	uint64_t now_ns = session->nic->window.now_ns;
	struct weir_wr *rest = lane->late;
	int i;

	if (lane->accepted) {
		lane->link->cq->in_flight += lane->accepted;
		rest = weir_in_flight_append(&lane->link->core.in_flight, rest, lane->accepted);
	}
	weir_session_link_give_back(session, rest);
	for (i = 0; i < lane->nr_wcs; i++)
		weir_session_link_handle_wc(session, lane->link->cq, &lane->wc[i], now_ns);
	lane->nr_wcs = 0;
	weir_session_links_publish_window(session);
	weir_combine_activate(&session->nic->combine, &session->active);
}

/* Return: requests posted on all lanes. From here on no thread posts. */
static uint64_t close_all(struct weir_session *session, bool was_lent[])
{
	struct weir_session_lanes *lanes = &session->lanes;
	uint64_t requests = 0;
	unsigned int i;

	__atomic_store_n(&lanes->are_lent, false, __ATOMIC_RELAXED);
	for (i = 0; i < lanes->count; i++) {
		struct weir_session_lane *lane = &lanes->lane[i];

		weir_spinlock_lock(&lane->lock);
		requests += publish_counts(session, lane);
		was_lent[i] = weir_lane_close(&lane->core);
		weir_spinlock_unlock(&lane->lock);
	}
	return requests;
}

/* Lanes that gained little are lent less often. */
static void set_pause(struct weir_session_lanes *lanes, uint64_t requests)
{
	if (requests >= GAIN_MIN)
		lanes->pause = 0;
	else if (lanes->pause < PAUSE_MAX)
		lanes->pause = 2 * lanes->pause + 1;
	__atomic_store_n(&lanes->paused, lanes->pause, __ATOMIC_RELAXED);
}

/* A late chain keeps its claims until no thread posts on any lane. */
static void recall(struct weir_session *session)
{
	struct weir_session_lanes *lanes = &session->lanes;
	bool was_lent[WEIR_CHANNEL_MAX];
	unsigned int i;

	weir_list_del(&lanes->link);
	set_pause(lanes, close_all(session, was_lent));
	for (i = 0; i < lanes->count; i++) {
		if (was_lent[i])
			take_back(session, &lanes->lane[i]);
	}
	for (i = 0; i < lanes->count; i++) {
		if (was_lent[i] && lanes->lane[i].late)
			catch_up(session, &lanes->lane[i]);
	}
}

void weir_lanes_recall(struct weir_nic *nic)
{
	while (!weir_list_is_empty(&nic->lent))
		recall(weir_list_entry(nic->lent.next, struct weir_session, lanes.link));
	nic->is_lent = false;
}

/* Down to weir_lanes_transfer(): with the lane's lock, and without nic->lock. */

/*
 * @may_wait: the caller holds no claim, so that a thread that holds one never waits. It gives up if
 * the lanes are wanted back: a chain that ended late keeps its claims until then.
 */
static bool claim(struct weir_session *session, const struct weir_req *req, bool may_wait)
{
	int tries;

	for (tries = 0; tries < CLAIM_TRIES; tries++) {
		if (weir_claims_take(session->lanes.claims, req->remote, req->length,
				     weir_req_modifies(req)))
			return true;
		if (!may_wait || !weir_lanes_are_lent(session) ||
		    weir_inbox_may_have(&session->nic->combine.inbox))
			break;
		if (tries >= CLAIM_SPINS)
			sched_yield();
	}
	return false;
}

/* Whether @t and the transfer after it are neighbours, in this order. */
static bool are_neighbours(const struct weir_transfer *t)
{
	return t[0].direction == t[1].direction && t[0].region == t[1].region &&
	       t[0].iovcnt == 1 && t[0].iov && t[0].offset + t[0].iov->length == t[1].offset;
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
	return weir_bounce_map_registered(session->nic, req, t->iov, t->iovcnt,
					  &request->bounce) &&
	       !weir_prepare_remote(req, t->region, t->offset) && weir_req_is_plain(req) &&
	       req->length <= session->engine.fragment_bytes &&
	       (!session->engine.selector || req->op == WEIR_OP_READ) &&
	       !weir_prepare_promise(request, &t->completion, NULL, true);
}

/*
 * Prepares the first transfers that one chain can have: of one queue, and as long as the window
 * allows. Return: their number.
 */
static uint32_t gather(struct weir_session *session, struct weir_session_lane *lane,
		       const struct weir_transfer *t, unsigned int count)
{
	uint32_t i, left = WEIR_LANE_BYTES, max = session->engine.chain_max;

	if (is_run(session, t, count))
		return 0;
	for (i = 0; i < count && i < max; i++) {
		struct weir_request *request = lane->requests[i];

		if (t[i].completion.queue != t[0].completion.queue ||
		    !prepare(session, request, &t[i]) || request->req.length > left ||
		    !claim(session, &request->req, !i))
			break;
		left -= (uint32_t)request->req.length;
	}
	return i;
}

static void fill(struct weir_session_lane *lane, uint32_t i, struct ibv_send_wr *out, bool is_last)
{
	struct weir_wr *wr = lane->core.wrs[i];

	weir_fragment_whole(wr, &lane->requests[i]->req);
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

/* Return: true if all @count WRs have succeeded; else the engine must get them. */
static bool post(struct weir_session_lane *lane, uint32_t count)
{
	struct ibv_send_wr wrs[WEIR_LANE_WRS], *bad = wrs;
	struct weir_cq *cq = lane->link->cq;
	uint32_t i;

	for (i = 0; i < count; i++)
		fill(lane, i, &wrs[i], i + 1 == count);
	lane->accepted = count;
	if (ibv_post_send(lane->link->id->qp, wrs, &bad)) {
		lane->accepted = (uint32_t)(bad - wrs);
		lane->core.posted = count;
		return false;
	}
	lane->nr_wcs = ibv_poll_cq(cq->ibv, cq->wcs_max < 2 ? 1 : 2, lane->wc);
	if (lane->nr_wcs == 1 && lane->wc->wr_id == (uintptr_t)lane->core.wrs[count - 1] &&
	    lane->wc->status == IBV_WC_SUCCESS && lane->wc->qp_num == lane->link->qp_num) {
		lane->nr_wcs = 0;
		return true;
	}
	lane->core.posted = count;
	return false;
}

static void count_chain(struct weir_session_lane *lane, uint32_t count)
{
	lane->count.requests += count;
	lane->count.doorbells++;
	lane->count.chains += count > 1;
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
	if (lane->nr_timed == WEIR_LANE_TIMED_MAX)
		return;
	weir_latency_begin(sampler, lane->requests[chosen]);
	after = count - chosen; /* and itself */
	sampler->left -= sampler->left < after ? sampler->left : after;
}

static void end_timing(struct weir_session_lane *lane, struct weir_request *request)
{
	request->is_timed = false;
	lane->timed[lane->nr_timed].ns = weir_now_ns() - request->submitted_ns;
	lane->timed[lane->nr_timed++].kind = weir_latency_kind(request->req.op);
}

/* Return: as weir_queue_put(). */
static uint32_t *finish(struct weir_session *session, struct weir_session_lane *lane,
			uint32_t count)
{
	const struct weir_completion *first = &lane->requests[0]->completion;
	struct weir_event events[WEIR_LANE_WRS];
	uint32_t i;

	lane->count.completions++;
	for (i = 0; i < count; i++) {
		struct weir_request *request = lane->requests[i];

		if (request->is_timed)
			end_timing(lane, request);
		if (request->req.op == WEIR_OP_READ)
			lane->count.bytes_read += request->req.length;
		else
			lane->count.bytes_written += request->req.length;
		events[i] = (struct weir_event){ request->completion.arg, 0 };
	}
	give_claims(&session->lanes, lane, count);
	if (first->queue)
		return weir_queue_put(first->queue, events, count);
	weir_waiter_done_at_once(first->arg);
	return NULL;
}

enum lane_step {
	LANE_ENDED, /* a chain is done */
	LANE_WAKES, /* so is one, and a thread waits for it */
	LANE_LATE, /* a chain is in flight: the caller must serve */
	LANE_NOT, /* the next transfer must take another way */
};

/*
 * Posts a chain. @posted: receives how many of the first transfers it has. @wakeups: as
 * weir_queue_put()
 */
static enum lane_step post_some(struct weir_session *session, struct weir_session_lane *lane,
				const struct weir_transfer *t, unsigned int count,
				uint32_t *posted, uint32_t **wakeups)
{
	uint32_t found = gather(session, lane, t, count);

	*posted = 0;
	if (!found)
		return LANE_NOT;
	if (t->completion.queue && weir_queue_reserve(t->completion.queue, found)) {
		give_claims(&session->lanes, lane, found);
		return LANE_NOT;
	}
	*posted = found;
	begin_timing(lane, found);
	if (!post(lane, found)) {
		count_chain(lane, found);
		weir_inbox_push(&session->nic->combine.inbox, &lane->link->returned.node);
		return LANE_LATE;
	}
	count_chain(lane, found);
	*wakeups = finish(session, lane, found);
	return *wakeups ? LANE_WAKES : LANE_ENDED;
}

/* Takes the lock of a lane: of the caller's CPU, or another one if that is taken. */
static struct weir_session_lane *lock_lane(struct weir_session_lanes *lanes)
{
	unsigned int i, mine = (unsigned int)sched_getcpu() % lanes->count;

	for (i = 0; i < lanes->count; i++) {
		struct weir_session_lane *lane = &lanes->lane[(mine + i) % lanes->count];

		if (weir_spinlock_trylock(&lane->lock))
			return lane;
	}
	weir_spinlock_lock(&lanes->lane[mine].lock);
	return &lanes->lane[mine];
}

/*
 * Posts on a lane until a thread must be woken, or the rest must take another way. When the last
 * request is done and the lane unlocked, the session may be gone.
 */
static enum lane_step use_lane(struct weir_session *session, const struct weir_transfer *t,
			       unsigned int count, unsigned int *done)
{
	struct weir_session_lane *lane = lock_lane(&session->lanes);
	struct weir_nic *nic = session->nic;
	enum lane_step step = LANE_NOT;
	uint32_t posted, *wakeups = NULL;
	bool must_serve = false;

	if (weir_lane_may_post(&lane->core, &nic->combine.inbox)) {
		do {
			step = post_some(session, lane, &t[*done], count - *done, &posted,
					 &wakeups);
			*done += posted;
		} while (step == LANE_ENDED && *done < count && weir_lanes_are_lent(session));
		must_serve = step == LANE_LATE || lane->count.doorbells >= LOAN_CHAINS ||
			     lane->nr_timed == WEIR_LANE_TIMED_MAX;
	}
	weir_spinlock_unlock(&lane->lock);
	if (wakeups)
		weir_futex_wake(wakeups, INT_MAX);
	if (must_serve)
		weir_combine_serve(nic, session);
	return step;
}

unsigned int weir_lanes_transfer(struct weir_session *session, const struct weir_transfer *t,
				 unsigned int count)
{
	unsigned int done = 0;

	/* Pairs with lend_all(): the lanes and their claims are made. */
	if (!__atomic_load_n(&session->lanes.are_lent, __ATOMIC_ACQUIRE))
		return 0;
	while (use_lane(session, t, count, &done) == LANE_WAKES && done < count)
		;
	return done;
}
