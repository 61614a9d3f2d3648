/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See engine_sim.h. */
#include <stdlib.h>

#include "core/engine/fastpath.h"
#include "core/engine/merge.h"
#include "tests/support/engine_sim.h"

#define MEMORY 0x100000ull /* a request's local memory begins here, times its number */
#define MIRROR 0x70000000ull /* local memory with the same layout as the remote memory */

struct sim_req {
	struct weir_req req;
	struct weir_req as_submitted;
	int engine;
	int epoch; /* barriers submitted before the request */
};

struct engine_sim {
	struct weir_window window;
	struct weir_window_policy policy;
	uint64_t dice;
	struct weir_engine engine[SIM_ENGINES];
	struct weir_wr wr[SIM_ENGINES * SIM_WRS];
	bool flying[SIM_ENGINES * SIM_WRS];
	bool is_up[SIM_ENGINES][SIM_CHANNELS];
	bool is_broken[SIM_ENGINES][SIM_CHANNELS];
	bool woken[SIM_ENGINES];
	bool held;
	uint64_t window_bytes; /* the maximum */
	struct weir_engine_config config;
	uint32_t depth;
	uint64_t now_ns;
	int barriers[SIM_ENGINES];
	struct sim_req *reqs[SIM_REQS];
	int nr_reqs;
	struct engine_sim_event *events;
	size_t nr_events, nr_read, room;
};

static const char *broken;

/* Record the first broken promise; later ones are only consequences. */
static void expect(bool holds, const char *promise)
{
	if (!holds && !broken)
		broken = promise;
}

const char *engine_sim_broken(void)
{
	return broken;
}

