/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link is a channel as the verbs see it: a connection, its QP, its CQ.
 *
 * Only the last WR of a chain asks for a completion. The send queue works in order, and a WR
 * that fails always completes: so a completion tells of all posted before it that they succeeded.
 * Nothing tells of those behind the last signalled one; only a post that fails half-way leaves
 * any there, and ends the link. Then one more WR is posted, for the flush to reach: it drains them.
 *
 * It begins as CLOSED, is UP once both ends have proven the key, FAILING when it has shown
 * an error and what it had in flight is being flushed. When the flush is over it is BROKEN as
 * long as it may come up again (mend.h), and DOWN for good otherwise.
 *
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_LINK_H
#define WEIR_LIB_CLIENT_CHANNEL_LINK_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "lib/client/channel/cq.h"

struct weir_session;

/* The wr_ids of the handshake are below; those of the engine's WRs are addresses. */
#define WEIR_HANDSHAKE_WR_MAX 254
#define WEIR_DRAIN_WR 255
#define WEIR_RETURN_WR 256 /* a receive of the link that unloads */
#define WEIR_KEEPALIVE_WR 257

enum weir_link_state {
	WEIR_LINK_CLOSED,
	WEIR_LINK_UP,
	WEIR_LINK_FAILING,
	WEIR_LINK_BROKEN,
	WEIR_LINK_DOWN,
};

/**
 * struct weir_link - one channel's verbs
 * @session: whose
 * @number: of the channel
 * @in_flight: WRs posted and not known to be completed: @oldest to @newest, chained by their next
 * @unsignalled: of them, those behind the last signalled one
 * @unanswered: its keep-alive has not completed
 * @inline_max: bytes that a write or a message may have to be posted with its data
 * @id: the connection, or NULL
 * @qp_num: of its QP
 * @cq: of what is sent; one of the session's
 * @recv_cq: of what is received: the session's for channel 0, their own for all others, which
 *	receive nothing after the handshake
 */
struct weir_link {
	struct weir_session *session;
	uint16_t number;
	enum weir_link_state state;
	uint32_t in_flight;
	struct weir_wr *oldest, *newest;
	uint32_t unsignalled;
	bool unanswered;
	uint32_t inline_max;
	struct rdma_cm_id *id;
	uint32_t qp_num;
	struct weir_cq *cq;
	struct ibv_cq *recv_cq;
};

/* Posts a batch; what cannot be posted is given back to the engine. What is one WR: link_one.h. */
void weir_link_post(struct weir_link *link, struct weir_wr *first);

/* One completion of @cq. Return: WRs of @session that it tells of. */
int weir_link_handle_wc(struct weir_session *session, struct weir_cq *cq, const struct ibv_wc *wc,
			uint64_t now_ns);

/* The window as it is now, to those who look from outside. */
void weir_links_publish_window(struct weir_session *session);

/*
 * Takes @cq's completions of what was posted to the engine, on any link. Sessions other than
 * @session (NULL: all) that share it are due then. Return: WRs of @session that are completed.
 */
int weir_links_poll(struct weir_session *session, struct weir_cq *cq, uint64_t now_ns);

/* Gives the link up: moves its QP to the error state, so that all in flight is flushed. */
void weir_link_fail(struct weir_link *link);

/* The oldest is in flight no longer: tells the engine how it ended. */
void weir_link_retire(struct weir_link *link, int status, uint64_t now_ns);

/* The same, by a completion of its own. */
void weir_link_retire_by(struct weir_link *link, enum ibv_wc_status verbs, uint64_t now_ns);

/* Nothing will tell of what is in flight: gives all of it back to the engine, outcome unknown. */
void weir_link_forget(struct weir_link *link);

/**
 * weir_link_settle() - after a poll: has its flush ended?
 * @may_reconnect: whether a broken one may come up again
 *
 * Return: whether its state has changed.
 */
bool weir_link_settle(struct weir_link *link, bool may_reconnect);

#endif
