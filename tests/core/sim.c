/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See sim.h. */
#include <stdlib.h>

#include "core/engine.h"
#include "tests/core/sim.h"

#define MEMORY 0x100000ull /* where each request's local memory begins, times its number */

struct sim_req {
	struct weir_req req;
	struct weir_req as_submitted;
	int engine;
	int epoch; /* barriers submitted before it */
};

struct sim {
	struct weir_window window;
	struct weir_engine engine[SIM_ENGINES];
	struct weir_wr wr[SIM_ENGINES * SIM_WRS];
	bool flying[SIM_ENGINES * SIM_WRS];
	bool is_up[SIM_ENGINES][SIM_CHANNELS];
	bool woken[SIM_ENGINES];
	uint32_t depth;
	uint64_t now_ns;
	int barriers[SIM_ENGINES];
	struct sim_req *reqs[SIM_REQS];
	int nr_reqs;
	struct sim_event *events;
	size_t nr_events, nr_read, room;
};

static const char *broken;

/* Notes the first promise that is broken; what follows from that one is of no interest. */
static void expect(bool holds, const char *promise)
{
	if (!holds && !broken)
		broken = promise;
}

const char *sim_broken(void)
{
	return broken;
}

static void *must_allocate(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void tell(struct sim *s, struct sim_event event)
{
	if (s->nr_events == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->events = must_allocate(realloc(s->events, s->room * sizeof(*s->events)));
	}
	s->events[s->nr_events++] = event;
}

static struct sim_req *sim_req_of(const struct weir_wr *wr)
{
	return container_of(wr->req, struct sim_req, req);
}

static int number_of(const struct sim *s, const struct weir_req *req)
{
	int i;

	for (i = 0; i < s->nr_reqs; i++) {
		if (s->reqs[i] && &s->reqs[i]->req == req)
			return i;
	}
	expect(false, "a request that was handed back is not seen again");
	return -1;
}

/* What must hold of the parts in flight. */

static bool orders(const struct weir_req *a, const struct weir_req *b)
{
	if (a->op == WEIR_OP_SEND || b->op == WEIR_OP_SEND)
		return false;
	return (weir_req_modifies(a) || weir_req_modifies(b)) &&
	       a->remote < b->remote + b->length && b->remote < a->remote + a->length;
}

static void check_order(const struct sim *s, const struct weir_wr *wr)
{
	const struct sim_req *mine = sim_req_of(wr);
	int i;

	for (i = 0; i < s->nr_reqs; i++) {
		const struct sim_req *other = s->reqs[i];

		if (!other || other == mine)
			continue;
		if (other->engine != mine->engine || other->req.state == WEIR_REQ_DONE)
			continue;
		if (i < number_of(s, wr->req))
			expect(!orders(&other->as_submitted, &mine->as_submitted),
			       "nothing is posted before an earlier one that it conflicts with is "
			       "done");
		expect(other->epoch >= mine->epoch,
		       "nothing passes a barrier before all before it is done");
	}
}

static void check_local_memory(const struct sim *s, const struct weir_wr *wr)
{
	uint64_t at = MEMORY * (number_of(s, wr->req) + 1ull) + wr->offset;
	uint32_t sum = 0;
	int i;

	for (i = 0; i < wr->nr_sge; i++) {
		expect(wr->sge[i].addr == at + sum, "each WR has its part of the local memory");
		sum += wr->sge[i].length;
	}
	expect(sum == wr->length, "the pieces of a WR add up to its length");
	expect(wr->length <= SIM_FRAGMENT, "no WR is longer than a fragment");
}

static void check_counts(const struct sim *s)
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
	expect(wrs <= s->window.wrs_max && bytes <= s->window.bytes_max,
	       "no more is in flight than the window allows");
}

static void check_progress(const struct sim *s)
{
	int i, undone = 0;

	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		if (s->flying[i])
			return;
	}
	for (i = 0; i < s->nr_reqs; i++)
		undone += s->reqs[i] != NULL;
	expect(!undone, "while something is to be done something is in flight");
}

/* The host's pump. */

static void post(struct sim *s, int engine, const struct weir_action *a)
{
	struct weir_wr *wr = a->wr;
	int count = 0;

	expect(s->is_up[engine][a->channel], "nothing is posted on a channel that is down");
	expect(a->count >= 1 && a->count <= WEIR_BATCH_MAX, "a batch has its bounds");
	for (; wr; wr = wr->next, count++) {
		int i = (int)(wr - s->wr);

		expect(!s->flying[i], "a WR in flight is not used again");
		expect(wr->channel == a->channel, "a batch goes to one channel");
		s->flying[i] = true;
		check_order(s, wr);
		check_local_memory(s, wr);
		tell(s, (struct sim_event){ SIM_POSTED, engine, i, number_of(s, wr->req),
					    wr->channel, 0, wr->offset, wr->length });
	}
	expect(count == a->count, "a batch is as long as it says");
}

static void hand_back(struct sim *s, int engine, struct weir_req *req)
{
	int i, number = number_of(s, req);

	if (number < 0)
		return;
	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++)
		expect(!s->flying[i] || s->wr[i].req != req,
		       "a request is handed back with nothing in flight");
	expect(s->reqs[number]->engine == engine, "a request comes back where it was submitted");
	tell(s, (struct sim_event){ SIM_DONE, engine, -1, number, -1, req->status, 0, 0 });
	free(s->reqs[number]);
	s->reqs[number] = NULL;
}

static void act(struct sim *s, int engine, const struct weir_action *a)
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
		tell(s, (struct sim_event){ SIM_FAILED, engine, -1, -1, a->channel, 0, 0, 0 });
		break;
	}
}

