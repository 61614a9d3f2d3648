/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What must be true, looked at from outside: the order of effects, each effect once, each end once
 * and truthful, the window's counts, progress. In the end a memory that takes the requests one at a
 * time, as they were submitted, must have held what each of them saw.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/hunt/hunt.h"

void hunt_expect(struct hunt *h, bool holds, const char *format, ...)
{
	va_list list;

	if (holds || *h->why)
		return;
	va_start(list, format);
	vsnprintf(h->why, sizeof(h->why), format, list);
	va_end(list);
}

static bool conflict(const struct hunt_request *a, const struct hunt_request *b)
{
	if (!a->cells || !b->cells || (a->asked.op == WEIR_OP_READ && b->asked.op == WEIR_OP_READ))
		return false;
	return a->asked.remote < b->asked.remote + b->asked.length &&
	       b->asked.remote < a->asked.remote + a->asked.length;
}

/* All that had to be over before @r takes effect is over, and nothing that comes after has. */
static void watch_order(const struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++) {
		const struct hunt_request *other = &h->requests[i];

		if (other == r || other->session != r->session || !other->is_in)
			continue;
		hunt_expect(h, other->has_ended || other->epoch >= r->epoch,
			    "request %u passes a barrier that waits for %u", r->number, other->number);
		if (!conflict(other, r))
			continue;
		hunt_expect(h, other->number > r->number || other->has_ended,
			    "request %u takes effect before %u, which it overlaps, has ended",
			    r->number, other->number);
		hunt_expect(h, other->number < r->number || !other->did,
			    "request %u takes effect after %u, which came later, and overlaps it",
			    r->number, other->number);
	}
}

/* Nobody waits for what has become of a message: it ends at once, outcome unknown. */
static bool may_come_later(const struct hunt_request *r)
{
	return r->asked.op == WEIR_OP_SEND &&
	       (r->status == -ECONNRESET || r->status == -ETIMEDOUT);
}

static void watch_once(const struct hunt_request *r, const struct hunt_wqe *wqe)
{
	uint32_t cell = r->first + wqe->offset / HUNT_CELL_BYTES;
	struct hunt *h = r->session->hunt;

	hunt_expect(h, !r->has_ended || may_come_later(r),
		    "request %u takes effect after it has ended", r->number);
	if (!r->may_repeat)
		hunt_expect(h, !(r->did >> (r->cells ? cell : 0) & 1),
			    "request %u takes effect twice", r->number);
}

void hunt_watch_effect(struct hunt_qp *qp, const struct hunt_wqe *wqe)
{
	struct hunt_session *s = qp->session;
	struct hunt *h = s->hunt;
	int i;

	for (i = 0; i < wqe->nr_reqs; i++) {
		const struct hunt_request *r = &h->requests[wqe->reqs[i]];

		watch_once(r, wqe);
		watch_order(r);
		if (r->asked.op != WEIR_OP_SEND)
			continue;
		hunt_expect(h, r->number > s->sent, "message %u arrives after %lld", r->number,
			    (long long)s->sent);
		s->sent = r->number;
	}
}

static void watch_wr(struct hunt *h, const struct weir_wr *wr)
{
	const struct weir_req *req = wr->req;
	uint64_t at = req->remote, sum = 0;
	int i, count = 0;

	for (i = 0; i < wr->nr_sge; i++)
		sum += wr->sge[i].length;
	hunt_expect(h, sum == wr->length, "a WR's pieces are %llu bytes, and it is %u",
		    (unsigned long long)sum, wr->length);
	hunt_expect(h, wr->nr_sge <= h->config.sge_max, "a WR has %u pieces", wr->nr_sge);
	hunt_expect(h, wr->length <= h->config.fragment_bytes, "a WR is %u bytes", wr->length);
	for (; req; at += req->length, req = req->beside, count++)
		hunt_expect(h, wr->nr_reqs == 1 || (req->remote == at && req->op == wr->req->op),
			    "request %u is merged with what it does not go with",
			    hunt_request_of(req)->number);
	hunt_expect(h, count == wr->nr_reqs, "a WR carries %d requests, and says %u", count,
		    wr->nr_reqs);
	hunt_expect(h, count == 1 || h->config.merge, "requests are merged that must not be");
}

/* Only small writes are unloaded, and whole ones: the buffer has a slot for each. */
static void watch_unloaded(struct hunt_session *s, const struct weir_wr *wr)
{
	const struct weir_req *req;

	hunt_expect(s->hunt, wr->length <= s->route.config.bytes_max &&
				     wr->nr_sge <= WEIR_UNLOAD_SGE_MAX,
		    "%u bytes in %u pieces are unloaded", wr->length, wr->nr_sge);
	for (req = wr->req; req; req = req->beside)
		hunt_expect(s->hunt, req->op == WEIR_OP_WRITE && req->posted == req->length &&
					     (wr->nr_reqs > 1 || req->length == wr->length),
			    "request %u is unloaded", hunt_request_of(req)->number);
	hunt_expect(s->hunt, s->route.config.policy != WEIR_ROUTE_OFFLOAD,
		    "what is to be offloaded is unloaded");
}

