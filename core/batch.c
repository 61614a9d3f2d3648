/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A batch takes whatever is ready at this moment and never waits for more: alone, a
 * request is a batch of one. The first that is ready brings its neighbours along, merged,
 * and the next one begins the next WR of the chain. That ends at its limit, or once it
 * holds a fragment's worth of bytes: chaining saves doorbells for small requests, while
 * large ones would only queue up behind each other on one channel with others idle.
 *
 * A merged WR waits for as much room in the window as it wants rather than taking what
 * there is, or one small completion at a time would keep what waits in small pieces for
 * ever. It wants no more than a part of the window, so that meanwhile the rest is at work.
 */
#include "core/batch.h"
#include "core/cut.h"
#include "core/merge.h"

#define WINDOW_SHARE 4 /* a merged WR takes at most one part in this many of the window */

struct batch {
	struct weir_wr *first;
	struct weir_wr **tail;
	uint16_t count;
	uint32_t reqs;
	uint64_t bytes;
};

static void batch_append(struct batch *b, struct weir_wr *wr)
{
	*b->tail = wr;
	b->tail = &wr->next;
	b->count++;
	b->reqs += wr->nr_reqs;
	b->bytes += wr->length;
}

/* What the next WR will carry: a part of @req, or all of it and what lies beside it. */
static void plan(const struct weir_engine *e, struct weir_merge *m, struct weir_req *req)
{
	uint64_t share = e->window->bytes_max / WINDOW_SHARE;
	const struct weir_merge_limits limits = {
		.bytes_max = share < e->fragment_bytes ? (uint32_t)share : e->fragment_bytes,
		.sge_max = e->sge_max,
	};

	weir_merge_begin(m, req, weir_cut_length(req, e->fragment_bytes));
	if (e->merge)
		weir_merge_grow(m, &e->backlog.order, &limits);
}

/* Carries out a plan: makes it a WR, which must be free, on @channel. */
static struct weir_wr *wr_make(struct weir_engine *e, const struct weir_merge *m, uint16_t channel)
{
	struct weir_wr *wr = e->free_wrs;
	struct weir_req *req;

	e->free_wrs = wr->next;
	wr->channel = channel;
	wr->posted_ns = e->window->now_ns;
	e->channels.channel[channel].in_flight++;
	weir_cut_begin(wr, m->first);
	for (req = m->first; req; req = req->beside) {
		weir_cut_add(wr, req, weir_cut_length(req, e->fragment_bytes));
		if (req->posted < req->length)
			continue;
		weir_list_del(&req->link);
		req->state = WEIR_REQ_FLIGHT;
	}
	return wr;
}

/*
 * Posts from @ready on @channel what fits. Returns -EAGAIN when the window refused the
 * very first WR, and the engine stands in line; 0 otherwise. Who got something loses its
 * turn, and stands in line again, at its end, when it asks for more.
 */
static int batch_fill(struct weir_engine *e, struct batch *b, struct weir_list *ready,
		      uint16_t channel)
{
	uint32_t room = weir_channels_room(&e->channels, channel);
	int rc = 0;

	if (weir_window_must_wait(e->window, &e->waiter))
		return -EAGAIN;
	while (!weir_list_is_empty(ready) && e->free_wrs && room-- && b->count < e->chain_max &&
	       b->bytes < e->fragment_bytes) {
		struct weir_merge m;

		plan(e, &m, weir_backlog_first(ready));
		rc = weir_window_take(e->window, &e->waiter, m.bytes);
		if (rc) {
			e->waits++;
			weir_trace_note(e->trace, e->window->now_ns,
					&(struct weir_trace_record){ .what = WEIR_TRACE_WAIT,
								     .wrs = 1,
								     .reqs = m.nr_reqs,
								     .bytes = m.bytes });
			break;
		}
		batch_append(b, wr_make(e, &m, channel));
	}
	return b->count ? 0 : rc;
}

static struct weir_wr *wr_of_lone(struct weir_engine *e)
{
	struct weir_list *ready = &e->backlog.ready;
	struct weir_req *req = weir_backlog_first(ready);
	struct weir_wr *wr = e->free_wrs;
	uint16_t channel;

	if (ready->next != ready->prev || weir_list_is_empty(ready) ||
	    req->length > e->fragment_bytes || !wr)
		return NULL;
	channel = weir_channels_pick(&e->channels);
	if (channel == WEIR_CHANNEL_NONE || !weir_window_try(e->window, (uint32_t)req->length))
		return NULL;
	e->free_wrs = wr->next;
	e->channels.channel[channel].in_flight++;
	wr->channel = channel;
	wr->posted_ns = e->window->now_ns;
	weir_cut_whole(wr, req);
	weir_list_del(&req->link);
	req->state = WEIR_REQ_FLIGHT;
	return wr;
}

bool weir_batch_lone(struct weir_engine *e, struct weir_action *out)
{
	struct weir_wr *wr = wr_of_lone(e);

	if (!wr)
		return false;
	out->type = WEIR_ACTION_POST;
	out->wr = wr;
	out->channel = wr->channel;
	out->count = 1;
	return true;
}

bool weir_batch_next(struct weir_engine *e, struct weir_action *out)
{
	struct batch b = { .tail = &b.first };
	uint16_t channel = 0;
	int rc = 0;

	if (!weir_list_is_empty(&e->backlog.messages))
		rc = batch_fill(e, &b, &e->backlog.messages, channel);
	if (!rc && !b.count && !weir_list_is_empty(&e->backlog.ready)) {
		channel = weir_channels_pick(&e->channels);
		if (channel != WEIR_CHANNEL_NONE)
			rc = batch_fill(e, &b, &e->backlog.ready, channel);
	}
	if (!rc)
		weir_window_leave(&e->waiter);
	if (!b.count)
		return false;
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .what = WEIR_TRACE_POST, .wrs = b.count,
						     .reqs = b.reqs, .bytes = b.bytes,
						     .channel = channel });
	out->type = WEIR_ACTION_POST;
	out->wr = b.first;
	out->channel = channel;
	out->count = b.count;
	return true;
}
