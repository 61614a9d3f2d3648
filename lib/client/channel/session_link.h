/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link is a channel as the verbs see it: a connection, its QP, its CQ.
 *
 * Only the last WR of a chain is signalled. The send queue works in order, and a failing WR always
 * completes, so a completion means that all earlier WRs succeeded. WRs behind the last signalled
 * one have no completion. Only a post that fails half-way leaves any, and fails the link. Then one
 * more WR, the drain WR, is posted: its flush completes the others.
 *
 * A link begins as CLOSED and is UP once both ends have proven the key. After an error the link is
 * FAILING while WRs in flight are flushed, then BROKEN if it may reconnect
 * (session_reconnect.h), otherwise DOWN for good.
 *
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_H
#define WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "lib/client/channel/cq.h"

struct weir_session;

/* The handshake's wr_ids are smaller; those of the engine's WRs are addresses. */
#define WEIR_HANDSHAKE_WR_MAX 254
#define WEIR_DRAIN_WR 255
#define WEIR_RETURN_WR 256 /* a receive of the unload link */
#define WEIR_KEEPALIVE_WR 257

enum weir_link_state {
	WEIR_LINK_CLOSED,
	WEIR_LINK_UP,
	WEIR_LINK_FAILING,
	WEIR_LINK_BROKEN,
	WEIR_LINK_DOWN,
};

/**
 * struct weir_session_link - one channel's verbs
 * @session: the owner
 * @number: of the channel
 * @in_flight: WRs posted and not known to be completed: @oldest to @newest, chained by next
 * @unsignalled: WRs in flight behind the last signalled one
 * @unanswered: the keep-alive has not completed
 * @inline_max: longest write or message to post inline, bytes
 * @id: the connection, or NULL
 * @qp_num: of the QP
 * @cq: for sends; one of the session's
 * @recv_cq: for receives: channel 0 has the session's; other channels have their own, for the
 *	handshake only
 */
struct weir_session_link {
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

/*
 * Posts a batch; gives WRs that cannot be posted back to the engine. For one WR:
 * session_link_fastpath.h.
 */
void weir_session_link_post(struct weir_session_link *link, struct weir_wr *first);

/* Handles one completion of @cq. Return: WRs of @session that have completed. */
int weir_session_link_handle_wc(struct weir_session *session, struct weir_cq *cq,
				const struct ibv_wc *wc, uint64_t now_ns);

/* Publishes the state of the window in shared memory. */
void weir_session_links_publish_window(struct weir_session *session);

/*
 * Polls @cq for completions of engine WRs on any link. Other sessions (with @session NULL: all) on
 * the CQ become due. Return: WRs of @session that have completed.
 */
int weir_session_links_poll(struct weir_session *session, struct weir_cq *cq, uint64_t now_ns);

/* Gives the link up: moves the QP to the error state, which flushes all WRs in flight. */
void weir_session_link_fail(struct weir_session_link *link);

/* Retires the oldest WR in flight and reports @status to the engine. */
void weir_session_link_retire(struct weir_session_link *link, int status, uint64_t now_ns);

/* As weir_session_link_retire(), with the status of a completion. */
void weir_session_link_retire_by(struct weir_session_link *link, enum ibv_wc_status verbs,
				 uint64_t now_ns);

/* Gives all WRs in flight back to the engine, outcome unknown, when no completion will come. */
void weir_session_link_forget(struct weir_session_link *link);

/**
 * weir_session_link_settle() - advance the state after a poll, if the flush has ended
 * @may_reconnect: a broken link may come up again
 *
 * Return: true if the state has changed.
 */
bool weir_session_link_settle(struct weir_session_link *link, bool may_reconnect);

#endif