void hunt_watch_post(struct hunt_session *s, const struct weir_action *a)
{
	const struct weir_wr *wr;
	struct hunt *h = s->hunt;
	int count = 0;

	for (wr = a->wr; wr; wr = wr->next, count++) {
		watch_wr(h, wr);
		if (a->channel == s->unload)
			watch_unloaded(s, wr);
	}
	hunt_expect(h, count == a->count && count <= h->config.chain_max,
		    "a chain is %d long, says %u, and may be %u", count, a->count,
		    h->config.chain_max);
	hunt_expect(h, h->window.bytes <= h->window.bytes_max && h->window.wrs <= h->window.wrs_max,
		    "more is posted than the window allows");
	hunt_expect(h, !s->qps[a->channel].is_gone, "channel %u is gone, and used", a->channel);
}

void hunt_watch_counts(struct hunt *h)
{
	uint64_t bytes = 0;
	uint32_t wrs = 0;
	int i, j;

	for (i = 0; i < h->nr_sessions; i++) {
		for (j = 0; j < HUNT_WRS; j++) {
			const struct weir_wr *wr = &h->sessions[i].wrs[j];

			wrs += wr->req != NULL;
			bytes += wr->req ? wr->length : 0;
		}
	}
	hunt_expect(h, wrs == h->window.wrs && bytes == h->window.bytes,
		    "in flight are %llu bytes in %u WRs; the window says %llu in %u",
		    (unsigned long long)bytes, wrs, (unsigned long long)h->window.bytes,
		    h->window.wrs);
}

static uint64_t all_of(const struct hunt_request *r)
{
	if (r->asked.op == WEIR_OP_BARRIER)
		return 0;
	return r->cells ? ((1ull << r->cells) - 1) << r->first : 1;
}

/* Whether how @r ended is the truth. */
static bool is_true(const struct hunt_request *r)
{
	switch (r->status) {
	case 0:
		return r->did == all_of(r);
	case -ENOTCONN:
	case -ECANCELED:
		return !r->did;
	case -ETIMEDOUT:
		return r->asked.deadline_ns <= hunt_now_ns(r->session->hunt);
	case -EACCES:
		return r->is_bad;
	case -EFAULT:
		return r->is_unregistered;
	case -ECONNRESET:
		return r->session->has_failed;
	default:
		return false;
	}
}

void hunt_watch_end(struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;

	hunt_expect(h, !r->has_ended, "request %u ends twice", r->number);
	hunt_expect(h, is_true(r), "request %u ends with %d, which is not true", r->number,
		    r->status);
	hunt_expect(h, !r->is_in || !r->req.wrs, "request %u ends while it is in flight",
		    r->number);
}

static uint64_t effect_on(const struct hunt_request *r, uint64_t held)
{
	if (r->asked.op == WEIR_OP_FADD)
		return held + 1;
	if (r->asked.op == WEIR_OP_WRITE ||
	    (r->asked.op == WEIR_OP_CAS && held == r->asked.compare))
		return 1000 + r->number;
	return held;
}

/* A write that was repeated saw itself; of a read that failed nobody looks at what it saw. */
static bool is_looked_at(const struct hunt_request *r)
{
	return r->asked.op == WEIR_OP_CAS || r->asked.op == WEIR_OP_FADD ||
	       (r->asked.op == WEIR_OP_READ && !r->status);
}

static void one_at_a_time(struct hunt_session *s)
{
	uint64_t memory[HUNT_CELLS] = { 0 };
	struct hunt *h = s->hunt;
	uint32_t i, cell;

	for (i = 0; i < h->nr_requests; i++) {
		const struct hunt_request *r = &h->requests[i];

		for (cell = 0; cell < HUNT_CELLS; cell++) {
			if (r->session != s || !r->cells || !(r->did >> cell & 1))
				continue;
			hunt_expect(h, !is_looked_at(r) || r->seen[cell] == memory[cell],
				    "request %u saw what was not there in its turn", r->number);
			memory[cell] = effect_on(r, memory[cell]);
		}
	}
	hunt_expect(h, !memcmp(memory, s->memory, sizeof(memory)),
		    "the memory of session %d holds something else", s->number);
}

void hunt_watch_over(struct hunt *h)
{
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++)
		hunt_expect(h, h->requests[i].has_ended,
			    "nothing happens any more, and request %u has not ended", i);
	for (i = 0; i < (uint32_t)h->nr_sessions; i++)
		one_at_a_time(&h->sessions[i]);
}
