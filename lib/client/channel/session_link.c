/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <errno.h>

#include "lib/base/error.h"
#include "lib/client/channel/session_link.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/channel/scq.h"
#include "lib/client/session.h"
#include "lib/client/channel/unload_tx.h"

/* The core and the verbs lay out local memory alike, so the core's lists are posted as they are. */
static_assert(sizeof(struct weir_sge) == sizeof(struct ibv_sge) &&
		      offsetof(struct weir_sge, addr) == offsetof(struct ibv_sge, addr) &&
		      offsetof(struct weir_sge, length) == offsetof(struct ibv_sge, length) &&
		      offsetof(struct weir_sge, lkey) == offsetof(struct ibv_sge, lkey),
	      "weir_sge is ibv_sge");

/* Atomics keep the request's operands. */
static void fill_atomic(struct ibv_send_wr *out, const struct weir_req *req)
{
	out->wr.atomic.remote_addr = req->remote;
	out->wr.atomic.rkey = req->rkey;
	if (req->op == WEIR_OP_CAS) {
		out->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		out->wr.atomic.compare_add = req->compare;
		out->wr.atomic.swap = req->operand;
	} else {
		out->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		out->wr.atomic.compare_add = req->operand;
	}
}

/* Sets only the fields that the opcode uses, because each WR passes here. */
static void fill_wr(struct ibv_send_wr *out, struct weir_wr *wr)
{
	const struct weir_req *req = wr->req;

	weir_session_link_fill_common(out, wr);
	out->next = wr->next ? out + 1 : NULL;
	switch (req->op) {
	case WEIR_OP_READ:
	case WEIR_OP_WRITE:
		weir_session_link_fill_transfer(out, wr);
		break;
	case WEIR_OP_CAS:
	case WEIR_OP_FADD:
		fill_atomic(out, req);
		break;
	case WEIR_OP_SEND:
	case WEIR_OP_BARRIER: /* is never posted */
		out->opcode = IBV_WR_SEND;
		break;
	}
}

static void set_send_flags(struct weir_session_link *link, struct ibv_send_wr *out,
			   const struct weir_wr *wr)
{
	weir_session_link_flag_inline(link, out, wr);
	if (weir_in_flight_signal(&link->core.in_flight, !wr->next,
				  link->session->tuning.depth / 2))
		out->send_flags |= IBV_SEND_SIGNALED;
}

void weir_session_links_publish_window(struct weir_session *session)
{
	const struct weir_window *window = session->engine.window;

	session->stats_shm->window = (struct weir_stats_shm_window){
		.bytes_max = window->bytes_max,
		.bytes_top = window->bytes_top,
		.bytes = window->bytes,
		.wrs = window->wrs,
	};
	session->counters->window_waits = session->engine.waits;
	if (session->engine.selector)
		weir_unload_tx_publish(session);
}

static inline void count_wr(struct weir_counters *counters, const struct weir_wr *wr)
{
	if (wr->nr_reqs > 1)
		counters->merged += wr->nr_reqs;
	else if (wr->length < wr->req->length && !wr->offset)
		counters->split++;
}

void weir_session_link_post(struct weir_session_link *link, struct weir_wr *first)
{
	struct ibv_send_wr chain[WEIR_BATCH_MAX], *bad = chain;
	struct weir_unload_tx_pieces pieces[WEIR_BATCH_MAX];
	bool unloads = weir_unload_tx_is(link);
	struct weir_session *session = link->session;
	struct weir_wr *wr;
	uint32_t count = 0, posted;

	for (wr = first; wr; wr = wr->next) {
		fill_wr(&chain[count], wr);
		if (unloads)
			weir_unload_tx_fill(link, &chain[count], wr, &pieces[count]);
		else
			set_send_flags(link, &chain[count], wr);
		count_wr(session->counters, wr);
		count++;
	}
	if (link->core.state == WEIR_LINK_UP && !ibv_post_send(link->id->qp, chain, &bad))
		posted = count;
	else
		posted = (uint32_t)(bad - chain);
	session->counters->doorbells++;
	session->counters->chains += count > 1;
	wr = posted ? weir_session_link_add_in_flight(link, first, posted) : first;
	weir_session_links_publish_window(session);

	for (; posted < count; posted++) {
		struct weir_wc wc = { wr, -ENOTCONN };

		wr = wr->next;
		weir_engine_completed(&session->engine, &wc, 0);
	}
}

/* A WR has left @link->core.in_flight. */
static void report(struct weir_session_link *link, const struct weir_wc *wc, uint64_t now_ns)
{
	struct weir_session *session = link->session;

	link->cq->in_flight--;
	if (wc->status)
		session->counters->errors++;
	else
		weir_session_link_count_bytes(session, wc->wr);
	weir_engine_completed(&session->engine, wc, now_ns);
}

