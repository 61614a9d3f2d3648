/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Invariants, checked from outside: the order of effects, each effect once, each request ends once
 * and with a true status, the window's counts, progress.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/hunt/hunt.h"

/* Upper bound for flushing a full queue pair and bringing it up again. */
#define LATE_NS_MAX 4000000

void hunt_expect(struct hunt *h, bool holds, const char *format, ...)
{
	va_list list;

	if (holds || *h->why)
		return;
	va_start(list, format);
	vsnprintf(h->why, sizeof(h->why), format, list);
	va_end(list);
}

bool hunt_overlaps(const struct hunt_request *a, const struct hunt_request *b)
{
	if (a->asked.op > WEIR_OP_FADD || b->asked.op > WEIR_OP_FADD ||
	    (a->asked.op == WEIR_OP_READ && b->asked.op == WEIR_OP_READ))
		return false;
	return a->asked.remote < b->asked.remote + b->asked.length &&
	       b->asked.remote < a->asked.remote + a->asked.length;
}

bool hunt_conflicts(const struct hunt_request *a, const struct hunt_request *b)
{
	const struct hunt_session *s = a->session;

	return hunt_overlaps(a, b) &&
	       hunt_memory_of(s, a->asked.rkey) == hunt_memory_of(s, b->asked.rkey);
}

/* Before @r takes effect, all requests that it must follow are over, and no later one has begun. */
static void watch_order(const struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++) {
		const struct hunt_request *other = &h->requests[i];

		if (other == r || other->session != r->session || !other->is_in)
			continue;
		hunt_expect(h, other->has_ended || other->barriers >= r->barriers,
			    "request %u passes a barrier that waits for %u", r->number,
			    other->number);
		if (!hunt_conflicts(other, r))
			continue;
		hunt_expect(h, other->number > r->number || other->has_ended,
			    "request %u takes effect before %u, which it overlaps, has ended",
			    r->number, other->number);
		hunt_expect(h, other->number < r->number || !other->effects,
			    "request %u takes effect after %u, which came later, and overlaps it",
			    r->number, other->number);
	}
}

/* A message may still arrive after it has ended with an unknown outcome. */
static bool may_come_later(const struct hunt_request *r)
{
	return r->asked.op == WEIR_OP_SEND &&
	       (r->status == -ECONNRESET || r->status == -ETIMEDOUT || r->status == -EIO);
}

/* Offset in @r of the part that @wqe covers, and its @length. A message starts at 0. */
static uint64_t part_of(const struct hunt_request *r, const struct hunt_wqe *wqe, uint64_t *length)
{
	uint64_t first = wqe->remote, end = wqe->remote + wqe->length;

	*length = wqe->length;
	if (r->asked.op == WEIR_OP_SEND)
		return 0;
	if (first < r->asked.remote)
		first = r->asked.remote;
	if (end > r->asked.remote + r->asked.length)
		end = r->asked.remote + r->asked.length;
	*length = end > first ? end - first : 0;
	return first - r->asked.remote;
}

/* Checks an effect on @r and counts its bytes. */
static uint64_t watch_once(struct hunt_request *r, const struct hunt_wqe *wqe)
{
	uint64_t length, at = part_of(r, wqe, &length), end = at + length;
	struct hunt *h = r->session->hunt;
	bool is_first = !memchr(r->did + at, 1, length) && (length || !r->effects);

	hunt_expect(h, !r->has_ended || may_come_later(r),
		    "request %u takes effect after it has ended", r->number);
	hunt_expect(h, r->asked.op == WEIR_OP_SEND || r->asked.rkey == wqe->rkey,
		    "request %u is done under the rkey %u, not its own, %u", r->number, wqe->rkey,
		    r->asked.rkey);
	hunt_expect(h, is_first || r->may_repeat, "request %u takes effect twice", r->number);
	r->did_bytes += is_first ? length : 0;
	for (; !is_first && at < end; at++)
		r->did_bytes += !r->did[at];
	memset(r->did + end - length, 1, length);
	r->effects++;
	return length;
}

