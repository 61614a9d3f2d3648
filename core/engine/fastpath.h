/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fast path of a lone request. The request is posted at once, whole, without
 * entering the order, the backlog or the deadlines. Most lone requests complete before anything
 * else happens. Otherwise the request first enters the backlog, as if submitted normally.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_FASTPATH_H
#define WEIR_CORE_ENGINE_FASTPATH_H

#include "core/engine/fragment.h"
#include "core/engine/engine.h"
#include "core/engine/stall.h"

/*
 * Whether @req can take the fast path, apart from window space. Without other requests, every
 * channel has room.
 */
static inline bool weir_fastpath_is_open(const struct weir_engine *e, const struct weir_req *req)
{
	return weir_engine_is_idle(e) && weir_channels_pickable(&e->channels) &&
	       req->op <= WEIR_OP_WRITE && req->nr_sge == 1 && req->length <= e->fragment_bytes &&
	       (!e->selector || req->op == WEIR_OP_READ);
}

/* Fills in a WR for @req. Any WR will do, since none is in flight. */
static inline struct weir_wr *weir_fastpath_wr(struct weir_engine *e, struct weir_req *req)
{
	uint16_t channel = (uint16_t)__builtin_ctz(weir_channels_pickable(&e->channels));
	struct weir_wr *wr = e->free_wrs;

	e->free_wrs = wr->next;
	e->channels.channel[channel].in_flight = 1;
	weir_fragment_whole(wr, req);
	wr->posted_ns = e->window->now_ns;
	wr->channel = channel;
	wr->path = WEIR_PATH_UNDECIDED;
	wr->in_stream = false;
	wr->has_class = false;
	return wr;
}

/**
 * weir_fastpath_post() - post a lone request
 * @e: the engine
 * @req: as for weir_engine_submit(), and accepted by weir_request_check(). The deadline may be set
 *	until the next other call for @e. On success *kept until* a WEIR_ACTION_DONE returns the
 *	request
 *
 * Replaces weir_engine_submit() and the WEIR_ACTION_POST. For hosts about to submit no other
 * request, which could be merged with @req.
 *
 * The host can read the clock after the post. If the request has not completed by then, the host
 * owes a weir_fastpath_start_timer(). A window that learns needs a weir_window_tick() before this
 * call.
 *
 * Return: the WR, to be posted on its channel, with a completion owed. NULL, with nothing changed,
 *	if @req must take the normal path: the engine has other requests; @req is not a read or
 *	write of one SGE, at most a fragment long; @req is a write and the engine unloads writes;
 *	the window has no room, or others wait for room; or no channel is up.
 */
static inline struct weir_wr *weir_fastpath_post(struct weir_engine *e, struct weir_req *req)
{
	if (!weir_fastpath_is_open(e, req) ||
	    !weir_window_try_take(e->window, (uint32_t)req->length))
		return NULL;
	e->fastpath = req;
	return weir_fastpath_wr(e, req);
}

/**
 * weir_fastpath_start_timer() - the request stays in flight, and the host has read the clock
 * @e: the engine
 * @wr: the result of the last weir_fastpath_post()
 * @now_ns: the time
 */
static inline void weir_fastpath_start_timer(struct weir_engine *e, const struct weir_wr *wr,
					     uint64_t now_ns)
{
	weir_window_tick(e->window, now_ns);
	weir_stall_start_timer(e, wr->channel, now_ns);
}

/**
 * weir_fastpath_succeeded() - the WR of the fastpath request succeeded
 * @e: the engine, whose fastpath request is done now
 */
void weir_fastpath_succeeded(struct weir_engine *e);

/**
 * weir_fastpath_complete() - the WR succeeded before anything else happened
 * @e: the engine; its window has no learner
 * @wr: the result of the last weir_fastpath_post()
 *
 * Replaces weir_engine_completed() and the WEIR_ACTION_DONE.
 *
 * Return: the request, which is the caller's again.
 */
static inline struct weir_req *weir_fastpath_complete(struct weir_engine *e, struct weir_wr *wr)
{
	struct weir_req *req = e->fastpath;

	e->fastpath = NULL;
	req->status = 0;
	req->state = WEIR_REQ_DONE;
	e->channels.channel[wr->channel].in_flight--;
	weir_window_give(e->window, wr->length);
	wr->req = NULL;
	wr->next = e->free_wrs;
	e->free_wrs = wr;
	return req;
}

/**
 * weir_fastpath_demote() - move the fastpath request, if any, to the backlog
 * @e: the engine
 */
void weir_fastpath_demote(struct weir_engine *e);

#endif