static void *must_allocate(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void tell(struct engine_sim *s, struct engine_sim_event event)
{
	if (s->nr_events == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->events = must_allocate(realloc(s->events, s->room * sizeof(*s->events)));
	}
	s->events[s->nr_events++] = event;
}

static int number_of(const struct engine_sim *s, const struct weir_req *req)
{
	int i;

	for (i = 0; i < s->nr_reqs; i++) {
		if (s->reqs[i] && &s->reqs[i]->req == req)
			return i;
	}
	expect(false, "a request that was handed back is not seen again");
	return -1;
}

/* Checks of the parts in flight. */

static bool orders(const struct weir_req *a, const struct weir_req *b)
{
	if (a->op == WEIR_OP_SEND || b->op == WEIR_OP_SEND)
		return false;
	return (weir_req_modifies(a) || weir_req_modifies(b)) &&
	       a->remote < b->remote + b->length && b->remote < a->remote + a->length;
}

static void check_order_of(const struct engine_sim *s, const struct weir_req *req)
{
	const struct sim_req *mine = container_of(req, struct sim_req, req);
	int i;

	for (i = 0; i < s->nr_reqs; i++) {
		const struct sim_req *other = s->reqs[i];

		if (!other || other == mine)
			continue;
		if (other->engine != mine->engine || other->req.state == WEIR_REQ_DONE)
			continue;
		if (i < number_of(s, req))
			expect(!orders(&other->as_submitted, &mine->as_submitted),
			       "nothing is posted before an earlier one that it conflicts with is "
			       "done");
		expect(other->epoch >= mine->epoch,
		       "nothing passes a barrier before all before it is done");
	}
}

static void check_order(const struct engine_sim *s, const struct weir_wr *wr)
{
	const struct weir_req *req;

	for (req = wr->req; req; req = req->merge_next)
		check_order_of(s, req);
}

/* The rest, from @offset on, of the entry at @offset in a list laid end to end. */
static struct weir_sge rest_at(const struct weir_sge *sge, int count, uint64_t offset)
{
	for (; count--; sge++) {
		if (offset < sge->length)
			return (struct weir_sge){ sge->addr + offset,
						  sge->length - (uint32_t)offset, sge->lkey };
		offset -= sge->length;
	}
	return (struct weir_sge){ 0 };
}

/* The bytes of @wr from @at on must be those of @req from @offset on. */
static void check_part(const struct weir_wr *wr, uint64_t at, const struct weir_req *req,
		       uint64_t offset, uint64_t length)
{
	const struct weir_req *as = &container_of(req, struct sim_req, req)->as_submitted;
	uint64_t i;

	for (i = 0; i < length;) {
		struct weir_sge is = rest_at(wr->sge, wr->nr_sge, at + i);
		struct weir_sge should = rest_at(as->sge, as->nr_sge, offset + i);

		expect(is.length && is.addr == should.addr && is.lkey == should.lkey,
		       "each WR has its part of the local memory");
		if (!is.length)
			return;
		i += is.length < should.length ? is.length : should.length;
	}
}

static void check_local_memory(const struct engine_sim *s, const struct weir_wr *wr)
{
	const struct weir_req *req;
	uint64_t at = 0;
	uint32_t i, sum = 0;

	for (i = 0; i < wr->nr_sge; i++)
		sum += wr->sge[i].length;
	expect(sum == wr->length, "the pieces of a WR add up to its length");
	expect(wr->length <= SIM_FRAGMENT, "no WR is longer than a fragment");
	expect(wr->nr_sge <= s->config.sge_max, "no WR has more pieces than the device takes");
	if (wr->nr_reqs == 1) {
		check_part(wr, 0, wr->req, wr->offset, wr->length);
		return;
	}
	for (req = wr->req; req; at += req->length, req = req->merge_next)
		check_part(wr, at, req, 0, req->length);
	expect(at == wr->length, "a merged WR is as long as its requests");
}

static void check_merged(const struct engine_sim *s, const struct weir_wr *wr)
{
	const struct weir_req *first = wr->req, *req;
	uint64_t at = first->remote;
	int count = 0;

	for (req = first; req; at += req->length, req = req->merge_next, count++) {
		expect(req->op == first->op && req->rkey == first->rkey,
		       "a merged WR does one thing to one region");
		expect(req->remote == at || wr->nr_reqs == 1, "merged requests lie side by side");
		expect(req->wrs == 1 || wr->nr_reqs == 1, "what is merged is posted nowhere else");
		expect(!req->no_merge || wr->nr_reqs == 1, "what was refused is tried alone");
	}
	expect(count == wr->nr_reqs, "a WR counts its requests");
	if (count == 1)
		return;
	expect(s->config.merge, "nothing is merged that should not be");
	expect(first->op == WEIR_OP_READ || first->op == WEIR_OP_WRITE, "atomics are not merged");
	expect(!wr->offset, "only whole requests are merged");
}

static bool is_whole(const struct weir_wr *wr)
{
	return wr->nr_reqs > 1 || (wr->length == wr->req->length && !wr->req->no_merge);
}

static uint64_t begin_of(const struct weir_wr *wr)
{
	return wr->req->remote + wr->offset;
}

/* The most requests examined for the neighbours of @a. */
static int crowd_at(const struct engine_sim *s, int engine, uint64_t byte)
{
	int i, count = 0;

	for (i = 0; i < s->nr_reqs; i++) {
		const struct sim_req *r = s->reqs[i];

		count += r && r->engine == engine && r->req.remote <= byte &&
			 byte - r->req.remote < r->req.length;
	}
	return count;
}

/* No two requests of a batch could have been merged. */
static void check_pieces(const struct engine_sim *s, int engine, const struct weir_wr *a,
			 const struct weir_wr *b)
{
	uint64_t share = s->window.bytes_max / 4;
	uint64_t bytes_max = share < SIM_FRAGMENT ? share : SIM_FRAGMENT;

	if (begin_of(a) + a->length != begin_of(b) || a->req->op != b->req->op ||
	    a->req->rkey != b->req->rkey || a->req->op > WEIR_OP_WRITE)
		return;
	if (!is_whole(a) || !is_whole(b) || a->length + b->length > bytes_max ||
	    a->nr_sge + b->nr_sge > s->config.sge_max)
		return;
	if (crowd_at(s, engine, begin_of(b)) > WEIR_MERGE_LOOKS_MAX ||
	    crowd_at(s, engine, begin_of(b) - 1) > WEIR_MERGE_LOOKS_MAX)
		return;
	expect(!s->config.merge, "what lies side by side is posted as one");
}

static void check_batch(const struct engine_sim *s, int engine, const struct weir_action *a)
{
	const struct weir_wr *one, *other;

	expect(a->count >= 1 && a->count <= s->config.chain_max, "a batch has its bounds");
	for (one = a->wr; one; one = one->next) {
		check_order(s, one);
		check_merged(s, one);
		check_local_memory(s, one);
		for (other = a->wr; other; other = other->next)
			check_pieces(s, engine, one, other);
	}
}

static void check_counts(const struct engine_sim *s)
{
	uint32_t wrs = 0, in_flight[SIM_ENGINES][SIM_CHANNELS] = { { 0 } };
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		if (!s->flying[i])
			continue;
		wrs++;
		bytes += s->wr[i].length;
		expect(++in_flight[i / SIM_WRS][s->wr[i].channel] <= s->depth,
		       "a channel holds no more than its depth");
	}
	expect(wrs == s->window.wrs && bytes == s->window.bytes,
	       "the window counts what is in flight");
	expect(wrs <= s->window.wrs_max && bytes <= s->window_bytes,
	       "no more is in flight than the window allows");
}

