/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the requests of a session stand: behind a barrier, held by the order, ready,
 * in flight, done. All changes of a request's state are here.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_BACKLOG_H
#define WEIR_CORE_ENGINE_BACKLOG_H

#include "core/engine/request.h"

/**
 * struct weir_backlog - the requests of one session, from submit to done
 * @order: those past the barriers, messages excepted
 * @behind: barriers that have not passed, and what was submitted after them, in order
 * @ready: with parts to be posted, in order
 * @messages: the same for messages
 * @in_doubt: with something that was lost and may still arrive
 * @done: to be handed back, in order
 * @deadlines: all that have one, by it
 * @epoch: of the requests that are past the barriers
 * @epochs: barriers submitted so far, which is the epoch of the next request
 * @live: requests past the barriers and not done
 */
struct weir_backlog {
	struct weir_order order;
	struct weir_list behind;
	struct weir_list ready;
	struct weir_list messages;
	struct weir_list in_doubt;
	struct weir_list done;
	struct weir_list deadlines;
	uint64_t epoch;
	uint64_t epochs;
	uint64_t live;
};

/**
 * weir_backlog_init() - no requests
 * @b: to be initialised
 * @seed: any number
 */
void weir_backlog_init(struct weir_backlog *b, uint64_t seed);

/**
 * weir_backlog_add() - a request comes
 * @b: the backlog
 * @req: checked; *kept until* weir_backlog_pop_done() returns it
 */
void weir_backlog_add(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_add_posted() - a request comes that is posted already, whole, as one WR
 * @b: the backlog, with no requests
 * @req: as for weir_backlog_add()
 */
void weir_backlog_add_posted(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_add_done() - a request is done that never was in the backlog
 * @b: the backlog
 * @req: successful; *kept until* weir_backlog_pop_done() returns it
 */
void weir_backlog_add_done(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_end() - a request is to end, early or not
 * @b: the backlog
 * @req: any that is not done
 * @status: why; an earlier reason stays
 *
 * Nothing more of it is posted, and it is done as soon as none of its WRs is in flight, or in_doubt.
 */
void weir_backlog_end(struct weir_backlog *b, struct weir_req *req, int status);

/**
 * weir_backlog_repeat() - what was posted of a request is to be posted again
 * @req: one that is safe to repeat
 *
 * Nothing more of it is posted until none of its WRs is in flight, or in_doubt; then it is ready,
 * before all others, from its beginning.
 */
void weir_backlog_repeat(struct weir_req *req);

/**
 * weir_backlog_unpost() - the newest part of a request was not posted after all
 * @b: the backlog
 * @req: the request
 * @offset: where that part begins; what was posted before it stays so
 *
 * It is ready again, before all others, unless it ends, or is to begin anew, anyway.
 */
void weir_backlog_unpost(struct weir_backlog *b, struct weir_req *req, uint64_t offset);

/**
 * weir_backlog_settle() - one of a request's WRs is in flight no longer
 * @b: the backlog
 * @req: @req->wrs says how many still are
 */
void weir_backlog_settle(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_mark_in_doubt() - something of a request was lost on a channel, and may still arrive
 * @b: the backlog
 * @req: one with a WR that failed. Nothing more of it is posted; weir_backlog_end() or
 *	weir_backlog_repeat() says what becomes of it
 * @channel: which
 */
void weir_backlog_mark_in_doubt(struct weir_backlog *b, struct weir_req *req, uint16_t channel);

/**
 * weir_backlog_resolve_doubt() - nothing that was sent on a channel can arrive any more
 * @b: the backlog
 * @channel: which
 * @may_repeat: whether what went in_doubt there may be posted again; else it ends
 */
void weir_backlog_resolve_doubt(struct weir_backlog *b, uint16_t channel, bool may_repeat);

/**
 * weir_backlog_pass_barriers() - end the barriers with nothing before them
 * @b: the backlog
 *
 * What they held back is ready, or held by the order.
 */
void weir_backlog_pass_barriers(struct weir_backlog *b);

/**
 * weir_backlog_end_stranded() - no channel is left to post some requests on
 * @b: the backlog
 * @ready: @b->ready or @b->messages
 *
 * They end: with -ENOTCONN when nothing of them was sent, else with -ECONNRESET.
 *
 * Return: true when there were any.
 */
bool weir_backlog_end_stranded(struct weir_backlog *b, struct weir_list *ready);

/* The first of a non-empty list of requests linked by @link. */
static inline struct weir_req *weir_backlog_first(const struct weir_list *list)
{
	return weir_list_entry(list->next, struct weir_req, link);
}

/**
 * weir_backlog_pop_done() - hand a request back
 * @b: the backlog
 *
 * Return: the first that is done, the caller's again, or NULL.
 */
static inline struct weir_req *weir_backlog_pop_done(struct weir_backlog *b)
{
	struct weir_req *req;

	if (weir_list_is_empty(&b->done))
		return NULL;
	req = weir_backlog_first(&b->done);
	weir_list_del(&req->link);
	return req;
}

/* Whether it has no requests, but for those that are done. */
static inline bool weir_backlog_is_empty(const struct weir_backlog *b)
{
	return !b->live && weir_list_is_empty(&b->behind);
}

#endif
