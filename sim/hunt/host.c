/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host of the engines. Threads push requests to an inbox until a thread gets the lock, after a
 * random time, and submits and pulls. The host calls the engine when a deadline passes.
 */
#include "core/engine/fastpath.h"
#include "sim/hunt/hunt.h"

static void complete_unposted(struct hunt_request *r, int status)
{
	hunt_note(r->session->hunt, "end", r->number, status, 0);
	r->status = status;
	hunt_watch_end(r);
	r->has_ended = true;
}

static void post_chain(struct hunt_session *s, const struct weir_action *a)
{
	hunt_watch_post(s, a);
	hunt_note(s->hunt, "post", s->number, a->channel, a->count);
	hunt_qp_post(&s->qps[a->channel], a->wr);
}

static bool is_own_waiter(const struct hunt_session *s, const struct weir_list *link)
{
	unsigned int i;

	for (i = 0; i < WEIR_WINDOW_CLASSES; i++) {
		if (link == &s->engine.waiters[i].link)
			return true;
	}
	return false;
}

/*
 * The engine's next action, if any. No session may pass the sessions that wait in line, unless
 * classes decide.
 */
static bool next(struct hunt_session *s, struct weir_action *a)
{
	const struct weir_list *waiters = &s->hunt->window.waiters, *first = waiters->next;

	if (*s->hunt->why || !weir_engine_next(&s->engine, a))
		return false;
	hunt_expect(s->hunt,
		    a->type != WEIR_ACTION_POST || first == waiters || is_own_waiter(s, first) ||
			    s->hunt->window.classes,
		    "session %d posts before the first in line", s->number);
	return true;
}

static void carry_out(struct hunt_session *s, const struct weir_action *a)
{
	struct hunt_session *other;
	struct hunt *h = s->hunt;

	switch (a->type) {
	case WEIR_ACTION_POST:
		post_chain(s, a);
		break;
	case WEIR_ACTION_DONE:
		complete_unposted(hunt_request_of(a->req), a->req->status);
		break;
	case WEIR_ACTION_WAKE:
		other = container_of(a->engine, struct hunt_session, engine);
		sim_clock_in(&h->clock, &other->serve, hunt_while(&h->host));
		break;
	case WEIR_ACTION_FAIL:
		s->qps[a->channel].is_down = true;
		hunt_qp_fail(&s->qps[a->channel]);
		break;
	}
}

static void set_timer(struct hunt_session *s)
{
	uint64_t at_ns = weir_engine_deadline_ns(&s->engine), now_ns = hunt_now_ns(s->hunt);

	if (at_ns == WEIR_NEVER)
		sim_clock_cancel(&s->hunt->clock, &s->expire);
	else
		sim_clock_in(&s->hunt->clock, &s->expire,
			     at_ns > now_ns ? (at_ns - now_ns) * SIM_PS_PER_NS : 0);
}

void hunt_host_pull(struct hunt_session *s)
{
	struct weir_action action;

	weir_window_tick(&s->hunt->window, hunt_now_ns(s->hunt));
	while (next(s, &action))
		carry_out(s, &action);
	set_timer(s);
	hunt_watch_counts(s->hunt);
	hunt_watch_liveness(s);
}

static bool has_requests(const struct hunt_session *s)
{
	uint32_t i;

	for (i = 0; i < s->hunt->nr_requests; i++) {
		if (hunt_is_waiting(s, &s->hunt->requests[i]))
			return true;
	}
	return false;
}

/* Whether a request would have nothing to wait for. */
static bool may_go_alone(const struct hunt_session *s)
{
	return !s->hunt->window.wrs && weir_list_is_empty(&s->hunt->window.waiters) &&
	       !has_requests(s) && weir_channels_is_up(&s->engine.channels, 0);
}

static bool is_fastpath_shaped(const struct hunt_session *s, const struct weir_req *req)
{
	return req->op <= WEIR_OP_WRITE && req->nr_sge == 1 &&
	       req->length <= s->hunt->config.fragment_bytes &&
	       (req->op == WEIR_OP_READ || s->unload < 0);
}

static void submit_request(struct hunt_session *s, struct hunt_request *r)
{
	int rc = weir_engine_submit(&s->engine, &r->req, hunt_now_ns(s->hunt));

	hunt_expect(s->hunt, !r->refusal || rc == r->refusal,
		    "request %u is invalid, and the engine returns %d", r->number, rc);
	r->is_in = !rc;
	r->barriers = s->barriers;
	s->barriers += !rc && r->asked.op == WEIR_OP_BARRIER;
	if (rc)
		complete_unposted(r, rc);
}

