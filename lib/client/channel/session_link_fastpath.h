/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fast path of a link: one read or write, posted alone and polled at once. Inline, together
 * with the steps that session_link.c does for each WR, because calls are expensive on this path.
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_FASTPATH_H
#define WEIR_LIB_CLIENT_CHANNEL_SESSION_LINK_FASTPATH_H

#include "core/engine/fastpath.h"
#include "lib/client/session.h"

static inline void weir_session_link_fill_common(struct ibv_send_wr *out, struct weir_wr *wr)
{
	out->wr_id = (uintptr_t)wr;
	out->sg_list = (struct ibv_sge *)wr->sge;
	out->num_sge = wr->nr_sge;
	out->send_flags = 0;
}

/* For a read or a write. */
static inline void weir_session_link_fill_transfer(struct ibv_send_wr *out,
						   const struct weir_wr *wr)
{
	const struct weir_req *req = wr->req;

	out->opcode = req->op == WEIR_OP_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	out->wr.rdma.remote_addr = req->remote + wr->offset;
	out->wr.rdma.rkey = req->rkey;
}

/* The NIC need not fetch inline data. */
static inline void weir_session_link_flag_inline(struct weir_session_link *link,
						 struct ibv_send_wr *out, const struct weir_wr *wr)
{
	bool brings_data = out->opcode == IBV_WR_RDMA_WRITE || out->opcode == IBV_WR_SEND;

	if (wr->length > link->inline_max || !brings_data)
		return;
	out->send_flags |= IBV_SEND_INLINE;
	link->session->counters->inlined++;
}

/*
 * Records that the NIC has accepted @count WRs of the chain. Return: the rest of the chain, or
 * NULL.
 */
static inline struct weir_wr *weir_session_link_add_in_flight(struct weir_session_link *link,
							      struct weir_wr *first, uint32_t count)
{
	link->cq->in_flight += count;
	link->session->counters->work_requests += count;
	return weir_in_flight_append(&link->core.in_flight, first, count);
}

static inline void weir_session_link_count_bytes(struct weir_session *session,
						 const struct weir_wr *wr)
{
	if (wr->req->op == WEIR_OP_READ)
		session->counters->bytes_read += wr->length;
	else if (wr->req->op == WEIR_OP_WRITE)
		session->counters->bytes_written += wr->length;
}

/*
 * Posts one signalled read or write, when all other WRs in flight are signalled too. The engine is
 * not told. Return: true if the WR is in flight. Unless the WR completes at once, the caller owes a
 * weir_session_links_publish_window().
 */
static inline bool weir_session_link_post_one(struct weir_session_link *link, struct weir_wr *wr)
{
	struct ibv_send_wr one, *bad;

	bool is_inline = wr->length <= link->inline_max && wr->req->op == WEIR_OP_WRITE;

	weir_session_link_fill_common(&one, wr);
	weir_session_link_fill_transfer(&one, wr);
	one.next = NULL;
	weir_in_flight_signal(&link->core.in_flight, true, 1);
	one.send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0);
	if (link->core.state != WEIR_LINK_UP || ibv_post_send(link->id->qp, &one, &bad))
		return false;
	link->session->counters->doorbells++;
	link->session->counters->inlined += is_inline;
	weir_session_link_add_in_flight(link, wr, 1);
	return true;
}

/**
 * weir_session_link_has_one_success() - match a poll's result with a single WR
 * @wc, @got: completions found by the poll
 *
 * After a weir_session_link_post_one() of the WR from weir_fastpath_post().
 * Return: true if the WR has succeeded: the engine knows, and the request is free. Otherwise
 * nothing has changed.
 */
static inline bool weir_session_link_has_one_success(struct weir_session_link *link,
						     const struct ibv_wc *wc, int got)
{
	struct weir_session *session = link->session;
	struct weir_wr *wr = link->core.in_flight.oldest;

	if (got != 1 || wc->wr_id != (uintptr_t)wr || wc->status != IBV_WC_SUCCESS ||
	    wc->qp_num != link->qp_num)
		return false;
	session->counters->completions++;
	weir_in_flight_pop(&link->core.in_flight);
	link->cq->in_flight--;
	weir_session_link_count_bytes(session, wr);
	weir_fastpath_complete(&session->engine, wr);
	return true;
}

#endif