static bool has_any(const bool *channels)
{
	int i;

	for (i = 0; i < SIM_CHANNELS; i++) {
		if (channels[i])
			return true;
	}
	return false;
}

/* Whether @engine may wait until its host reports a broken channel as drained. */
static bool may_wait(const struct engine_sim *s, int engine)
{
	int i;

	if (!has_any(s->is_broken[engine]))
		return false;
	if (!has_any(s->is_up[engine]))
		return true;
	for (i = 0; i < s->nr_reqs; i++) {
		if (s->reqs[i] && s->reqs[i]->engine == engine && s->reqs[i]->req.in_doubt)
			return true;
	}
	return false;
}

static void check_progress(const struct engine_sim *s)
{
	int i, undone = 0;

	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		if (s->flying[i])
			return;
	}
	for (i = 0; i < s->nr_reqs; i++)
		undone += s->reqs[i] && !may_wait(s, s->reqs[i]->engine);
	expect(!undone, "while something is to be done something is in flight");
}

/* The host's pump. */

int engine_sim_carried(const struct engine_sim *s, int wr, int index, struct engine_sim_event *part)
{
	const struct weir_wr *w = &s->wr[wr];
	const struct weir_req *req = w->req;

	for (; req && index--;)
		req = req->merge_next;
	if (req)
		*part = (struct engine_sim_event){
			SIM_POSTED, wr / SIM_WRS,
			wr,	    number_of(s, req),
			w->channel, 0,
			w->offset,  w->nr_reqs > 1 ? (uint32_t)req->length : w->length
		};
	return w->nr_reqs;
}

static void tell_carried(struct engine_sim *s, int wr)
{
	struct engine_sim_event part = { 0 };
	int i;

	for (i = 0; i < engine_sim_carried(s, wr, i, &part); i++)
		tell(s, part);
}

static void post(struct engine_sim *s, int engine, const struct weir_action *a)
{
	struct weir_wr *wr = a->wr;
	int count = 0;

	expect(s->is_up[engine][a->channel], "nothing is posted on a channel that is down");
	check_batch(s, engine, a);
	expect(s->window.bytes <= s->window.bytes_max,
	       "nothing is posted that the window does not allow now");
	for (; wr; wr = wr->next, count++) {
		int i = (int)(wr - s->wr);

		expect(!s->flying[i], "a WR in flight is not used again");
		expect(wr->channel == a->channel, "a batch goes to one channel");
		s->flying[i] = true;
		tell_carried(s, i);
	}
	expect(count == a->count, "a batch is as long as it says");
}