/* The fast path, which is the host's choice. Returns whether the host took it. */
static bool post_by_fastpath(struct hunt_session *s, struct hunt_request *r, bool is_alone)
{
	struct weir_action action = { .type = WEIR_ACTION_POST, .count = 1 };
	struct hunt *h = s->hunt;

	if (hunt_dice(&h->host, 300) || weir_request_check(&r->req, h->config.fragment_bytes) ||
	    r->req.deadline_ns <= hunt_now_ns(h))
		return false;
	weir_window_tick(&h->window, hunt_now_ns(h));
	action.wr = weir_fastpath_post(&s->engine, &r->req);
	hunt_expect(h, action.wr || !is_alone || !is_fastpath_shaped(s, &r->req),
		    "request %u comes alone, and cannot take the fast path", r->number);
	if (!action.wr)
		return false;
	hunt_expect(h, is_fastpath_shaped(s, &r->req) && !has_requests(s),
		    "request %u takes the fast path, and does not come alone", r->number);
	hunt_expect(h, weir_list_is_empty(&h->window.waiters),
		    "request %u takes the fast path past the line", r->number);
	hunt_expect(h, !r->refusal, "request %u is invalid, and takes the fast path", r->number);
	weir_fastpath_start_timer(&s->engine, action.wr, hunt_now_ns(h));
	action.channel = action.wr->channel;
	r->is_in = true;
	r->barriers = s->barriers;
	post_chain(s, &action);
	return true;
}

static void submit_alone(struct hunt_session *s, struct hunt_request *r)
{
	bool is_alone = may_go_alone(s);
	struct weir_action action;

	if (post_by_fastpath(s, r, is_alone))
		return;
	submit_request(s, r);
	if (!is_alone || !r->is_in || r->asked.op == WEIR_OP_BARRIER)
		return;
	hunt_expect(s->hunt,
		    weir_engine_next(&s->engine, &action) && action.type == WEIR_ACTION_POST &&
			    action.wr->req == &r->req,
		    "request %u comes alone, and is not posted at once", r->number);
	if (!*s->hunt->why)
		carry_out(s, &action);
}

static void serve(struct sim_event *event)
{
	struct hunt_session *s = container_of(event, struct hunt_session, serve);
	struct weir_inbox_node *node = weir_inbox_take(&s->inbox), *after;

	if (node && !node->next) {
		submit_alone(s, container_of(node, struct hunt_request, node));
		node = NULL;
	}
	for (; node; node = after) {
		after = node->next;
		submit_request(s, container_of(node, struct hunt_request, node));
	}
	hunt_host_pull(s);
}

static void expire(struct sim_event *event)
{
	struct hunt_session *s = container_of(event, struct hunt_session, expire);

	hunt_note(s->hunt, "expire", s->number, 0, 0);
	s->expired_ns = hunt_now_ns(s->hunt);
	weir_engine_expired(&s->engine, hunt_now_ns(s->hunt));
	hunt_host_pull(s);
}

/* A wake-up while the lock is held joins the first. */
void hunt_host_wake(struct hunt_session *s)
{
	struct hunt *h = s->hunt;

	if (!sim_event_is_scheduled(&s->serve))
		sim_clock_in(&h->clock, &s->serve,
			     hunt_dice(&h->host, 500) ? 0 : hunt_while(&h->host));
}

static void wander(struct weir_window_learner *learner, const struct weir_window *w,
		   const struct weir_window_success *success, struct weir_window_bounds *limits)
{
	struct hunt *h = container_of(learner, struct hunt, wander);

	hunt_expect(h, success->in_flight == w->bytes && success->bytes <= success->in_flight,
		    "a learner hears that %u of %llu bytes in flight completed", success->bytes,
		    (unsigned long long)success->in_flight);
	hunt_expect(h, success->wrs_in_flight == w->wrs && w->wrs,
		    "a learner hears of %u work requests in flight", success->wrs_in_flight);
	hunt_expect(h, success->posted_ns <= success->now_ns, "a WR completes before it is posted");
	limits->bytes = sim_rng_below(&h->wear, 2 * h->window_bytes);
	limits->wrs = (uint32_t)sim_rng_below(&h->wear, 2 * (uint64_t)w->wrs_top);
}

static void set_learner(struct hunt *h, struct weir_window_learner *learner)
{
	const struct weir_window_bounds least = {
		h->config.fragment_bytes,
		1 + (uint32_t)sim_rng_below(&h->host, h->window.wrs_top),
	};

	hunt_expect(h, !weir_window_set_learner(&h->window, learner, &least),
		    "the window refuses a learner");
}

static enum weir_window_unit draw_unit(struct hunt *h)
{
	return sim_rng_below(&h->host, 2) ? WEIR_WINDOW_WRS : WEIR_WINDOW_BYTES;
}

