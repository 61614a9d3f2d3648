/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks an engine that has done all its work. Each waiting request has a reason to wait, and the
 * engine will handle its deadline. Waiting for other requests to merge with is no reason, unless
 * many are in flight.
 */
#include <inttypes.h>

#include "sim/hunt/hunt.h"

bool hunt_is_waiting(const struct hunt_session *s, const struct hunt_request *r)
{
	return r->session == s && r->is_in && !r->has_ended;
}

bool hunt_is_posted(const struct hunt_request *r)
{
	uint16_t sum = 0;
	int i;

	for (i = 0; i < HUNT_CHANNELS; i++)
		sum = (uint16_t)(sum + r->posted[i]);
	return sum;
}

/* A late request that is posted is being flushed or may still arrive; any other ends at once. */
static void watch_late(const struct hunt_session *s, const struct hunt_request *r)
{
	int i;

	for (i = 0; i < s->nr_qps; i++)
		hunt_expect(s->hunt, !r->posted[i] || !hunt_qp_is_up(&s->qps[i]),
			    "request %u is late, and its channel %d goes on", r->number, i);
	hunt_expect(s->hunt, r->in_doubt || hunt_is_posted(r),
		    "request %u is late and waits for nothing", r->number);
}

/* Whether all requests that @r must follow are over. */
static bool has_turn(const struct hunt_request *r)
{
	const struct hunt *h = r->session->hunt;
	uint32_t i;

	for (i = 0; i < r->number; i++) {
		const struct hunt_request *before = &h->requests[i];

		if (hunt_is_waiting(r->session, before) &&
		    (before->barriers != r->barriers || hunt_overlaps(before, r)))
			return false;
	}
	return true;
}

/* Whether @s has room for more WRs. A session without room in the window stands in its line. */
static bool has_room(const struct hunt_session *s)
{
	uint32_t posted = 0;
	bool any = false;
	int i;

	for (i = 0; i < s->nr_qps; i++) {
		const struct hunt_qp *qp = &s->qps[i];

		posted += qp->count + qp->nr_unsent;
		any |= i != s->unload && hunt_qp_is_up(qp) && !qp->nr_unsent &&
		       qp->count < s->hunt->depth;
	}
	return any && posted < WEIR_STREAM_WRS && weir_list_is_empty(&s->hunt->window.waiters);
}

static void watch_idle(const struct hunt_session *s)
{
	struct hunt *h = s->hunt;
	uint32_t i;

	if (!has_room(s))
		return;
	for (i = 0; i < h->nr_requests; i++) {
		const struct hunt_request *r = &h->requests[i];

		hunt_expect(h,
			    !hunt_is_waiting(s, r) || r->asked.op > WEIR_OP_FADD || r->in_doubt ||
				    hunt_is_posted(r) || !has_turn(r),
			    "request %u could be posted, and is not", i);
	}
}

void hunt_watch_liveness(struct hunt_session *s)
{
	uint64_t least_ns = WEIR_NEVER, at_ns;
	struct hunt *h = s->hunt;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++) {
		const struct hunt_request *r = &h->requests[i];

		if (!hunt_is_waiting(s, r))
			continue;
		if (r->asked.deadline_ns <= s->expired_ns)
			watch_late(s, r);
		else if (r->asked.deadline_ns < least_ns)
			least_ns = r->asked.deadline_ns;
	}
	if (s->engine.stall_check_ns < least_ns)
		least_ns = s->engine.stall_check_ns;
	at_ns = weir_engine_deadline_ns(&s->engine);
	hunt_expect(h, at_ns == least_ns,
		    "the next deadline is at %" PRIu64 " ns, and the engine says %" PRIu64,
		    least_ns, at_ns);
	hunt_expect(h, at_ns >= hunt_now_ns(h),
		    "session %d was not looked after for %" PRIu64 " ns", s->number,
		    hunt_now_ns(h) - at_ns);
	watch_idle(s);
}
