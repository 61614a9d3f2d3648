/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of each request of a session: behind a barrier, held by the order, ready, in flight,
 * done. Only this module changes the state.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_BACKLOG_H
#define WEIR_CORE_ENGINE_BACKLOG_H

#include "core/engine/request.h"
#include "core/sched/window.h"

/**
 * struct weir_backlog - the requests of one session, from submit to done
 * @order: requests past the barriers, except messages
 * @behind_barrier: barriers that have not passed and the requests behind them, in order
 * @class: of requests that name none: an enum weir_window_class
 * @ready: requests with parts to post, by class, in order
 * @messages: ready messages, in order
 * @in_doubt: requests with a lost WR that may still take effect
 * @done: requests to hand back, in order
 * @deadlines: requests with a deadline, sorted
 * @barriers_passed: barriers before the requests that may be in the order tree
 * @barriers: barriers submitted so far
 * @live: requests past the barriers and not done
 */
struct weir_backlog {
	struct weir_order order;
	struct weir_list behind_barrier;
	uint8_t class;
	struct weir_list ready[WEIR_WINDOW_CLASSES];
	struct weir_list messages;
	struct weir_list in_doubt;
	struct weir_list done;
	struct weir_list deadlines;
	uint64_t barriers_passed;
	uint64_t barriers;
	uint64_t live;
};

/**
 * weir_backlog_init() - initialise an empty backlog
 * @b: to be initialised
 * @seed: any number
 */
void weir_backlog_init(struct weir_backlog *b, uint64_t seed);

/**
 * weir_backlog_add() - add a request
 * @b: the backlog
 * @req: checked; *kept until* weir_backlog_pop_done() returns the request
 */
void weir_backlog_add(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_add_posted() - add a request already posted whole as one WR
 * @b: the backlog, without requests
 * @req: as for weir_backlog_add()
 */
void weir_backlog_add_posted(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_add_done() - add a request that completed outside the backlog
 * @b: the backlog
 * @req: successful; *kept until* weir_backlog_pop_done() returns the request
 */
void weir_backlog_add_done(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_end() - end a request, early or not
 * @b: the backlog
 * @req: any request that is not done
 * @status: the result, unless an earlier status is set
 *
 * Nothing more of @req is posted. The request is done once no WR is in flight or in doubt.
 */
void weir_backlog_end(struct weir_backlog *b, struct weir_req *req, int status);

/**
 * weir_backlog_repeat() - post a request again from its beginning
 * @req: a request that is safe to repeat
 *
 * Posting stops until no WR of @req is in flight or in doubt. Then @req becomes ready, before all
 * others.
 */
void weir_backlog_repeat(struct weir_req *req);

/**
 * weir_backlog_unpost() - undo the newest part of a request, which was not posted
 * @b: the backlog
 * @req: the request
 * @offset: where the part begins; earlier parts stay posted
 *
 * @req becomes ready again, before all others, unless @req is ending or will be repeated from its
 * beginning.
 */
void weir_backlog_unpost(struct weir_backlog *b, struct weir_req *req, uint64_t offset);

/**
 * weir_backlog_settle() - one WR of a request is no longer in flight
 * @b: the backlog
 * @req: with @req->wrs already updated
 */
void weir_backlog_settle(struct weir_backlog *b, struct weir_req *req);

/**
 * weir_backlog_mark_in_doubt() - a WR was lost on a channel and may still take effect
 * @b: the backlog
 * @req: the request of the failed WR. Posting stops; weir_backlog_end() or weir_backlog_repeat()
 *	then decides how @req goes on
 * @channel: number of the channel
 */
void weir_backlog_mark_in_doubt(struct weir_backlog *b, struct weir_req *req, uint16_t channel);

/**
 * weir_backlog_resolve_doubt() - no WR sent on a channel can take effect any more
 * @b: the backlog
 * @channel: number of the channel
 * @may_repeat: true if requests in doubt there may be posted again; otherwise they end
 */
void weir_backlog_resolve_doubt(struct weir_backlog *b, uint16_t channel, bool may_repeat);

/**
 * weir_backlog_pass_barriers() - end each barrier with nothing before it
 * @b: the backlog
 *
 * Requests behind such a barrier become ready, or are held by the order.
 */
void weir_backlog_pass_barriers(struct weir_backlog *b);

/**
 * weir_backlog_end_stranded() - end ready requests that have no channel left
 * @b: the backlog
 * @ready: one of @b->ready, or @b->messages
 *
 * Each request ends with -ENOTCONN if nothing of the request was sent, else with -ECONNRESET.
 *
 * Return: true if there were any.
 */
bool weir_backlog_end_stranded(struct weir_backlog *b, struct weir_list *ready);

/* The class of a request. */
static inline unsigned int weir_backlog_class_of(const struct weir_backlog *b,
						 const struct weir_req *req)
{
	return req->op == WEIR_OP_SEND || !req->class ? b->class : req->class - 1u;
}

/* Whether requests of @class, or of a lower class, are ready. */
static inline bool weir_backlog_has_ready_from(const struct weir_backlog *b, unsigned int class)
{
	for (; class < WEIR_WINDOW_CLASSES; class++) {
		if (!weir_list_is_empty(&b->ready[class]))
			return true;
	}
	return false;
}

/* Whether any requests are ready, except messages. */
static inline bool weir_backlog_has_ready(const struct weir_backlog *b)
{
	return weir_backlog_has_ready_from(b, 0);
}

/* The first request of a non-empty list linked by @link. */
static inline struct weir_req *weir_backlog_first(const struct weir_list *list)
{
	return weir_list_entry(list->next, struct weir_req, link);
}

/**
 * weir_backlog_pop_done() - hand a request back
 * @b: the backlog
 *
 * Return: the first request done, which is the caller's again, or NULL.
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

#endif
