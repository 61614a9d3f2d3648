/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A batch takes the requests that are ready now; a lone request is a batch of one. Only requests
 * beside a stream that keeps the NIC busy wait for company. This is Nagle's rule (RFC 896), with a
 * NIC's worth of WRs in flight instead of one. Requests behind a waiting request wait too, because
 * there is one queue.
 *
 * Each ready request is merged with its neighbours into one WR of the chain, unless too long to
 * merge (see merge.h). The chain ends at its limit, or with a fragment's worth of bytes. Chaining
 * saves doorbells for small requests; large requests would only queue on one channel while others
 * are idle.
 *
 * A merged WR waits for all the window space it wants; otherwise each small completion would
 * release another small piece. A WR wants at most a part of the window, so that the rest stays in
 * use.
 *
 * The path is chosen last, when the contents of a WR are known. All WRs of a batch take the path of
 * the first; a WR for the other path begins the next batch.
 */
#include "core/engine/batch.h"
#include "core/engine/fragment.h"
#include "core/engine/merge.h"
#include "core/engine/stall.h"

#define WINDOW_SHARE 4 /* a merged WR takes at most 1/WINDOW_SHARE of the window */

struct batch {
	struct weir_wr *first;
	struct weir_wr **tail;
	struct weir_merge_limits limits;
	unsigned int class;
	uint16_t channel;
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

static struct weir_merge_limits merge_limits(const struct weir_engine *e)
{
	uint64_t share = e->window->bytes_max / WINDOW_SHARE;

	return (struct weir_merge_limits){
		.bytes_max = share < e->fragment_bytes ? (uint32_t)share : e->fragment_bytes,
		.sge_max = e->sge_max,
	};
}

/* Plans the next WR: a part of @req, or all of @req with its neighbours. */
static void plan_wr(const struct weir_engine *e, struct weir_merge *m, struct weir_req *req,
		    const struct weir_merge_limits *limits)
{
	unsigned int class = weir_backlog_class_of(&e->backlog, req);

	weir_merge_begin(m, req, weir_fragment_length(req, e->fragment_bytes));
	if (e->merge && !weir_list_has_one(&e->backlog.ready[class]) &&
	    !weir_order_is_isolated(&e->backlog.order, &req->order))
		weir_merge_grow(m, &e->backlog.order, limits);
}

/* Counts a small write meant for unload that goes by @path instead. */
static void count_unload_full(struct weir_engine *e, const struct weir_req *req, uint8_t path)
{
	e->unload_full += path == WEIR_PATH_OFFLOAD && req->path == WEIR_PATH_UNLOAD;
}

/* Whether to hold @req back until its neighbours arrive: see engine.h. */
static bool should_gather(const struct weir_engine *e, const struct weir_req *req)
{
	return e->streaming >= WEIR_STREAM_WRS && req->op <= WEIR_OP_WRITE &&
	       req->order.in_stream && !req->posted && !req->no_merge &&
	       req->length < e->fragment_bytes && weir_merge_is_worthwhile(req) && e->merge;
}

static void add_part(struct weir_wr *wr, struct weir_req *req, uint32_t length)
{
	weir_fragment_add(wr, req, length);
	if (req->posted < req->length)
		return;
	weir_list_del(&req->link);
	req->state = WEIR_REQ_IN_FLIGHT;
}

/* Most WRs are one request with one SGE. */
static bool is_whole(const struct weir_merge *m)
{
	return m->nr_reqs == 1 && m->first->nr_sge == 1 && m->bytes == m->first->length;
}

static void add_whole(struct weir_wr *wr, struct weir_req *req)
{
	weir_fragment_whole(wr, req);
	req->posted = req->length;
	req->wrs++;
	weir_list_del(&req->link);
	req->state = WEIR_REQ_IN_FLIGHT;
}

/* Makes the planned WR on @channel. A free WR must exist. */
static struct weir_wr *make_wr(struct weir_engine *e, const struct weir_merge *m, uint16_t channel,
			       uint8_t path)
{
	struct weir_wr *wr = e->free_wrs;
	struct weir_req *req;

	e->free_wrs = wr->next;
	wr->channel = channel;
	wr->path = path;
	wr->posted_ns = e->window->now_ns;
	wr->has_class = e->window->classes;
	wr->in_stream = m->nr_reqs > 1 ||
			(m->first->op <= WEIR_OP_WRITE && m->first->order.in_stream);
	e->streaming += wr->in_stream;
	if (!e->channels.channel[channel].in_flight++)
		weir_stall_start_timer(e, channel, e->window->now_ns);
	count_unload_full(e, m->first, path);
	if (is_whole(m)) {
		add_whole(wr, m->first);
		return wr;
	}
	weir_fragment_begin(wr, m->first);
	for (req = m->first; req; req = req->merge_next)
		add_part(wr, req, weir_fragment_length(req, e->fragment_bytes));
	return wr;
}

/* Only whole, small writes. A WR of several requests contains each in full. */
static bool may_unload(const struct weir_engine *e, const struct weir_merge *m)
{
	return e->selector && m->first->op == WEIR_OP_WRITE &&
	       m->bytes <= e->selector->config.bytes_max && m->nr_sge <= WEIR_UNLOAD_SGE_MAX &&
	       (m->nr_reqs > 1 || m->first->length == m->bytes);
}

/* A probe measures its path; a WR that takes another path, or none, measures nothing. */
static void abandon_probe(struct weir_engine *e, uint8_t path)
{
	if (path & WEIR_PATH_PROBE)
		weir_path_abandon_probe(e->selector);
}

/*
 * The path of a small write, decided once per request. With the unload buffer full, the NIC's path.
 */
static uint8_t choose_path(struct weir_engine *e, struct weir_req *req)
{
	uint8_t path = req->path;

	if (path == WEIR_PATH_UNDECIDED)
		path = (uint8_t)weir_path_decide(e->selector, req->remote,
						 (enum weir_path_hint)req->hint, true,
						 e->window->now_ns);
	req->path = path & (WEIR_PATH_OFFLOAD | WEIR_PATH_UNLOAD);
	if (!(path & WEIR_PATH_UNLOAD) || weir_channels_room(&e->channels, e->unload))
		return path;
	abandon_probe(e, path);
	return WEIR_PATH_OFFLOAD;
}

static uint16_t channel_for(const struct weir_engine *e, uint8_t path)
{
	return path & WEIR_PATH_UNLOAD ? e->unload : weir_channels_pick(&e->channels);
}

/* Whether @channel has room for @class. The last WR is left to lower classes, so none starves. */
static bool channel_takes(const struct weir_engine *e, uint16_t channel, unsigned int class)
{
	uint32_t room = weir_channels_room(&e->channels, channel);

	return room > 1 || (room && (e->channels.channel[channel].wrs_max == 1 ||
				     !weir_backlog_has_ready_from(&e->backlog, class + 1)));
}

/* Whether the next WR fits @b, whose channel the first WR chose. */
static bool batch_takes(const struct weir_engine *e, const struct batch *b, uint8_t path)
{
	return b->channel != WEIR_CHANNEL_NONE && channel_takes(e, b->channel, b->class) &&
	       (b->channel == e->unload) == ((path & WEIR_PATH_UNLOAD) != 0);
}

static int batch_claim(struct weir_engine *e, const struct batch *b, const struct weir_merge *m)
{
	int rc;

	if (weir_window_try_take(e->window, m->bytes))
		return 0;
	rc = weir_window_take(e->window, &e->waiters[b->class], m->bytes);
	if (!rc)
		return 0;
	e->waits++;
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .event = WEIR_TRACE_WAIT,
						     .wrs = 1,
						     .reqs = m->nr_reqs,
						     .bytes = m->bytes });
	return rc;
}