static bool carries(const struct weir_wr *wr, const struct weir_req *req)
{
	const struct weir_req *carried = wr->req;

	while (carried && carried != req)
		carried = carried->merge_next;
	return carried;
}

static void hand_back(struct engine_sim *s, int engine, struct weir_req *req)
{
	int i, number = number_of(s, req);

	if (number < 0)
		return;
	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++)
		expect(!s->flying[i] || !carries(&s->wr[i], req),
		       "a request is handed back with nothing in flight");
	expect(s->reqs[number]->engine == engine, "a request comes back where it was submitted");
	tell(s, (struct engine_sim_event){ SIM_DONE, engine, -1, number, -1, req->status, 0, 0 });
	free(s->reqs[number]);
	s->reqs[number] = NULL;
}

static void act(struct engine_sim *s, int engine, const struct weir_action *a)
{
	switch (a->type) {
	case WEIR_ACTION_POST:
		post(s, engine, a);
		break;
	case WEIR_ACTION_DONE:
		hand_back(s, engine, a->req);
		break;
	case WEIR_ACTION_WAKE:
		s->woken[a->engine - s->engine] = true;
		break;
	case WEIR_ACTION_FAIL:
		s->is_up[engine][a->channel] = false;
		s->is_broken[engine][a->channel] = true;
		tell(s,
		     (struct engine_sim_event){ SIM_FAILED, engine, -1, -1, a->channel, 0, 0, 0 });
		break;
	}
}

static void pump(struct engine_sim *s, int engine)
{
	struct weir_action a;
	int i;

	s->woken[engine] = true;
	if (s->held)
		return;
	for (i = 0; i < SIM_ENGINES; i++) {
		if (!s->woken[i])
			continue;
		s->woken[i] = false;
		while (weir_engine_next(&s->engine[i], &a))
			act(s, i, &a);
		i = -1; /* start over: this engine may have woken an earlier one */
	}
	check_counts(s);
	check_progress(s);
}

void engine_sim_hold(struct engine_sim *s, int held)
{
	s->held = held;
	pump(s, 0);
}

struct engine_sim *engine_sim_new(uint64_t window_bytes, uint32_t window_wrs, uint32_t depth,
				  uint32_t chain_max, uint32_t sge_max, uint64_t seed)
{
	struct engine_sim *s = must_allocate(calloc(1, sizeof(*s)));
	int i;

	broken = NULL;
	s->depth = depth;
	s->dice = seed;
	s->window_bytes = window_bytes;
	s->config = (struct weir_engine_config){
		.fragment_bytes = SIM_FRAGMENT,
		.chain_max = chain_max ? (uint16_t)chain_max : WEIR_BATCH_MAX,
		.sge_max = sge_max ? (uint8_t)sge_max : WEIR_SGE_MAX,
		.merge = sge_max,
		.stall_timeout_ns = seed % 16, /* sometimes none */
		.seed = seed,
	};
	expect(!weir_window_init(&s->window, window_bytes, window_wrs), "the window is possible");
	for (i = 0; i < SIM_ENGINES; i++)
		expect(!weir_engine_init(&s->engine[i], &s->config, &s->window, &s->wr[i * SIM_WRS],
					 SIM_WRS),
		       "the settings are possible");
	return s;
}

static uint64_t move_window(struct weir_window_policy *policy, const struct weir_window *w,
			    const struct weir_window_sample *sample)
{
	struct engine_sim *s = container_of(policy, struct engine_sim, policy);

	expect(sample->in_flight == w->bytes && sample->bytes <= sample->in_flight,
	       "a policy is told what is in flight");
	expect(sample->posted_ns <= sample->now_ns, "nothing completes before it is posted");
	s->dice = s->dice * 6364136223846793005ull + 1442695040888963407ull;
	return (s->dice >> 33) % (2 * s->window_bytes);
}