static void window_begin(struct hunt *h)
{
	int rc;

	h->window_bytes = h->config.fragment_bytes * (1 + sim_rng_below(&h->host, 16));
	rc = weir_window_init(&h->window, h->window_bytes,
			      1 + (uint32_t)sim_rng_below(&h->host, 40));
	hunt_expect(h, !rc, "the window refuses its limits");
	switch (sim_rng_below(&h->host, 4)) {
	case 0:
		weir_window_delay_init(&h->delay, draw_unit(h));
		set_learner(h, &h->delay.learner);
		break;
	case 1:
		weir_window_knee_init(&h->knee, draw_unit(h));
		set_learner(h, &h->knee.learner);
		break;
	case 2:
		h->wander.completed = wander;
		set_learner(h, &h->wander);
		break;
	}
}

/* The last of several queue pairs may be used for unloading. */
static void unload_begin(struct hunt *h, struct hunt_session *s)
{
	struct weir_path_config config = { .nr_counters = HUNT_COUNTERS };

	/* One draw a statement: the compiler may evaluate an initializer in any order. */
	config.policy =
		(enum weir_path_policy)sim_rng_below(&h->paths, WEIR_PATH_POLICY_MEASURED + 1);
	config.bytes_max = HUNT_CELL_BYTES * (1 + (uint32_t)sim_rng_below(&h->paths, 8));
	config.hot_pages = 1 + (uint32_t)sim_rng_below(&h->paths, 6);
	s->unload = -1;
	if (s->nr_qps == 1 || !hunt_dice(&h->paths, 300))
		return;
	s->unload = s->nr_qps - 1;
	weir_path_init(&s->route, &config, s->counters);
	weir_engine_unload(&s->engine, &s->route, (uint16_t)s->unload);
}

/* In some hunts, the requests of all sessions have classes; some sessions ask for them. */
static void classes_begin(struct hunt *h, struct hunt_session *s)
{
	enum weir_window_class class;

	if (!h->has_classes || hunt_dice(&h->ranks, 400))
		return;
	class = (enum weir_window_class)sim_rng_below(&h->ranks, WEIR_WINDOW_CLASSES);
	weir_engine_join_classes(&s->engine, &h->classes, class,
				 1 + (uint16_t)sim_rng_below(&h->ranks, 4));
}

static void session_begin(struct hunt *h, int number)
{
	struct hunt_session *s = &h->sessions[number];
	uint16_t i;

	s->hunt = h;
	s->number = number;
	s->sent = -1;
	s->serve.happen = serve;
	s->expire.happen = expire;
	weir_inbox_init(&s->inbox);
	hunt_expect(h, !weir_engine_init(&s->engine, &h->config, &h->window, s->wrs, HUNT_WRS),
		    "engine %d refuses its settings", number);
	s->nr_qps = 1 + (int)sim_rng_below(&h->host, HUNT_CHANNELS);
	classes_begin(h, s);
	unload_begin(h, s);
	for (i = 0; i < s->nr_qps; i++)
		hunt_qp_init(&s->qps[i], s, i);
}

/* In some hunts, most requests have deadlines. */
static void haste_begin(struct hunt *h)
{
	bool is_hasty = hunt_dice(&h->waits, 200);

	h->haste = is_hasty ? 600 : 150;
	h->deadline_ns_max = is_hasty ? 1000 << sim_rng_below(&h->waits, 16) : 200000;
}

void hunt_host_begin(struct hunt *h)
{
	int i;

	h->nr_sessions = 1 + (int)sim_rng_below(&h->host, HUNT_SESSIONS);
	h->depth = 1 + (uint32_t)sim_rng_below(&h->host, 12);
	h->config.fragment_bytes = WEIR_FRAGMENT_BYTES_MIN << sim_rng_below(&h->host, 2);
	h->config.chain_max = 1 + (uint16_t)sim_rng_below(&h->host, WEIR_BATCH_MAX);
	h->config.sge_max = (uint8_t)(WEIR_SGE_MAX + sim_rng_below(&h->host, 25));
	h->config.merge = hunt_dice(&h->host, 700);
	h->config.seed = sim_rng_next(&h->host);
	if (hunt_dice(&h->wear, 300))
		h->config.sge_max = WEIR_SGE_MAX;
	if (hunt_dice(&h->wear, 300))
		h->config.stall_timeout_ns = 200000 + sim_rng_below(&h->wear, 800000);
	haste_begin(h);
	window_begin(h);
	h->has_classes = hunt_dice(&h->ranks, 300);
	weir_window_classes_init(&h->classes);
	for (i = 0; i < h->nr_sessions; i++)
		session_begin(h, i);
}
