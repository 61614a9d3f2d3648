/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "core/engine/fragment.h"
#include "sim/host/engine_host.h"

#define WCS_MAX 16
#define DRAIN_PS (200 * SIM_PS_PER_US)
#define WAIT_PS (300 * SIM_PS_PER_US) /* for a claim, or for room */
#define POLL_PS (50 * SIM_PS_PER_US) /* for an event */
#define TURN_PS (SIM_PS_PER_US) /* then a waiting thread looks at the other lanes, too */

static uint64_t now_ps(const struct sim_session *session)
{
	return session->weir->node->host.clock->now_ps;
}

static struct sim_cq *cq_of(struct sim_session *session, const struct sim_lane *lane)
{
	return &session->poller->cqs[lane - session->lanes.lane];
}

int sim_lanes_init(struct sim_session *session)
{
	const struct sim_load_settings *s = session->weir->settings;
	struct sim_lanes *lanes = &session->lanes;
	uint32_t i;

	if (!s->lanes || s->qps < 2)
		return 0;
	lanes->lane = calloc(s->qps, sizeof(*lanes->lane));
	lanes->claims = calloc(1, sizeof(*lanes->claims));
	if (!lanes->lane || !lanes->claims)
		return -ENOMEM;
	lanes->count = (uint32_t)s->qps;
	for (i = 0; i < lanes->count; i++)
		sim_lock_init(&lanes->lane[i].lock, false);
	return 0;
}

void sim_lanes_fini(struct sim_session *session)
{
	free(session->lanes.lane);
	free(session->lanes.claims);
}

/* Down to sim_lanes_recall(): with the host's lock held. */

static bool channels_are_still(const struct sim_session *session)
{
	uint32_t i;

	for (i = 0; i < session->lanes.count; i++) {
		if (session->channels[i].in_flight.count)
			return false;
	}
	return true;
}

static bool may_lend(const struct sim_session *session, struct weir_lane_share *share)
{
	return channels_are_still(session) && !weir_inbox_may_have(&session->weir->combine.inbox) &&
	       weir_lane_may_lend(&session->engine, session->lanes.count, share);
}

static bool drain(struct sim_thread *self, struct sim_session *session,
		  struct weir_lane_share *share)
{
	uint64_t until_ps = now_ps(session) + DRAIN_PS;

	session->lanes.state = SIM_LANES_SOON;
	while (now_ps(session) < until_ps) {
		sim_engine_host_poll(self, session->weir, session->poller);
		if (may_lend(session, share))
			return true;
	}
	session->lanes.state = SIM_LANES_NONE;
	return false;
}

static void lend_all(struct sim_thread *self, struct sim_session *session,
		     const struct weir_lane_share *share)
{
	struct sim_lanes *lanes = &session->lanes;
	uint32_t i;

	for (i = 0; i < lanes->count; i++) {
		struct sim_lane *lane = &lanes->lane[i];

		sim_lock_take(&lane->lock, self);
		lane->is_over = false;
		lane->loan = (struct weir_loan){ 0 };
		weir_lane_lend(&session->engine, &lane->core, (uint16_t)i, share);
		sim_lock_give(&lane->lock, self);
	}
	lanes->state = SIM_LANES_LENT;
	session->weir->lent = session;
}

void sim_lanes_offer(struct sim_thread *self, struct sim_session *session)
{
	struct sim_engine_host *weir = session->weir;
	struct sim_lanes *lanes = &session->lanes;
	struct weir_lane_share share;

	if (!weir->crowd || !lanes->count || weir->lent || session->engine.window->learner)
		return;
	weir->crowd--;
	if (!weir_loans_is_chance(&lanes->loans, session->reqs_posted, session->wrs_posted,
				  now_ps(session) / SIM_PS_PER_NS))
		return;
	if (may_lend(session, &share) || drain(self, session, &share))
		lend_all(self, session, &share);
	else
		weir_loans_failed(&lanes->loans);
}

static void give_claim(struct sim_session *session, const struct weir_req *req)
{
	weir_claims_give(session->lanes.claims, req->remote, req->length, weir_req_modifies(req));
}