void engine_sim_move_window(struct engine_sim *s)
{
	s->policy.completed = move_window;
	expect(!weir_window_set_policy(&s->window, &s->policy, SIM_FRAGMENT),
	       "the bounds are possible");
}

void engine_sim_free(struct engine_sim *s)
{
	int i;

	for (i = 0; i < s->nr_reqs; i++)
		free(s->reqs[i]);
	free(s->events);
	free(s);
}

/*
 * Local memory: adjacent to a neighbour's, under one of two keys; or separate, in up to three
 * pieces.
 */
static void lay_out(struct weir_req *req, int number)
{
	uint64_t at = MEMORY * (number + 1ull);
	uint32_t left = (uint32_t)req->length;
	int kind = number % 5;

	if (kind && left) {
		req->nr_sge = 1;
		req->sge[0].addr = kind == 1 ? at : MIRROR + req->remote;
		req->sge[0].length = left;
		req->sge[0].lkey = kind == 2 ? 8 : 9;
		return;
	}
	while (left) {
		uint32_t length = req->nr_sge == 2 || req->op > WEIR_OP_WRITE ? left :
										(left + 1) / 2;

		req->sge[req->nr_sge] = (struct weir_sge){ at, length, req->nr_sge };
		req->nr_sge++;
		at += length;
		left -= length;
	}
}

static bool has_requests(const struct engine_sim *s, int engine)
{
	int i;

	for (i = 0; i < s->nr_reqs; i++) {
		if (s->reqs[i] && s->reqs[i]->engine == engine)
			return true;
	}
	return false;
}

static bool is_alone(const struct engine_sim *s, int engine)
{
	int i;

	if (s->held || !weir_list_is_empty(&s->window.waiters))
		return false;
	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		if (s->flying[i])
			return false;
	}
	return !has_requests(s, engine);
}

static void check_no_batching_tax(const struct engine_sim *s, size_t before)
{
	const struct engine_sim_event *e = s->events + before;

	expect(s->nr_events == before + 1 && e->type == SIM_POSTED,
	       "a request that comes alone is posted at once, alone");
}

/* Whether a request that comes alone fits the fast path. */
static bool is_plain(const struct weir_req *req)
{
	return req->op <= WEIR_OP_WRITE && req->nr_sge == 1 && req->length <= SIM_FRAGMENT;
}

/* Every other request tries the fast path. */
static bool go_alone(struct engine_sim *s, int engine, struct weir_req *req, bool is_alone)
{
	struct weir_action a = { .type = WEIR_ACTION_POST, .count = 1 };

	if (s->held || s->nr_reqs % 2 || weir_request_check(req, SIM_FRAGMENT) ||
	    req->deadline_ns <= s->now_ns)
		return false;
	weir_window_tick(&s->window, s->now_ns);
	a.wr = weir_fastpath_post(&s->engine[engine], req);
	expect(a.wr || !is_alone || !is_plain(req), "who comes alone can go the short way");
	if (!a.wr)
		return false;
	expect(is_plain(req) && !has_requests(s, engine), "who goes the short way comes alone");
	expect(weir_list_is_empty(&s->window.waiters), "who comes alone passes nobody");
	weir_fastpath_start_timer(&s->engine[engine], a.wr, s->now_ns);
	a.channel = a.wr->channel;
	s->reqs[s->nr_reqs++] = container_of(req, struct sim_req, req);
	post(s, engine, &a);
	return true;
}