void weir_session_link_retire(struct weir_session_link *link, int status, uint64_t now_ns)
{
	const struct weir_wc wc = { weir_in_flight_pop(&link->core.in_flight), status };

	report(link, &wc, now_ns);
}

static void complete_up_to(struct weir_session_link *link, const struct ibv_wc *wc, uint64_t now_ns)
{
	const struct weir_wc cqe = {
		.wr = wc->wr_id == WEIR_DRAIN_WR ? NULL : (void *)(uintptr_t)wc->wr_id,
		.status = weir_error_of_wc(wc->status),
		.verbs = (uint8_t)wc->status,
	};
	struct weir_wc ended = { NULL };

	while (weir_in_flight_complete(&link->core.in_flight, &cqe, &ended))
		report(link, &ended, now_ns);
}

/* Return: WRs completed. */
static int completed(struct weir_session_link *link, const struct ibv_wc *wc, uint64_t now_ns)
{
	uint32_t before = link->core.in_flight.count;

	link->session->counters->completions++;
	if (wc->wr_id == WEIR_KEEPALIVE_WR)
		weir_session_keepalive_completed(link, wc->status, now_ns);
	else if (weir_unload_tx_is(link))
		weir_unload_tx_completed(link, wc, now_ns);
	else
		complete_up_to(link, wc, now_ns);
	return (int)(before - link->core.in_flight.count);
}

/* The handshake's sends, with small wr_ids, complete here too. */
static bool is_engine_wc(const struct ibv_wc *wc)
{
	return wc->wr_id > WEIR_HANDSHAKE_WR_MAX;
}

/* NULL: the link has nothing left in flight, or the QP is gone. */
static struct weir_session_link *session_link_of_wc(struct weir_session *session,
						    const struct ibv_wc *wc)
{
	unsigned int i;

	for (i = 0; i < session->nr_links; i++) {
		struct weir_session_link *link = &session->links[i];

		if (link->qp_num == wc->qp_num &&
		    (link->core.state == WEIR_LINK_UP || link->core.state == WEIR_LINK_FAILING))
			return link;
	}
	return NULL;
}

static struct weir_session_link *scq_link_of_wc(const struct weir_scq *scq, const struct ibv_wc *wc)
{
	struct weir_session_link *link = NULL;
	struct weir_list *at;

	for (at = scq->sessions.next; at != &scq->sessions && !link; at = at->next)
		link = session_link_of_wc(weir_list_entry(at, struct weir_session, scq), wc);
	return link;
}

int weir_session_link_handle_wc(struct weir_session *session, struct weir_cq *cq,
				const struct ibv_wc *wc, uint64_t now_ns)
{
	struct weir_session_link *link;
	int count;

	if (!is_engine_wc(wc))
		return 0;
	link = cq->scq ? scq_link_of_wc(cq->scq, wc) : session_link_of_wc(session, wc);
	if (!link)
		return 0;
	count = completed(link, wc, now_ns);
	if (link->session == session)
		return count;
	weir_scq_due(link->session);
	return 0;
}

int weir_session_links_poll(struct weir_session *session, struct weir_cq *cq, uint64_t now_ns)
{
	int got, i, total = 0, max = (int)cq->wcs_max;
	struct ibv_wc wcs[WEIR_POLL_WCS_MAX];

	do {
		got = ibv_poll_cq(cq->ibv, max, wcs);
		for (i = 0; i < got; i++)
			total += weir_session_link_handle_wc(session, cq, &wcs[i], now_ns);
	} while (got == max);
	if (total)
		weir_session_links_publish_window(session);
	return total;
}

/* If posting fails: see session_close.c. */
static void post_drain_wr(struct weir_session_link *link)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_DRAIN_WR,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	ibv_post_send(link->id->qp, &wr, &bad);
}

void weir_session_link_fail(struct weir_session_link *link)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (!weir_link_fail(&link->core))
		return;
	ibv_modify_qp(link->id->qp, &attr, IBV_QP_STATE);
	if (weir_link_needs_drain(&link->core))
		post_drain_wr(link);
}

void weir_session_link_forget(struct weir_session_link *link)
{
	weir_session_keepalive_forget(link);
	while (link->core.in_flight.count)
		weir_session_link_retire(link, -ECONNRESET, 0);
}

/* Messages received before the failure but without room must not be lost with the QP. */
static bool is_read(const struct weir_session_link *link)
{
	return link->number || weir_messages_have_room(link->session);
}

bool weir_session_link_settle(struct weir_session_link *link, bool may_reconnect)
{
	struct weir_engine *engine = &link->session->engine;
	bool was_failing = link->core.state == WEIR_LINK_FAILING;

	if (!weir_link_settle(&link->core, is_read(link), may_reconnect))
		return false;
	if (was_failing)
		weir_engine_channel_broken(engine, link->number);
	if (link->core.state == WEIR_LINK_DOWN)
		weir_engine_channel_down(engine, link->number);
	return true;
}
