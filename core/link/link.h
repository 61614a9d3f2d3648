/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link: a channel as its host sees it, one QP after another. This room has the decisions; the
 * host does the verbs.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_LINK_LINK_H
#define WEIR_CORE_LINK_LINK_H

#include "core/link/in_flight.h"

/**
 * enum weir_link_state - the life of a link
 *
 * A link begins as CLOSED, and is UP once both ends have proven the key. Only then does the host
 * post. The first error makes the link FAILING: the host ends the WRs in flight, as
 * weir_link_fail() says. With nothing in flight the link is BROKEN: the host destroys the QP and
 * connects again, as reconnect.h says. If the session ends or is lost meanwhile, the link is DOWN
 * for good. A host that ends the connection itself closes the link.
 */
enum weir_link_state {
	WEIR_LINK_CLOSED,
	WEIR_LINK_UP,
	WEIR_LINK_FAILING,
	WEIR_LINK_BROKEN,
	WEIR_LINK_DOWN,
};

/**
 * struct weir_link - one link; all zero at the start
 * @state: its state
 * @is_probed: a probe is in flight: keepalive.h
 * @is_posting: a thread posts a chain without the host's lock: weir_link_begin_post()
 * @in_flight: the other WRs
 */
struct weir_link {
	enum weir_link_state state;
	bool is_probed;
	bool is_posting;
	struct weir_in_flight in_flight;
};

/* Whether the link may come up: it never was, or it is broken. */
static inline bool weir_link_may_connect(const struct weir_link *link)
{
	return link->state == WEIR_LINK_CLOSED || link->state == WEIR_LINK_BROKEN;
}

/**
 * weir_link_up() - both ends have proven the key over a new QP
 * @link: weir_link_may_connect()
 */
void weir_link_up(struct weir_link *link);

/**
 * weir_link_fail() - a WR has failed, the peer is gone, or the host gives the link up
 * @link: in any state
 *
 * Return: true if the link was up. The host then owes the end of the WRs in flight, in one of two
 * ways. It moves the QP to the error state, which flushes them, and posts the drain WR if
 * weir_link_needs_drain(). Or, when no thread posts, it destroys the QP, takes the last
 * completions, and pops the WRs that are left: their outcome is unknown.
 */
bool weir_link_fail(struct weir_link *link);

/*
 * Whether a failing link needs a drain WR: one more WR, signalled, whose flush ends all others.
 * Without it, WRs behind the last signalled one would have no completion. Only a chain that was
 * posted in part leaves such WRs. While a thread posts, the answer is no: the drain WR must be the
 * last WR of the QP, so weir_link_end_post() comes first.
 */
bool weir_link_needs_drain(const struct weir_link *link);

/**
 * weir_link_begin_post() - a thread is about to post a chain without the host's lock
 * @link: UP; no other thread posts
 *
 * A post may take long, where a device does the work in it, and then holds up no other thread. The
 * invariant: until weir_link_end_post(), the chain is in no list, and its thread alone uses the
 * send queue and the CQ. Other threads post nothing there, and take none of the CQ's completions.
 * So no thread mistakes a WR of the chain for one that the QP has: a completion ends all WRs listed
 * before its own as successes.
 *
 * Other threads may fail the link meanwhile, and move the QP to the error state. They post no drain
 * WR, and do not destroy the QP. The link does not settle.
 */
void weir_link_begin_post(struct weir_link *link);

/**
 * weir_link_end_post() - the post has returned, and the host has its lock again
 * @link: in any state: it may have failed since weir_link_begin_post()
 * @first: the chain
 * @count: how many of its WRs the QP has accepted, the first ones
 *
 * If the link is FAILING, the host owes the drain WR: weir_link_needs_drain().
 *
 * Return: the rest of the chain, which was not posted, or NULL.
 */
struct weir_wr *weir_link_end_post(struct weir_link *link, struct weir_wr *first, uint32_t count);

/**
 * weir_link_settle() - advance a link that fails, once its WRs have ended
 * @link: in any state
 * @is_read: the host has taken all messages that the QP received
 * @may_reconnect: the session goes on
 *
 * Return: true if the link has become BROKEN or DOWN. The engine must be told.
 */
bool weir_link_settle(struct weir_link *link, bool is_read, bool may_reconnect);

/* The host has ended the connection and destroyed the QP. The link becomes CLOSED, in any state. */
void weir_link_close(struct weir_link *link);

#endif