/*
 * Posts from @ready as much as fits, on the batch's channel or on the channel of the first WR.
 * After a success the class loses its turn at the window and queues at the end for more.
 *
 * Return: -EAGAIN if the window refused the first WR and the class now waits for room; else 0.
 */
static int batch_fill(struct weir_engine *e, struct batch *b, struct weir_list *ready)
{
	struct weir_merge m;
	struct weir_req *req;
	uint8_t path;
	int rc = 0;

	if (weir_window_must_wait(e->window, &e->waiters[b->class]))
		return -EAGAIN;
	if (e->window->classes && e->fragment_bytes > WEIR_SCHED_SEGMENT_BYTES)
		e->fragment_bytes = WEIR_SCHED_SEGMENT_BYTES;
	b->limits = merge_limits(e);
	while (!weir_list_is_empty(ready) && e->free_wrs && b->count < e->chain_max &&
	       b->bytes < e->fragment_bytes) {
		req = weir_backlog_first(ready);
		if (should_gather(e, req))
			break;
		plan_wr(e, &m, req, &b->limits);
		path = may_unload(e, &m) ? choose_path(e, m.first) : WEIR_PATH_UNDECIDED;
		if (!b->count && b->channel == WEIR_CHANNEL_NONE)
			b->channel = channel_for(e, path);
		if (!batch_takes(e, b, path)) {
			abandon_probe(e, path);
			break;
		}
		rc = batch_claim(e, b, &m);
		if (rc) {
			abandon_probe(e, path);
			break;
		}
		batch_append(b, make_wr(e, &m, b->channel, path));
	}
	return b->count ? 0 : rc;
}

/* A whole request sent alone involved no decision. Messages are rare. */
static bool is_traced(const struct batch *b)
{
	const struct weir_req *req = b->first->req;

	return b->reqs > 1 || b->bytes < req->length || req->op == WEIR_OP_SEND;
}

static void trace_batch(struct weir_engine *e, const struct batch *b)
{
	if (!is_traced(b))
		return;
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .event = WEIR_TRACE_POST,
						     .wrs = b->count,
						     .reqs = b->reqs,
						     .bytes = b->bytes,
						     .channel = b->channel });
}

/* Messages are of the session's class, and go before its other requests. */
static void batch_fill_class(struct weir_engine *e, struct batch *b)
{
	struct weir_list *ready = &e->backlog.ready[b->class];
	int rc = 0;

	if (b->class == e->backlog.class && !weir_list_is_empty(&e->backlog.messages)) {
		b->channel = 0;
		rc = batch_fill(e, b, &e->backlog.messages);
	}
	if (!rc && !b->count && !weir_list_is_empty(ready)) {
		b->channel = WEIR_CHANNEL_NONE;
		rc = batch_fill(e, b, ready);
	}
	if (!rc)
		weir_window_leave(&e->waiters[b->class]);
}

bool weir_batch_next(struct weir_engine *e, struct weir_action *out)
{
	struct batch b = { .tail = &b.first };

	for (; b.class < WEIR_WINDOW_CLASSES && !b.count; b.class++)
		batch_fill_class(e, &b);
	if (!b.count)
		return false;
	trace_batch(e, &b);
	out->type = WEIR_ACTION_POST;
	out->wr = b.first;
	out->channel = b.channel;
	out->count = b.count;
	return true;
}
