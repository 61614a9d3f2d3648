/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Drives the core's engine as the library does. A thread that submits takes the lock only if free;
 * the holder checks for new requests after it has given the lock back.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sim/host/engine_host.h"

#define POLL_WCS_MAX 256
#define CROWD 64 /* as in the library */
#define AWAIT_PS (SIM_PS_PER_US / 2) /* at one of several CQs */
#define WAKE_NS 5000 /* cost of a wake-up, until idle times were measured */
#define LEARNED_WRS_MIN (2 * WEIR_BATCH_MAX) /* as in the library */

/* weir_sge and sim_sge have the same layout. */
static_assert(sizeof(struct weir_sge) == sizeof(struct sim_sge) &&
		      offsetof(struct weir_sge, length) == offsetof(struct sim_sge, length) &&
		      offsetof(struct weir_sge, lkey) == offsetof(struct sim_sge, key),
	      "weir_sge is sim_sge");

static uint64_t now_ns(const struct sim_engine_host *weir)
{
	return weir->node->host.clock->now_ps / SIM_PS_PER_NS;
}

static enum sim_op op_of(const struct weir_req *req)
{
	switch (req->op) {
	case WEIR_OP_READ:
		return SIM_OP_READ;
	case WEIR_OP_WRITE:
		return SIM_OP_WRITE;
	case WEIR_OP_CAS:
		return SIM_OP_CAS;
	case WEIR_OP_FADD:
		return SIM_OP_FADD;
	default:
		return SIM_OP_SEND;
	}
}

static void fill_wr(struct sim_session *session, struct sim_engine_channel *channel,
		    const struct weir_wr *wr, struct sim_wr *out)
{
	const struct weir_req *req = wr->req;

	*out = (struct sim_wr){
		.id = (uintptr_t)wr,
		.op = (uint8_t)op_of(req),
		.nr_sge = wr->nr_sge,
		.sge = (const struct sim_sge *)wr->sge,
		.bytes = wr->length,
		.rkey = req->rkey,
		.remote = req->remote + wr->offset,
		.compare = req->compare,
		.operand = req->operand,
	};
	out->is_inline = (out->op == SIM_OP_WRITE || out->op == SIM_OP_SEND) &&
			 wr->length <= session->weir->node->host.profile->inline_max;
	out->is_silent = !weir_in_flight_signal(&channel->in_flight, !wr->next,
						(uint32_t)session->weir->settings->sq_depth / 2);
}

void sim_engine_host_post(struct sim_thread *self, struct sim_session *session, uint16_t number,
			  struct weir_wr *first, uint32_t count)
{
	struct sim_engine_channel *channel = &session->channels[number];
	struct sim_wr chain[WEIR_BATCH_MAX];
	struct weir_wr *wr = first;
	uint32_t i;

	for (i = 0; i < count; i++, wr = wr->next) {
		session->reqs_posted += wr->nr_reqs;
		fill_wr(session, channel, wr, &chain[i]);
	}
	session->chains++;
	session->wrs_posted += count;
	if (sim_post_send(self, &session->weir->node->device, channel->qp, chain, count) != count)
		abort(); /* the core posts no more than the channel holds */
}

static void post_batch(struct sim_thread *self, struct sim_session *session,
		       const struct weir_action *action)
{
	if (session->weir->peak_bytes < session->weir->window.bytes)
		session->weir->peak_bytes = session->weir->window.bytes;
	weir_in_flight_append(&session->channels[action->channel].in_flight, action->wr,
			      action->count);
	sim_engine_host_post(self, session, action->channel, action->wr, action->count);
}

static void mark_ready(struct sim_session *session)
{
	weir_combine_activate(&session->weir->combine, &session->active);
}

static void pay_for_waking(struct sim_thread *self)
{
	sim_thread_call(self, self->host->profile->wake_call_ps);
}

void sim_engine_host_complete(struct sim_thread *self, struct sim_request *request)
{
	if (request->done(request))
		pay_for_waking(self);
}

/* Carries out the engine's actions up to one post. Return: whether it posted. */
static bool pull_chain(struct sim_thread *self, struct sim_session *session)
{
	struct weir_action action;

	while (weir_engine_next(&session->engine, &action)) {
		switch (action.type) {
		case WEIR_ACTION_POST:
			post_batch(self, session, &action);
			return true;
		case WEIR_ACTION_DONE:
			sim_engine_host_complete(self,
						 container_of(action.req, struct sim_request, req));
			break;
		case WEIR_ACTION_WAKE:
			mark_ready(container_of(action.engine, struct sim_session, engine));
			break;
		case WEIR_ACTION_FAIL:
			abort(); /* no channel fails here */
		}
	}
	return false;
}