/* No lane is lent any more. */
static void take_back(struct sim_session *session, struct sim_lane *lane)
{
	struct sim_engine_channel *channel = &session->channels[lane - session->lanes.lane];
	uint32_t i, count = lane->core.posted;
	struct weir_wr *first;

	for (i = 0; i < count; i++)
		give_claim(session, &lane->requests[weir_lane_slot(&lane->core, i)]->req);
	first = weir_lane_return(&session->engine, &lane->core, now_ps(session) / SIM_PS_PER_NS);
	if (!count)
		return;
	weir_in_flight_append(&channel->in_flight, first, count);
	weir_combine_activate(&session->weir->combine, &session->active);
}

void sim_lanes_recall(struct sim_thread *self, struct sim_engine_host *weir)
{
	struct sim_session *session = weir->lent;
	struct weir_loan result = { 0 };
	bool was_lent[WEIR_CHANNEL_MAX];
	uint32_t i;

	if (!session)
		return;
	weir->lent = NULL;
	session->lanes.state = SIM_LANES_NONE;
	for (i = 0; i < session->lanes.count; i++) {
		struct sim_lane *lane = &session->lanes.lane[i];

		sim_lock_take(&lane->lock, self);
		weir_loan_add(&result, &lane->loan);
		was_lent[i] = weir_lane_close(&lane->core);
		sim_lock_give(&lane->lock, self);
	}
	session->lanes.done += result.done;
	weir_loans_ended(&session->lanes.loans, &result, session->reqs_posted, session->wrs_posted,
			 now_ps(session) / SIM_PS_PER_NS);
	for (i = 0; i < session->lanes.count; i++) {
		if (was_lent[i])
			take_back(session, &session->lanes.lane[i]);
	}
}

/* Down to post(): with the lane's lock held. */

static void end_oldest(struct sim_thread *self, struct sim_session *session, struct sim_lane *lane)
{
	struct sim_request *request = lane->requests[weir_lane_pop(&lane->core)];

	lane->loan.done++;
	sim_thread_run(self, session->weir->settings->lane_ps);
	give_claim(session, &request->req);
	sim_engine_host_complete(self, request);
}

static void reap(struct sim_thread *self, struct sim_session *session, struct sim_lane *lane)
{
	struct sim_wc wcs[WCS_MAX];
	uint32_t i, got = sim_poll_cq(self, cq_of(session, lane), wcs, WCS_MAX);
	uintptr_t ended;

	for (i = 0; i < got; i++) {
		do {
			ended = (uintptr_t)lane->core.wrs[lane->core.oldest];
			end_oldest(self, session, lane);
		} while (ended != wcs[i].id);
	}
}

static void reap_others(struct sim_thread *self, struct sim_session *session,
			const struct sim_lane *mine)
{
	uint32_t i;

	for (i = 0; i < session->lanes.count; i++) {
		struct sim_lane *lane = &session->lanes.lane[i];

		if (lane == mine || !sim_lock_try(&lane->lock, self))
			continue;
		if (lane->core.is_lent && lane->core.posted)
			reap(self, session, lane);
		sim_lock_give(&lane->lock, self);
	}
}

static bool may_go_on(const struct sim_session *session)
{
	return session->lanes.state == SIM_LANES_LENT &&
	       !weir_inbox_may_have(&session->weir->combine.inbox);
}

static bool await_room(struct sim_thread *self, struct sim_session *session, struct sim_lane *lane,
		       uint64_t length)
{
	uint64_t until_ps = now_ps(session) + WAIT_PS;

	while (!weir_lane_room(&lane->core) || length > lane->core.bytes_max - lane->core.bytes) {
		if (!may_go_on(session) || now_ps(session) >= until_ps)
			return false;
		sim_await_cq(self, cq_of(session, lane), TURN_PS);
		reap(self, session, lane);
	}
	return true;
}

