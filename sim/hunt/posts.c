/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks of the WRs that an engine posts: their turn, repeats, merging, path, and the window. */
#include "core/engine/merge.h"
#include "sim/hunt/hunt.h"

/* The engine has let go of @r, and may not have handed it back yet. */
static bool is_over(const struct hunt_request *r)
{
	return r->has_ended || r->req.state == WEIR_REQ_DONE;
}

/* When @r is posted, all requests that it must follow are over. */
static void watch_turn(const struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++) {
		const struct hunt_request *other = &h->requests[i];

		if (other == r || other->session != r->session || !other->is_in || is_over(other))
			continue;
		hunt_expect(h, other->barriers >= r->barriers,
			    "request %u is posted past a barrier that waits for %u", r->number, i);
		hunt_expect(h, i > r->number || !hunt_conflicts(other, r),
			    "request %u is posted before %u, which it overlaps, has ended",
			    r->number, i);
	}
}

/*
 * A failed request is posted again at most as often as its user allowed, and only when no part of
 * the failed attempt can still arrive.
 */
static void watch_repeat(struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;

	hunt_expect(h, !r->in_doubt, "request %u is posted while a part may still arrive",
		    r->number);
	hunt_expect(h, !r->is_doomed, "request %u is posted again after its channel was lost",
		    r->number);
	r->repeats += r->is_lost;
	r->is_lost = false;
	hunt_expect(h, r->repeats <= r->asked.retries, "request %u is repeated %u times of %u",
		    r->number, r->repeats, r->asked.retries);
}

/* Only whole reads or writes share a WR; a refused request is posted alone. */
static void watch_merged(struct hunt_session *s, const struct weir_wr *wr)
{
	const struct weir_req *req, *first = wr->req;

	hunt_expect(s->hunt, s->hunt->config.merge, "requests are merged while merging is off");
	hunt_expect(s->hunt, first->op <= WEIR_OP_WRITE && !wr->offset,
		    "a WR of several requests has op %d, offset %llu", first->op,
		    (unsigned long long)wr->offset);
	for (req = first; req; req = req->merge_next)
		hunt_expect(s->hunt,
			    req->op == first->op && req->rkey == first->rkey && req->wrs == 1 &&
				    !req->no_merge,
			    "request %u must not be merged", hunt_request_of(req)->number);
}

static bool is_whole(const struct weir_wr *wr)
{
	return wr->nr_reqs > 1 || (wr->length == wr->req->length && !wr->req->no_merge);
}

/* The engine tests few candidates for a neighbour. */
static bool is_crowded(struct hunt_session *s, uint64_t byte)
{
	struct hunt *h = s->hunt;
	int count = 0;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++)
		count += hunt_is_waiting(s, &h->requests[i]) && h->requests[i].req.remote <= byte &&
			 byte - h->requests[i].req.remote < h->requests[i].req.length;
	return count > WEIR_MERGE_LOOKS_MAX;
}

/* Two WRs of a chain could not have been one. */
static void watch_pieces(struct hunt_session *s, const struct weir_wr *a, const struct weir_wr *b)
{
	struct hunt *h = s->hunt;
	uint64_t share = h->window.bytes_max / 4, at = b->req->remote + b->offset;
	uint64_t bytes_max = share < h->config.fragment_bytes ? share : h->config.fragment_bytes;

	if (a->req->remote + a->offset + a->length != at || a->req->op != b->req->op ||
	    a->req->rkey != b->req->rkey || a->req->class != b->req->class ||
	    a->req->op > WEIR_OP_WRITE || !is_whole(a) || !is_whole(b))
		return;
	hunt_expect(h,
		    !h->config.merge || a->length + b->length > bytes_max ||
			    a->nr_sge + b->nr_sge > h->config.sge_max || is_crowded(s, at) ||
			    is_crowded(s, at - 1),
		    "requests %u and %u lie side by side, and are not merged",
		    hunt_request_of(a->req)->number, hunt_request_of(b->req)->number);
}

static void watch_wr(struct hunt_session *s, const struct weir_wr *wr)
{
	struct weir_req *req = wr->req;
	uint64_t at = req->remote, sum = 0;
	struct hunt *h = s->hunt;
	int i, count = 0;

	if (wr->nr_reqs > 1)
		watch_merged(s, wr);
	for (i = 0; i < wr->nr_sge; i++)
		sum += wr->sge[i].length;
	hunt_expect(h, sum == wr->length, "a WR's pieces have %llu bytes, and the WR has %u",
		    (unsigned long long)sum, wr->length);
	hunt_expect(h, wr->nr_sge <= h->config.sge_max, "a WR has %u pieces", wr->nr_sge);
	hunt_expect(h, wr->length <= h->config.fragment_bytes, "a WR is %u bytes", wr->length);
	for (; req; at += req->length, req = req->merge_next, count++) {
		hunt_expect(h, wr->nr_reqs == 1 || (req->remote == at && req->op == wr->req->op),
			    "request %u is merged with an unlike request",
			    hunt_request_of(req)->number);
		hunt_expect(h, hunt_is_waiting(s, hunt_request_of(req)),
			    "request %u is posted, and is not session %d's to do",
			    hunt_request_of(req)->number, s->number);
		watch_turn(hunt_request_of(req));
		watch_repeat(hunt_request_of(req));
		hunt_request_of(req)->posted[wr->channel]++;
	}
	hunt_expect(h, count == wr->nr_reqs, "a WR carries %d requests, and says %u", count,
		    wr->nr_reqs);
}

/* Only small, whole writes are unloaded: the buffer has a slot for each. */
static void watch_unloaded(struct hunt_session *s, const struct weir_wr *wr)
{
	const struct weir_req *req;

	hunt_expect(s->hunt,
		    wr->length <= s->route.config.bytes_max && wr->nr_sge <= WEIR_UNLOAD_SGE_MAX,
		    "%u bytes in %u pieces are unloaded", wr->length, wr->nr_sge);
	for (req = wr->req; req; req = req->merge_next)
		hunt_expect(s->hunt,
			    req->op == WEIR_OP_WRITE && req->posted == req->length &&
				    (wr->nr_reqs > 1 || req->length == wr->length),
			    "request %u is unloaded", hunt_request_of(req)->number);
	hunt_expect(s->hunt, s->route.config.policy != WEIR_PATH_POLICY_OFFLOAD,
		    "a write is unloaded under the offload policy");
}

void hunt_watch_post(struct hunt_session *s, const struct weir_action *a)
{
	const struct weir_wr *wr, *other;
	struct hunt *h = s->hunt;
	int count = 0;

	for (wr = a->wr; wr; wr = wr->next, count++) {
		watch_wr(s, wr);
		hunt_expect(h, wr->channel == a->channel, "a chain is for channels %u and %u",
			    wr->channel, a->channel);
		for (other = a->wr; other; other = other->next)
			watch_pieces(s, wr, other);
		if (a->channel == s->unload)
			watch_unloaded(s, wr);
	}
	hunt_expect(h, count == a->count && count <= h->config.chain_max,
		    "a chain is %d long, says %u, and may be %u", count, a->count,
		    h->config.chain_max);
	hunt_expect(h, h->window.bytes <= h->window.bytes_max && h->window.wrs <= h->window.wrs_max,
		    "more is posted than the window allows");
	hunt_expect(h, h->window.bytes_max <= h->window_bytes,
		    "the window allows %llu bytes of %llu", (unsigned long long)h->window.bytes_max,
		    (unsigned long long)h->window_bytes);
	hunt_expect(h, !s->qps[a->channel].is_down, "channel %u is used while it is down",
		    a->channel);
}
