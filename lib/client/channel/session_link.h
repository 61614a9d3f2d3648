/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session's link is a channel as the verbs see it: a connection, its QP, its CQ. core/link has
 * the states and the WRs in flight.
 *
 * A failing link is flushed, with a drain WR if needed, before its QP is destroyed.
 *
 * While threads find nic->lock taken, a thread posts a long chain without the lock: some devices do
 * the work in the post, and other threads use the other links meanwhile. core/link/link.h has the
 * invariant. When the post has returned, the thread does not wait for the lock. It pushes the link
 * to the NIC's inbox, and the holder of the lock ends the post.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_H
#define WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/link/link.h"
#include "lib/client/channel/cq.h"
#include "lib/client/request/request.h"

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
 * @has_own_cq: no other link shares @cq, so that a thread may post without nic->lock
 * @posting: the chain of such a post; @posted: its WRs that the device has accepted
 * @returned: in the NIC's inbox after such a post. It is no request: its session is NULL
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
	bool has_own_cq;
	struct weir_wr *posting;
	uint32_t posted;
	struct weir_request returned;
	struct ibv_cq *recv_cq;
};

/*
 * Posts a batch; gives WRs that cannot be posted back to the engine. For one WR:
 * session_link_fastpath.h.
 */
void weir_session_link_post(struct weir_session_link *link, struct weir_wr *first);

/* Whether to post @first without nic->lock: it is long, and other threads want the lock. */
bool weir_session_link_may_unlock(const struct weir_session_link *link,
				  const struct weir_wr *first);

/*
 * As weir_session_link_post(), after a weir_session_link_may_unlock(). Returns without nic->lock.
 * The caller must not touch the session any more. It owes a weir_combine_trylock(), and then
 * serves.
 */
void weir_session_link_post_unlocked(struct weir_session_link *link, struct weir_wr *first);

/* Gives the WRs from @wr on back to the engine: they were not posted. */
void weir_session_link_give_back(struct weir_session *session, struct weir_wr *wr);

/* Ends the post of a link taken from the NIC's inbox. */
void weir_session_link_end_post(struct weir_session_link *link);

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