static void pump(struct sim *s, int engine)
{
	struct weir_action a;
	int i;

	s->woken[engine] = true;
	for (i = 0; i < SIM_ENGINES; i++) {
		if (!s->woken[i])
			continue;
		s->woken[i] = false;
		while (weir_engine_next(&s->engine[i], &a))
			act(s, i, &a);
		i = -1; /* look again: it may have woken one before it */
	}
	check_counts(s);
	check_progress(s);
}

struct sim *sim_new(uint64_t window_bytes, uint32_t window_wrs, uint32_t depth, uint64_t seed)
{
	const struct weir_engine_config config = { SIM_FRAGMENT, seed };
	struct sim *s = must_allocate(calloc(1, sizeof(*s)));
	int i;

	broken = NULL;
	s->depth = depth;
	expect(!weir_window_init(&s->window, window_bytes, window_wrs), "the window is possible");
	for (i = 0; i < SIM_ENGINES; i++)
		expect(!weir_engine_init(&s->engine[i], &config, &s->window, &s->wr[i * SIM_WRS],
					 SIM_WRS),
		       "the settings are possible");
	return s;
}

void sim_free(struct sim *s)
{
	int i;

	for (i = 0; i < s->nr_reqs; i++)
		free(s->reqs[i]);
	free(s->events);
	free(s);
}

/* Local memory in up to three pieces, one right behind the other. */
static void lay_out(struct weir_req *req, int number)
{
	uint64_t at = MEMORY * (number + 1ull);
	uint32_t left = (uint32_t)req->length;

	while (left) {
		uint32_t length =
			req->nr_sge == 2 || req->op > WEIR_OP_WRITE ? left : (left + 1) / 2;

		req->sge[req->nr_sge] = (struct weir_sge){ at, length, req->nr_sge };
		req->nr_sge++;
		at += length;
		left -= length;
	}
}

static bool is_alone(const struct sim *s, int engine)
{
	int i;

	if (!weir_list_is_empty(&s->window.line))
		return false;
	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		if (s->flying[i])
			return false;
	}
	for (i = 0; i < s->nr_reqs; i++) {
		if (s->reqs[i] && s->reqs[i]->engine == engine)
			return false;
	}
	return true;
}

static void check_no_batching_tax(const struct sim *s, size_t before)
{
	const struct sim_event *e = s->events + before;

	expect(s->nr_events == before + 1 && e->type == SIM_POSTED,
	       "a request that comes alone is posted at once, alone");
}

int sim_submit(struct sim *s, int engine, int op, uint64_t remote, uint32_t length, int retries,
	       uint64_t deadline_ns)
{
	struct sim_req *r = must_allocate(calloc(1, sizeof(*r)));
	bool alone = is_alone(s, engine);
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
	r->req.deadline_ns = deadline_ns;
	lay_out(&r->req, s->nr_reqs);
	r->as_submitted = r->req;
	rc = weir_engine_submit(&s->engine[engine], &r->req, s->now_ns);
	if (rc) {
		free(r);
		return rc;
	}
	s->reqs[s->nr_reqs++] = r;
	s->barriers[engine] += op == WEIR_OP_BARRIER;
	pump(s, engine);
	if (alone && op != WEIR_OP_BARRIER && length <= SIM_FRAGMENT)
		check_no_batching_tax(s, before);
	return s->nr_reqs - 1;
}

int sim_cancel(struct sim *s, int req)
{
	int engine, rc;

	if (req < 0 || req >= s->nr_reqs || !s->reqs[req])
		return -ENOENT;
	engine = s->reqs[req]->engine;
	rc = weir_engine_cancel(&s->engine[engine], &s->reqs[req]->req);
	pump(s, engine);
	return rc;
}

void sim_complete(struct sim *s, int wr, int status)
{
	struct weir_wc wc = { &s->wr[wr], status };
	int engine = wr / SIM_WRS;

	expect(s->flying[wr], "the test completes what is in flight");
	s->flying[wr] = false;
	weir_engine_completed(&s->engine[engine], &wc, s->now_ns);
	pump(s, engine);
}

void sim_expire(struct sim *s, uint64_t now_ns)
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

int sim_channel_up(struct sim *s, int engine, int channel)
{
	int rc = weir_engine_channel_up(&s->engine[engine], (uint16_t)channel, s->depth);

	if (!rc)
		s->is_up[engine][channel] = true;
	pump(s, engine);
	return rc;
}

void sim_channel_down(struct sim *s, int engine, int channel)
{
	s->is_up[engine][channel] = false;
	weir_engine_channel_down(&s->engine[engine], (uint16_t)channel);
	pump(s, engine);
}

struct sim_event sim_event(struct sim *s)
{
	if (s->nr_read < s->nr_events)
		return s->events[s->nr_read++];
	s->nr_read = s->nr_events = 0;
	return (struct sim_event){ .type = SIM_NOTHING };
}

int sim_in_flight(const struct sim *s, int index, struct sim_event *wr)
{
	int i, count = 0;

	for (i = 0; i < SIM_ENGINES * SIM_WRS; i++) {
		const struct weir_wr *w = &s->wr[i];

		if (!s->flying[i])
			continue;
		if (count++ == index)
			*wr = (struct sim_event){ SIM_POSTED, i / SIM_WRS,
						  i,	      number_of(s, w->req),
						  w->channel, 0,
						  w->offset,  w->length };
	}
	return count;
}

int sim_undone(const struct sim *s)
{
	int i, count = 0;

	for (i = 0; i < s->nr_reqs; i++)
		count += s->reqs[i] != NULL;
	return count;
}