/* A completion retires its WR and all earlier WRs of the channel. */
static void retire_wrs(struct sim_thread *self, struct weir_wr *last)
{
	struct sim_session *session = container_of(last->req, struct sim_request, req)->session;
	struct sim_engine_channel *channel = &session->channels[last->channel];
	const struct weir_wc cqe = { .wr = last };
	struct weir_wc wc = { NULL };

	while (weir_in_flight_complete(&channel->in_flight, &cqe, &wc)) {
		sim_thread_run(self, wc.wr->nr_reqs * session->weir->settings->core_ps);
		weir_engine_completed(&session->engine, &wc, now_ns(session->weir));
	}
	mark_ready(session);
}

static uint32_t poll_cq(struct sim_thread *self, const struct sim_engine_host *weir,
			struct sim_cq *cq)
{
	struct sim_wc wcs[POLL_WCS_MAX];
	uint32_t i, taken = sim_poll_cq(self, cq, wcs, (uint32_t)weir->settings->poll_wcs);

	for (i = 0; i < taken; i++)
		retire_wrs(self, (struct weir_wr *)(uintptr_t)wcs[i].id);
	return taken;
}

/* Caller holds the lock. Return: completions seen. */
static uint32_t poll(struct sim_thread *self, struct sim_engine_host *weir,
		     struct sim_poller *poller)
{
	struct weir_list *link;
	uint32_t i, taken = 0;

	for (i = 0; i < poller->nr_cqs; i++)
		taken += poll_cq(self, weir, &poller->cqs[i]);
	while ((link = weir_combine_next(&weir->combine))) {
		while (pull_chain(self, weir_list_entry(link, struct sim_session, active)))
			;
	}
	return taken;
}

/* Caller holds the lock. */
static void take_inbox(struct sim_thread *self, struct sim_engine_host *weir)
{
	struct weir_inbox_node *node = weir_inbox_take(&weir->combine.inbox), *next;

	for (; node; node = next) {
		struct sim_request *r = container_of(node, struct sim_request, node);

		next = node->next;
		sim_thread_run(self, weir->settings->core_ps);
		if (weir_engine_submit(&r->session->engine, &r->req, now_ns(weir)))
			abort(); /* the load submits valid requests only */
		mark_ready(r->session);
	}
}

void sim_engine_host_poll(struct sim_thread *self, struct sim_engine_host *weir,
			  struct sim_poller *poller)
{
	take_inbox(self, weir);
	poll(self, weir, poller);
}

/* Gives the lock back. Return: as weir_combine_may_leave(). */
static bool unlock_and_may_leave(struct sim_thread *self, struct sim_engine_host *weir)
{
	bool has_more = weir_combine_has_more(&weir->combine);

	sim_lock_give(&weir->lock, self);
	return weir_combine_may_leave(&weir->combine.inbox, has_more);
}

static void serve_first(struct sim_thread *self, struct sim_engine_host *weir,
			const struct sim_session *mine)
{
	struct weir_list *link = weir_combine_next(&weir->combine);
	struct sim_session *session;

	if (!link)
		return;
	session = weir_list_entry(link, struct sim_session, active);
	if (pull_chain(self, session))
		mark_ready(session);
	else if (session == mine) {
		poll(self, weir, session->poller);
		sim_lanes_offer(self, session);
	}
}

void sim_engine_host_serve(struct sim_thread *self, struct sim_engine_host *weir,
			   const struct sim_session *mine)
{
	do {
		if (!sim_lock_try(&weir->lock, self)) {
			weir->crowd = CROWD;
			return; /* the holder checks for work after it gives the lock back */
		}
		sim_lanes_recall(self, weir);
		take_inbox(self, weir);
		serve_first(self, weir, mine);
	} while (!unlock_and_may_leave(self, weir));
}

void sim_engine_host_submit(struct sim_thread *self, struct sim_request *request)
{
	struct sim_engine_host *weir = request->session->weir;

	if (sim_lanes_submit(self, request))
		return;
	weir_inbox_push(&weir->combine.inbox, &request->node);
	sim_thread_run(self, self->host->profile->lock_ps); /* one atomic exchange */
	sim_engine_host_serve(self, weir, request->session);
}

static uint32_t poll_and_serve(struct sim_thread *self, struct sim_engine_host *weir,
			       struct sim_poller *poller)
{
	uint32_t taken;

	sim_lock_take(&weir->lock, self);
	if (weir->lent) { /* while the caller waited for the lock: leaves the lanes */
		sim_lock_give(&weir->lock, self);
		return 0;
	}
	sim_lanes_recall(self, weir);
	take_inbox(self, weir);
	taken = poll(self, weir, poller);
	if (!unlock_and_may_leave(self, weir))
		sim_engine_host_serve(self, weir, NULL);
	return taken;
}