void hunt_watch_effect(struct hunt_qp *qp, const struct hunt_wqe *wqe)
{
	struct hunt_session *s = qp->session;
	struct hunt *h = s->hunt;
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < wqe->nr_reqs; i++) {
		struct hunt_request *r = &h->requests[wqe->reqs[i]];

		bytes += watch_once(r, wqe);
		watch_order(r);
		if (r->asked.op != WEIR_OP_SEND)
			continue;
		hunt_expect(h, r->number > s->sent, "message %u arrives after %lld", r->number,
			    (long long)s->sent);
		s->sent = r->number;
	}
	hunt_expect(h, bytes == wqe->length, "of %u bytes %llu were asked for", wqe->length,
		    (unsigned long long)bytes);
}

static bool is_safe_to_repeat(const struct hunt_request *r)
{
	return r->asked.op == WEIR_OP_READ || (r->asked.op == WEIR_OP_WRITE && r->asked.exclusive);
}

void hunt_watch_complete(struct hunt_qp *qp, const struct hunt_wqe *wqe)
{
	int i;

	for (i = 0; i < wqe->nr_reqs; i++) {
		struct hunt_request *r = &qp->session->hunt->requests[wqe->reqs[i]];

		r->posted[qp->number]--;
		if (!wqe->status)
			continue;
		r->is_lost |= wqe->status == -ECONNRESET;
		r->is_unknown |= wqe->status == -ECONNRESET && !is_safe_to_repeat(r);
		if (weir_req_modifies(&r->asked) && wqe->status != -EACCES && !qp->is_gone)
			r->in_doubt |= 1u << qp->number;
	}
}

void hunt_watch_unsent(struct hunt_qp *qp, const struct weir_wr *wr)
{
	struct weir_req *req;

	for (req = wr->req; req; req = req->merge_next)
		hunt_request_of(req)->posted[qp->number]--;
}

void hunt_watch_found(struct hunt_qp *qp)
{
	struct hunt *h = qp->session->hunt;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++) {
		struct hunt_request *r = &h->requests[i];

		if (r->session != qp->session || !(r->in_doubt >> qp->number & 1))
			continue;
		r->in_doubt &= ~(1u << qp->number);
		r->is_doomed |= qp->is_gone;
	}
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

static bool is_all_done(const struct hunt_request *r)
{
	return r->did_bytes == r->asked.length && (r->effects || r->asked.op == WEIR_OP_BARRIER);
}

/* Whether the status of @r is true. */
static bool is_true(const struct hunt_request *r)
{
	if (r->refusal)
		return r->status == r->refusal;
	switch (r->status) {
	case 0:
		return is_all_done(r) && !r->is_unknown && !r->is_doomed;
	case -ENOTCONN:
	case -ECANCELED:
		return !r->effects;
	case -ETIMEDOUT:
		return r->asked.deadline_ns <= hunt_now_ns(r->session->hunt);
	case -EACCES:
		return r->is_bad;
	case -EFAULT:
		return r->is_unregistered;
	case -EIO:
		return r->session->has_failed;
	case -ECONNRESET:
		return r->session->has_failed && (!is_safe_to_repeat(r) || r->session->has_lost ||
						  r->repeats == r->asked.retries);
	default:
		return false;
	}
}

/* When a barrier is done, all earlier requests of the session have ended. */
static void watch_barrier(const struct hunt_request *r)
{
	const struct hunt *h = r->session->hunt;
	uint32_t i;

	for (i = 0; i < r->number; i++) {
		const struct hunt_request *before = &h->requests[i];

		hunt_expect(r->session->hunt, before->session != r->session || before->has_ended,
			    "barrier %u ends before the earlier request %u", r->number, i);
	}
}

void hunt_watch_end(struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;

	hunt_expect(h, !r->has_ended, "request %u ends twice", r->number);
	hunt_expect(h, is_true(r), "request %u ends with %d, a false status", r->number, r->status);
	hunt_expect(h,
		    r->asked.deadline_ns == WEIR_NEVER ||
			    hunt_now_ns(h) <= r->asked.deadline_ns + LATE_NS_MAX,
		    "request %u ends long after its deadline", r->number);
	if (r->asked.op == WEIR_OP_BARRIER && !r->status)
		watch_barrier(r);
	hunt_expect(h, !r->is_in || (!r->req.wrs && !hunt_is_posted(r)),
		    "request %u ends while it is in flight", r->number);
}

void hunt_watch_over(struct hunt *h)
{
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++)
		hunt_expect(h, h->requests[i].has_ended,
			    "the hunt is over, and request %u has not ended", i);
	for (i = 0; i < (uint32_t)h->nr_sessions; i++)
		hunt_memory_over(&h->sessions[i]);
}