int engine_sim_submit(struct engine_sim *s, int engine, int op, uint64_t remote, uint32_t length,
		      int retries, int exclusive, uint64_t deadline_ns)
{
	struct sim_req *r = must_allocate(calloc(1, sizeof(*r)));
	bool alone = is_alone(s, engine) && has_any(s->is_up[engine]);
	size_t before = s->nr_events;
	int rc;

	if (s->nr_reqs == SIM_REQS)
		abort();
	r->engine = engine;
	r->epoch = s->barriers[engine];
	r->req.op = op;
	r->req.remote = remote;
	r->req.length = op == WEIR_OP_BARRIER ? 0 : length;
	r->req.retries = (uint8_t)retries;
	r->req.exclusive = exclusive;
	r->req.deadline_ns = deadline_ns;
	lay_out(&r->req, s->nr_reqs);
	r->as_submitted = r->req;
	if (!go_alone(s, engine, &r->req, alone)) {
		rc = weir_engine_submit(&s->engine[engine], &r->req, s->now_ns);
		if (rc) {
			free(r);
			return rc;
		}
		s->reqs[s->nr_reqs++] = r;
	}
	s->barriers[engine] += op == WEIR_OP_BARRIER;
	pump(s, engine);
	if (alone && op != WEIR_OP_BARRIER && length <= SIM_FRAGMENT)
		check_no_batching_tax(s, before);
	return s->nr_reqs - 1;
}

int engine_sim_cancel(struct engine_sim *s, int req)
{
	int engine, rc;

	if (req < 0 || req >= s->nr_reqs || !s->reqs[req])
		return -ENOENT;
	engine = s->reqs[req]->engine;
	rc = weir_engine_cancel(&s->engine[engine], &s->reqs[req]->req);
	pump(s, engine);
	return rc;
}

void engine_sim_complete(struct engine_sim *s, int wr, int status)
{
	struct weir_wc wc = { &s->wr[wr], status };
	int engine = wr / SIM_WRS;

	expect(s->flying[wr], "the test completes what is in flight");
	s->flying[wr] = false;
	weir_engine_completed(&s->engine[engine], &wc, s->now_ns);
	pump(s, engine);
}

void engine_sim_expire(struct engine_sim *s, uint64_t now_ns)
{
	int i;

	s->now_ns = now_ns;
	for (i = 0; i < SIM_ENGINES; i++) {
		weir_engine_expired(&s->engine[i], now_ns);
		expect(weir_engine_deadline_ns(&s->engine[i]) > now_ns,
		       "what is late has been ended");
		pump(s, i);
	}
}

int engine_sim_channel_up(struct engine_sim *s, int engine, int channel)
{
	int rc = weir_engine_channel_up(&s->engine[engine], (uint16_t)channel, s->depth);

	if (!rc) {
		s->is_up[engine][channel] = true;
		s->is_broken[engine][channel] = false;
	}
	pump(s, engine);
	return rc;
}

void engine_sim_channel_broken(struct engine_sim *s, int engine, int channel)
{
	s->is_up[engine][channel] = false;
	s->is_broken[engine][channel] = true;
	weir_engine_channel_broken(&s->engine[engine], (uint16_t)channel);
	pump(s, engine);
}

void engine_sim_channel_down(struct engine_sim *s, int engine, int channel)
{
	s->is_up[engine][channel] = false;
	s->is_broken[engine][channel] = false;
	weir_engine_channel_down(&s->engine[engine], (uint16_t)channel);
	pump(s, engine);
}

struct engine_sim_event engine_sim_event(struct engine_sim *s)
{
	if (s->nr_read < s->nr_events)
		return s->events[s->nr_read++];
	s->nr_read = s->nr_events = 0;
	return (struct engine_sim_event){ .type = SIM_NOTHING };
}

int engine_sim_in_flight(const struct engine_sim *s, int index, struct engine_sim_event *wr)
{
	int i, count = 0;

	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		if (!s->flying[i])
			continue;
		if (count++ == index)
			engine_sim_carried(s, i, 0, wr);
	}
	return count;
}

int engine_sim_undone(const struct engine_sim *s)
{
	int i, count = 0;

	for (i = 0; i < s->nr_reqs; i++)
		count += s->reqs[i] != NULL;
	return count;
}