/* Polls in a loop until a CQ has a completion. */
static void await_cqs(struct sim_thread *self, struct sim_poller *poller)
{
	uint64_t max_ps = poller->nr_cqs > 1 ? AWAIT_PS : SIM_NEVER;
	uint32_t i;

	for (i = 0; i < poller->nr_cqs && !poller->cqs[i].count; i++)
		;
	if (i == poller->nr_cqs)
		sim_await_cq(self, &poller->cqs[poller->turn++ % poller->nr_cqs], max_ps);
}

/* One round of the leader: first sleep if the poller's verdict says so, then poll. */
static void lead_once(struct sim_thread *self, struct sim_engine_host *weir,
		      struct sim_poller *poller)
{
	uint32_t i, taken;

	if (poller->poll.config.mode == WEIR_POLL_BUSY) {
		await_cqs(self, poller);
		poll_and_serve(self, weir, poller);
		return;
	}
	if (poller->verdict == WEIR_POLL_SLEEP) {
		sim_get_cq_event(self, &poller->events);
		poller->verdict = weir_poll_woken(&poller->poll, now_ns(weir));
	}
	if (poller->verdict == WEIR_POLL_ARM) {
		for (i = 0; i < poller->nr_cqs; i++)
			sim_req_notify_cq(self, &poller->cqs[i]);
	}
	taken = poll_and_serve(self, weir, poller);
	poller->verdict = weir_poll_polled(&poller->poll, taken, now_ns(weir));
}

static void hand_over(struct sim_thread *self, struct sim_poller *poller)
{
	struct sim_thread *next;

	poller->leader = NULL;
	if (weir_list_is_empty(&poller->followers))
		return;
	next = weir_list_entry(poller->followers.next, struct sim_thread, wait_link);
	sim_thread_wake(next);
	pay_for_waking(self);
}

/* Becomes the leader if there is none, until @happened. */
static void lead_or_follow(struct sim_thread *self, struct sim_engine_host *weir,
			   struct sim_poller *poller, bool (*happened)(void *arg), void *arg)
{
	while (!weir->lent && (!happened || !happened(arg))) {
		if (poller->leader && poller->leader != self) {
			weir_list_add_tail(&poller->followers, &self->wait_link);
			sim_thread_sleep(self, SIM_NEVER);
			weir_list_del(&self->wait_link);
			continue;
		}
		poller->leader = self;
		lead_once(self, weir, poller);
	}
	if (poller->leader == self)
		hand_over(self, poller);
}

/* The lanes have nothing for long: takes them back. */
static void serve_polled(struct sim_thread *self, struct sim_session *session)
{
	struct sim_engine_host *weir = session->weir;

	sim_lock_take(&weir->lock, self);
	sim_lanes_recall(self, weir);
	take_inbox(self, weir);
	poll(self, weir, session->poller);
	if (!unlock_and_may_leave(self, weir))
		sim_engine_host_serve(self, weir, NULL);
}

void sim_engine_host_lead(struct sim_thread *self, struct sim_engine_host *weir,
			  struct sim_poller *poller)
{
	lead_or_follow(self, weir, poller, NULL, NULL);
}

void sim_engine_host_await(struct sim_thread *self, struct sim_session *session,
			   bool (*happened)(void *arg), void *arg)
{
	while (!happened(arg)) {
		if (session->weir->lent && !sim_lanes_await(self, session, happened, arg))
			serve_polled(self, session);
		lead_or_follow(self, session->weir, session->poller, happened, arg);
	}
}

static int cqs_init(struct sim_poller *poller, const struct sim_load_settings *s)
{
	uint32_t i, count = s->lanes && s->qps > 1 ? (uint32_t)s->qps : 1;
	int rc = 0;

	poller->cqs = calloc(count, sizeof(*poller->cqs));
	if (!poller->cqs)
		return -ENOMEM;
	for (i = 0; i < count && !rc; i++, poller->nr_cqs++)
		rc = sim_cq_init(&poller->cqs[i], &poller->events,
				 (uint32_t)(s->qps * s->sq_depth / count));
	return rc;
}

static void poller_fini(struct sim_poller *poller)
{
	uint32_t i;

	for (i = 0; i < poller->nr_cqs; i++)
		sim_cq_fini(&poller->cqs[i]);
	free(poller->cqs);
}

