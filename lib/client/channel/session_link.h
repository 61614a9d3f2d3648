/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session's link is a channel as the verbs see it: a connection, its QP, its CQ. core/link has
 * the states and the WRs in flight.
 *
 * A failing link is flushed, with a drain WR if needed, before its QP is destroyed.
 *
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_H
#define WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/link/link.h"
#include "lib/client/channel/cq.h"

struct weir_session;

/* The handshake's wr_ids are smaller; those of the engine's WRs are addresses. */
#define WEIR_HANDSHAKE_WR_MAX 254
#define WEIR_DRAIN_WR 255
#define WEIR_RETURN_WR 256 /* a receive of the unload link */
#define WEIR_KEEPALIVE_WR 257

/**
 * struct weir_session_link - one channel's verbs
 * @session: the owner
 * @number: of the channel
 * @core: its state and WRs in flight
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
	struct weir_link core;
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
