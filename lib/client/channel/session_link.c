/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <errno.h>

#include "lib/base/error.h"
#include "lib/client/channel/session_link.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/channel/pump.h"
#include "lib/client/channel/scq.h"
#include "lib/client/session.h"
#include "lib/client/channel/unload_tx.h"

/*
 * A device that does the work in the post takes longer than a thread takes to unlock and lock. From
 * 8 KiB on, "weir perf" with four threads lost a fifth; from 64 KiB on, nothing.
 */
#define UNLOCKED_BYTES_MIN (64u << 10)

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
		.wrs_max = window->wrs_max,
		.wrs_top = window->wrs_top,
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

/* A chain as the verbs want it. */
struct verbs_chain {
	struct ibv_send_wr wrs[WEIR_BATCH_MAX];
	struct weir_unload_tx_sges sges[WEIR_BATCH_MAX];
	uint32_t count;
};

static void fill_chain(struct weir_session_link *link, struct verbs_chain *chain,
		       struct weir_wr *first)
{
	struct weir_counters *counters = link->session->counters;
	bool unloads = weir_unload_tx_is(link);
	struct weir_wr *wr;
	uint32_t i = 0;

	for (wr = first; wr; wr = wr->next, i++) {
		fill_wr(&chain->wrs[i], wr);
		if (unloads)
			weir_unload_tx_fill(link, &chain->wrs[i], wr, &chain->sges[i]);
		else
			set_send_flags(link, &chain->wrs[i], wr);
		count_wr(counters, wr);
	}
	chain->count = i;
	counters->doorbells++;
	counters->chains += i > 1;
}

/* Return: how many WRs the device has accepted. Context: any. */
static uint32_t post_chain(struct ibv_qp *qp, struct verbs_chain *chain)
{
	struct ibv_send_wr *bad = chain->wrs;

	if (qp && !ibv_post_send(qp, chain->wrs, &bad))
		return chain->count;
	return (uint32_t)(bad - chain->wrs);
}

void weir_session_link_give_back(struct weir_session *session, struct weir_wr *wr)
{
	struct weir_wr *next;

	for (; wr; wr = next) {
		struct weir_wc wc = { wr, -ENOTCONN };

		next = wr->next;
		weir_engine_completed(&session->engine, &wc, 0);
	}
}

void weir_session_link_post(struct weir_session_link *link, struct weir_wr *first)
{
	struct weir_session *session = link->session;
	struct verbs_chain chain;
	uint32_t posted;

	fill_chain(link, &chain, first);
	posted = post_chain(link->core.state == WEIR_LINK_UP ? link->id->qp : NULL, &chain);
	if (posted)
		first = weir_session_link_add_in_flight(link, first, posted);
	weir_session_links_publish_window(session);
	weir_session_link_give_back(session, first);
}

bool weir_session_link_may_unlock(const struct weir_session_link *link, const struct weir_wr *first)
{
	uint32_t *crowd = &link->session->nic->crowd,
		 left = __atomic_load_n(crowd, __ATOMIC_RELAXED);
	uint64_t bytes = 0;

	if (!left || !link->has_own_cq || link->core.state != WEIR_LINK_UP)
		return false;
	__atomic_store_n(crowd, left - 1, __ATOMIC_RELAXED);
	for (; first; first = first->next)
		bytes += first->length;
	return bytes >= UNLOCKED_BYTES_MIN;
}

static void set_posting(struct weir_session_link *link, bool is_posting)
{
	struct weir_session *session = link->session;

	weir_engine_channel_busy(&session->engine, link->number, is_posting);
	link->cq->is_posting = is_posting;
	session->posting += is_posting ? 1 : -1u;
}

void weir_session_link_post_unlocked(struct weir_session_link *link, struct weir_wr *first)
{
	struct weir_nic *nic = link->session->nic;
	struct ibv_qp *qp = link->id->qp;
	struct verbs_chain chain;

	fill_chain(link, &chain, first);
	link->session->counters->unlocked++;
	weir_link_begin_post(&link->core);
	set_posting(link, true);
	link->posting = first;
	weir_combine_release(nic);
	link->posted = post_chain(qp, &chain);
	weir_inbox_push(&nic->combine.inbox, &link->returned.node);
}

/* A WR has left @link->core.in_flight. */
static void report(struct weir_session_link *link, const struct weir_wc *wc, uint64_t now_ns)
{
	struct weir_session *session = link->session;

	link->cq->in_flight--;
	if (wc->status)
		weir_stats_shm_failed(session->stats_shm, wc->status, wc->verbs);
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

	if (cq->is_posting)
		return 0;
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

void weir_session_link_end_post(struct weir_session_link *link)
{
	struct weir_session *session = link->session;
	struct weir_wr *rest;

	if (!link->core.is_posting)
		return;
	set_posting(link, false);
	rest = weir_link_end_post(&link->core, link->posting, link->posted);
	link->cq->in_flight += link->posted;
	session->counters->work_requests += link->posted;
	weir_session_links_publish_window(session);
	weir_session_link_give_back(session, rest);
	if (link->core.state != WEIR_LINK_UP) {
		if (weir_link_needs_drain(&link->core))
			post_drain_wr(link);
		weir_pump_kick(session); /* a thread must settle the link */
	}
	weir_combine_activate(&session->nic->combine, &session->active);
	if (!session->posting)
		weir_waitqueue_wake_all(&session->idle);
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
