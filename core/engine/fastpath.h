/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A request that comes alone (promise 5): it goes out at once, whole, and stands in no book, not
 * in the order, nor the backlog, nor among the deadlines. Most are done before anything else
 * happens, and that was all. If something does, it is entered in the books first, as if it had
 * come the long way, and all goes on from there.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_FASTPATH_H
#define WEIR_CORE_ENGINE_FASTPATH_H

#include "core/engine/fragment.h"
#include "core/engine/engine.h"
#include "core/engine/stall.h"

/* Whether @req can go, but for the window. With no other request each channel has room. */
static inline bool weir_fastpath_is_open(const struct weir_engine *e, const struct weir_req *req)
{
	return weir_engine_is_idle(e) && weir_channels_pickable(&e->channels) &&
	       req->op <= WEIR_OP_WRITE && req->nr_sge == 1 && req->length <= e->fragment_bytes &&
	       (!e->selector || req->op == WEIR_OP_READ);
}

/* Its WR: any, since none is in flight. */
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
	return wr;
}

/**
 * weir_fastpath_post() - the short way out, for a request that comes alone
 * @e: the engine
 * @req: as for weir_engine_submit(), and weir_req_check() accepts it; its deadline may be set until
 *	the next other call for @e. When it is on its way *kept until* a WEIR_ACTION_DONE returns it
 *
 * In place of weir_engine_submit(), and of the WEIR_ACTION_POST that would follow: the host knows
 * that no other request is about to be submitted, with which this one might be merged. It tells
 * no time, because the clock can be read when the request is on its way, and if it has not ended
 * then a weir_fastpath_start_timer() is owed; a window with a policy wants a weir_window_tick() before it.
 *
 * Return: the WR, to be posted on its channel, with a completion owed; NULL, and nothing has
 *	changed, when it must go the long way: the engine has other requests; it is not a read or
 *	a write of one piece of memory, at most a fragment long; it is a write, and some are
 *	unloaded; the window has no room, or others stand in line for it; no channel is up.
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
 * weir_fastpath_start_timer() - it stays in flight, and now the host has read the clock
 * @e: the engine
 * @wr: what the last weir_fastpath_post() returned
 * @now_ns: the time
 */
static inline void weir_fastpath_start_timer(struct weir_engine *e, const struct weir_wr *wr,
					     uint64_t now_ns)
{
	weir_window_tick(e->window, now_ns);
	weir_stall_start_timer(e, wr->channel, now_ns);
}

/**
 * weir_fastpath_succeeded() - its WR has completed, without an error
 * @e: the engine, of which this is the fastpath request; done then
 */
void weir_fastpath_succeeded(struct weir_engine *e);

/**
 * weir_fastpath_complete() - its WR has completed, without an error, before anything else happened
 * @e: the engine; its window has no policy
 * @wr: what the last weir_fastpath_post() returned
 *
 * In place of weir_engine_completed(), and of the WEIR_ACTION_DONE that would follow.
 *
 * Return: the request, the caller's again.
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
 * weir_fastpath_demote() - something else happens: enter the fastpath request, if there is one
 * @e: the engine
 */
void weir_fastpath_demote(struct weir_engine *e);

#endif