static bool claim(struct sim_thread *self, struct sim_session *session, struct sim_lane *lane,
		  const struct weir_req *req)
{
	uint64_t until_ps = now_ps(session) + WAIT_PS;
	bool has_waited = false;

	while (!weir_claims_take(session->lanes.claims, req->remote, req->length,
				 weir_req_modifies(req))) {
		if (!may_go_on(session) || now_ps(session) >= until_ps)
			return false;
		lane->loan.waited += !has_waited;
		has_waited = true;
		reap(self, session, lane);
		reap_others(self, session, lane);
	}
	return true;
}

static void post(struct sim_thread *self, struct sim_session *session, struct sim_lane *lane,
		 struct sim_request *request)
{
	uint32_t slot = weir_lane_slot(&lane->core, lane->core.posted);
	struct weir_wr *wr = lane->core.wrs[slot];

	lane->requests[slot] = request;
	lane->loan.chains++;
	weir_fragment_whole(wr, &request->req);
	wr->next = NULL;
	weir_lane_meet(&lane->core, request->req.remote, request->req.length);
	weir_lane_add(&lane->core, 1, wr->length);
	sim_thread_run(self, session->weir->settings->lane_ps);
	sim_engine_host_post(self, session, lane->core.channel, wr, 1);
	reap(self, session, lane);
}

static struct sim_lane *lock_lane(struct sim_thread *self, struct sim_session *session)
{
	struct sim_lanes *lanes = &session->lanes;
	uint32_t i, mine = (uint32_t)(self->core - self->host->cores) % lanes->count;

	for (i = 0; i < lanes->count; i++) {
		struct sim_lane *lane = &lanes->lane[(mine + i) % lanes->count];

		if (sim_lock_try(&lane->lock, self))
			return lane;
	}
	sim_lock_take(&lanes->lane[mine].lock, self);
	return &lanes->lane[mine];
}

static bool is_loan_over(const struct sim_session *session, struct sim_lane *lane)
{
	lane->loan.has_met = session->engine.merge && weir_lane_has_met(&lane->core);
	if (weir_loan_needs_time(&lane->loan))
		weir_loan_note_time(&lane->loan, now_ps(session) / SIM_PS_PER_NS);
	return weir_loans_is_over(&session->lanes.loans, &lane->loan);
}

static bool is_taken(const struct sim_session *session, const struct weir_req *req)
{
	return req->op <= WEIR_OP_WRITE && req->length <= WEIR_LANE_CHAIN_BYTES &&
	       req->length <= session->engine.fragment_bytes;
}

bool sim_lanes_submit(struct sim_thread *self, struct sim_request *request)
{
	struct sim_session *session = request->session;
	const struct weir_req *req = &request->req;
	struct sim_lane *lane;
	bool is_posted;

	while (session->lanes.state == SIM_LANES_SOON)
		sim_thread_run(self, TURN_PS / 10);
	if (session->lanes.state != SIM_LANES_LENT || !is_taken(session, req))
		return false;
	lane = lock_lane(self, session);
	is_posted = !lane->is_over &&
		    weir_lane_may_post(&lane->core, &session->weir->combine.inbox) &&
		    await_room(self, session, lane, req->length) && claim(self, session, lane, req);
	if (is_posted)
		post(self, session, lane, request);
	lane->is_over |= is_loan_over(session, lane);
	sim_lock_give(&lane->lock, self);
	if (lane->is_over)
		sim_engine_host_serve(self, session->weir, session);
	return is_posted;
}

bool sim_lanes_await(struct sim_thread *self, struct sim_session *session,
		     bool (*happened)(void *arg), void *arg)
{
	uint32_t mine = (uint32_t)(self->core - self->host->cores);
	uint64_t until_ps = now_ps(session) + POLL_PS;

	while (session->lanes.state == SIM_LANES_LENT && !happened(arg) &&
	       now_ps(session) < until_ps) {
		struct sim_lane *lane = &session->lanes.lane[mine % session->lanes.count];

		sim_await_cq(self, cq_of(session, lane), TURN_PS);
		reap_others(self, session, NULL);
	}
	return session->lanes.state != SIM_LANES_LENT || happened(arg);
}