static int poller_init(struct sim_poller *poller, struct sim_engine_host *weir, uint32_t number)
{
	const struct sim_load_settings *s = weir->settings;
	const struct weir_poll_config config = { (enum weir_poll_mode)s->poll,
						 (uint32_t)s->poll_wcs, (uint32_t)s->poll_retries,
						 100 };
	struct sim_host *host = &weir->node->host;

	weir_list_init(&poller->followers);
	sim_channel_init(&poller->events, &host->cores[number % host->nr_cores]);
	weir_idle_time_init(&poller->idle_time, WAKE_NS, WAKE_NS);
	weir_poll_init(&poller->poll, &config, &poller->idle_time, now_ns(weir));
	poller->verdict = weir_poll_woken(&poller->poll, now_ns(weir));
	return cqs_init(poller, s);
}

/* As the library's nic.c. */
static int window_init(struct sim_engine_host *weir, const struct sim_load_settings *s)
{
	bool is_of_wrs = s->admission == SIM_ADMISSION_DELAY_WRS ||
			 s->admission == SIM_ADMISSION_KNEE_WRS;
	bool is_delay = s->admission == SIM_ADMISSION_DELAY ||
			s->admission == SIM_ADMISSION_DELAY_WRS;
	enum weir_window_unit unit = is_of_wrs ? WEIR_WINDOW_WRS : WEIR_WINDOW_BYTES;
	struct weir_window_bounds least = { s->fragment, (uint32_t)s->window_wrs };
	int rc = weir_window_init(&weir->window, s->window, (uint32_t)s->window_wrs);

	if (rc || s->admission == SIM_ADMISSION_STATIC)
		return rc;
	if (is_of_wrs) {
		least.bytes = s->window;
		if (least.wrs > LEARNED_WRS_MIN)
			least.wrs = LEARNED_WRS_MIN;
	}
	weir_window_delay_init(&weir->delay, unit);
	weir_window_knee_init(&weir->knee, unit);
	return weir_window_set_learner(
		&weir->window, is_delay ? &weir->delay.learner : &weir->knee.learner, &least);
}

int sim_engine_host_init(struct sim_engine_host *weir, struct sim_node *node,
			 const struct sim_load_settings *settings, uint32_t nr_pollers)
{
	uint32_t i;
	int rc;

	*weir = (struct sim_engine_host){ .node = node, .settings = settings };
	sim_lock_init(&weir->lock, settings->lock == SIM_LOCK_MUTEX);
	weir_combine_init(&weir->combine);
	rc = window_init(weir, settings);
	weir->pollers = calloc(nr_pollers, sizeof(*weir->pollers));
	if (!weir->pollers)
		return -ENOMEM;
	weir->nr_pollers = nr_pollers;
	for (i = 0; i < nr_pollers && !rc; i++)
		rc = poller_init(&weir->pollers[i], weir, i);
	return rc;
}

void sim_engine_host_fini(struct sim_engine_host *weir)
{
	uint32_t i;

	for (i = 0; i < weir->nr_pollers; i++)
		poller_fini(&weir->pollers[i]);
	free(weir->pollers);
}

static int engine_init(struct sim_session *session, struct sim_world *world)
{
	const struct sim_load_settings *s = session->weir->settings;
	const struct weir_engine_config config = {
		.fragment_bytes = (uint32_t)s->fragment,
		.chain_max = (uint16_t)s->chain,
		.sge_max = (uint8_t)s->sge_max,
		.merge = s->merge,
		.seed = world->settings->seed,
	};
	uint32_t wrs = (uint32_t)(s->qps * s->sq_depth);

	session->wrs = calloc(wrs, sizeof(*session->wrs));
	if (!session->wrs)
		return -ENOMEM;
	return weir_engine_init(&session->engine, &config, &session->weir->window, session->wrs,
				wrs);
}

static int channels_init(struct sim_session *session, struct sim_world *world)
{
	const struct sim_load_settings *s = session->weir->settings;
	struct sim_node *peer = sim_world_next_peer(world, session->weir->node);
	struct sim_poller *poller = session->poller;
	uint16_t i;
	int rc = 0;

	for (i = 0; i < s->qps && !rc; i++) {
		session->channels[i].qp = sim_world_connect(world, session->weir->node, peer,
							    &poller->cqs[i % poller->nr_cqs], s,
							    (uint32_t)s->sq_depth);
		if (!session->channels[i].qp)
			return -ENOMEM;
		rc = weir_engine_channel_up(&session->engine, i, (uint32_t)s->sq_depth);
	}
	return rc;
}

int sim_session_init(struct sim_session *session, struct sim_engine_host *weir,
		     struct sim_world *world)
{
	int rc;

	*session = (struct sim_session){ .weir = weir };
	session->poller = &weir->pollers[weir->nr_sessions++ % weir->nr_pollers];
	weir_list_init(&session->active);
	rc = engine_init(session, world);
	if (!rc)
		rc = sim_lanes_init(session);
	return rc ? rc : channels_init(session, world);
}

void sim_session_fini(struct sim_session *session)
{
	sim_lanes_fini(session);
	free(session->wrs);
}
