/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A reliable connection that keeps only the promises of verbs. The peer executes in the order
 * posted; completions come in this order, later; queue pairs are independent. A failed queue pair
 * flushes the rest. Some of the rest has arrived, and some may arrive as long as the peer has its
 * end. After a refusal the peer executes nothing more. The peer may lack a receive for a while
 * (RNR), or not answer at all; the NIC then gives up in the end.
 */
#include "sim/hunt/hunt.h"

#define SILENCE_PS (SIM_PS_PER_S / 10) /* before the NIC gives up */
#define RNR_WAIT_PS (20 * SIM_PS_PER_US)
#define RNR_RETRIES 6

static struct hunt_wqe *wqe_at(struct hunt_qp *qp, uint32_t i)
{
	return &qp->wqes[(qp->head + i) % HUNT_WRS];
}

static void take_effect(struct hunt_qp *qp, const struct hunt_wqe *wqe, bool is_answered)
{
	hunt_note(qp->session->hunt, "effect", wqe->reqs[0], qp->number, (int64_t)wqe->remote);
	hunt_watch_effect(qp, wqe);
	hunt_memory_move(qp, wqe, is_answered);
}

static bool count_where(const struct hunt_qp *qp, const struct hunt_wqe *wqe, bool bad)
{
	const struct hunt *h = qp->session->hunt;
	int i;

	for (i = 0; i < wqe->nr_reqs; i++) {
		const struct hunt_request *r = &h->requests[wqe->reqs[i]];

		if (bad ? r->is_bad : r->is_unregistered)
			return true;
	}
	return false;
}

static void come_to_complete(struct hunt_qp *qp)
{
	struct hunt *h = qp->session->hunt;

	if (!sim_event_is_scheduled(&qp->complete))
		sim_clock_in(&h->clock, &qp->complete, hunt_while(&h->net));
}

static void give_up(struct hunt_qp *qp, bool may_arrive)
{
	struct hunt *h = qp->session->hunt;
	uint32_t i;

	weir_link_fail(&qp->link);
	qp->session->has_failed = true;
	qp->is_silent = false;
	qp->rnr = 0;
	sim_clock_cancel(&h->clock, &qp->execute);
	for (i = qp->next; i < qp->count; i++) {
		struct hunt_wqe *wqe = wqe_at(qp, i);

		wqe->is_done = true;
		wqe->status = -ECONNRESET;
		may_arrive &= hunt_dice(&h->net, 700);
		/* A late read has no effect: its answer is dropped. */
		if (may_arrive && wqe->op != WEIR_OP_READ && qp->nr_late < HUNT_WRS)
			qp->late[qp->nr_late++] = *wqe;
	}
	qp->next = qp->count;
	if (qp->nr_late && !sim_event_is_scheduled(&qp->arrive))
		sim_clock_in(&h->clock, &qp->arrive, hunt_while(&h->net));
	come_to_complete(qp);
}

void hunt_qp_fail(struct hunt_qp *qp)
{
	if (hunt_qp_is_up(qp))
		give_up(qp, true);
}

void hunt_qp_lose(struct hunt_qp *qp)
{
	struct hunt *h = qp->session->hunt;

	if (qp->is_gone)
		return;
	give_up(qp, false);
	sim_clock_cancel(&h->clock, &qp->arrive);
	sim_clock_cancel(&h->clock, &qp->reconnect);
	qp->nr_late = 0;
	qp->is_gone = qp->is_down = qp->session->has_lost = true;
	hunt_note(h, "lose", qp->session->number, qp->number, qp->count);
	hunt_watch_found(qp);
	weir_engine_channel_down(&qp->session->engine, qp->number);
}

static void end_wqe(struct hunt_qp *qp, struct hunt_wqe *wqe, int status)
{
	wqe->is_done = true;
	wqe->status = status;
	qp->next++;
	come_to_complete(qp);
}

/* Loses the answer, or the WR, now or for good. */
static void break_at(struct hunt_qp *qp, struct hunt_wqe *wqe)
{
	struct sim_rng *rng = &qp->session->hunt->net;

	if (hunt_dice(rng, 500)) {
		take_effect(qp, wqe, hunt_dice(rng, 500));
		end_wqe(qp, wqe, hunt_dice(rng, 100) ? -EIO : -ECONNRESET);
	}
	give_up(qp, true);
}

/* The peer has no receive; a message refused this often never arrives. */
static void wait_for_receive(struct hunt_qp *qp, struct hunt_wqe *wqe)
{
	struct hunt *h = qp->session->hunt;

	hunt_note(h, "rnr", wqe->reqs[0], qp->number, qp->rnr);
	if (qp->rnr++ < RNR_RETRIES) {
		sim_clock_in(&h->clock, &qp->execute, RNR_WAIT_PS);
		return;
	}
	end_wqe(qp, wqe, -ECONNRESET);
	give_up(qp, false);
}

static bool may_receive(struct hunt_qp *qp)
{
	struct hunt *h = qp->session->hunt;

	return !hunt_dice(&h->net, qp->rnr ? 700 : 2 * h->peril);
}

static void fall_silent(struct hunt_qp *qp)
{
	struct hunt *h = qp->session->hunt;

	hunt_note(h, "silent", qp->session->number, qp->number, 0);
	qp->is_silent = true;
	sim_clock_in(&h->clock, &qp->execute, SILENCE_PS);
}

/*
 * The NIC may detect memory that it cannot read or write before or after it asked the peer. The
 * engine then retries the requests of a shared WR alone, and a write may take effect twice.
 */
static void fault_at(struct hunt_qp *qp, struct hunt_wqe *wqe)
{
	struct hunt *h = qp->session->hunt;
	int i;

	if (hunt_dice(&h->net, 500))
		take_effect(qp, wqe, false);
	for (i = 0; i < wqe->nr_reqs && wqe->nr_reqs > 1; i++)
		h->requests[wqe->reqs[i]].may_repeat = true;
	end_wqe(qp, wqe, -EFAULT);
	give_up(qp, true);
}

static void complete_ok(struct hunt_qp *qp, struct hunt_wqe *wqe)
{
	struct hunt *h = qp->session->hunt;

	qp->rnr = 0;
	take_effect(qp, wqe, true);
	end_wqe(qp, wqe, 0);
	if (qp->next < qp->count)
		sim_clock_in(&h->clock, &qp->execute, hunt_while(&h->net));
}

static void execute(struct sim_event *event)
{
	struct hunt_qp *qp = container_of(event, struct hunt_qp, execute);
	struct hunt *h = qp->session->hunt;
	struct hunt_wqe *wqe = wqe_at(qp, qp->next);

	if (qp->is_silent) {
		break_at(qp, wqe);
	} else if (count_where(qp, wqe, false)) {
		fault_at(qp, wqe);
	} else if (count_where(qp, wqe, true)) {
		end_wqe(qp, wqe, -EACCES);
		give_up(qp, false);
	} else if (hunt_dice(&h->net, h->peril)) {
		break_at(qp, wqe);
	} else if (hunt_dice(&h->net, h->peril / 2)) {
		fall_silent(qp);
	} else if (wqe->op == WEIR_OP_SEND && !may_receive(qp)) {
		wait_for_receive(qp, wqe);
	} else {
		complete_ok(qp, wqe);
	}
}

static void arrive(struct sim_event *event)
{
	struct hunt_qp *qp = container_of(event, struct hunt_qp, arrive);
	struct hunt *h = qp->session->hunt;

	take_effect(qp, &qp->late[0], false);
	memmove(&qp->late[0], &qp->late[1], --qp->nr_late * sizeof(qp->late[0]));
	if (qp->nr_late)
		sim_clock_in(&h->clock, event, hunt_while(&h->net));
}

/* The peer has destroyed its end: nothing more arrives. Mostly the peer offers a new end. */
static void reconnect(struct sim_event *event)
{
	struct hunt_qp *qp = container_of(event, struct hunt_qp, reconnect);
	struct weir_engine *engine = &qp->session->engine;
	struct hunt *h = qp->session->hunt;
	int rc = 0;

	sim_clock_cancel(&h->clock, &qp->arrive);
	qp->nr_late = 0;
	qp->is_gone = hunt_dice(&h->net, 200);
	qp->session->has_lost |= qp->is_gone;
	hunt_watch_found(qp);
	if (qp->is_gone) {
		weir_engine_channel_down(engine, qp->number);
	} else {
		weir_link_up(&qp->link);
		rc = weir_engine_channel_up(engine, qp->number, h->depth);
		qp->is_down = false;
	}
	hunt_note(h, qp->is_gone ? "gone" : "mended", qp->session->number, qp->number, rc);
	hunt_expect(h, !rc, "channel %u does not come up again", qp->number);
	hunt_host_pull(qp->session);
}

static void complete_one(struct hunt_qp *qp)
{
	struct hunt *h = qp->session->hunt;
	const struct weir_wc cqe = { wqe_at(qp, 0)->wr, wqe_at(qp, 0)->status };
	struct weir_wc wc = { NULL };

	weir_in_flight_complete(&qp->link.in_flight, &cqe, &wc);
	hunt_note(h, "complete", qp->number, wc.wr->req ? hunt_request_of(wc.wr->req)->number : 0,
		  wc.status);
	hunt_watch_complete(qp, wqe_at(qp, 0));
	qp->head = (qp->head + 1) % HUNT_WRS;
	qp->count--;
	qp->next--;
	weir_engine_completed(&qp->session->engine, &wc, hunt_now_ns(h));
}

static void complete(struct sim_event *event)
{
	struct hunt_qp *qp = container_of(event, struct hunt_qp, complete);
	struct hunt *h = qp->session->hunt;
	uint64_t batch = 1 + sim_rng_below(&h->host, 4);

	while (batch-- && qp->count && wqe_at(qp, 0)->is_done)
		complete_one(qp);
	hunt_host_pull(qp->session);
	if (qp->count && wqe_at(qp, 0)->is_done)
		come_to_complete(qp);
	/* The host also waits until it has reported WRs that could not be posted. */
	if (weir_link_settle(&qp->link, !qp->nr_unsent, !qp->is_gone) && !qp->is_gone) {
		qp->is_down = true;
		weir_engine_channel_broken(&qp->session->engine, qp->number);
		sim_clock_in(&h->clock, &qp->reconnect, hunt_while(&h->net));
		hunt_host_pull(qp->session);
	}
}

static void wqe_fill(struct hunt_wqe *wqe, struct weir_wr *wr)
{
	struct weir_req *req;

	wqe->wr = wr;
	wqe->op = wr->req->op;
	wqe->rkey = wr->req->rkey;
	wqe->remote = wr->req->remote + wr->offset;
	wqe->compare = wr->req->compare;
	wqe->operand = wr->req->operand;
	wqe->nr_sge = wr->nr_sge;
	memcpy(wqe->sge, wr->sge, wr->nr_sge * sizeof(*wr->sge));
	wqe->length = wr->length;
	wqe->nr_reqs = 0;
	wqe->is_done = false;
	for (req = wr->req; req; req = req->merge_next)
		wqe->reqs[wqe->nr_reqs++] = (uint16_t)hunt_request_of(req)->number;
}

/* The engine learns which WRs could not be posted. */
static void complete_unsent(struct hunt_qp *qp)
{
	uint32_t i;

	for (i = 0; i < qp->nr_unsent; i++) {
		struct weir_wc wc = { qp->unsent[i], -ENOTCONN };

		hunt_watch_unsent(qp, wc.wr);
		weir_engine_completed(&qp->session->engine, &wc, hunt_now_ns(qp->session->hunt));
	}
	qp->nr_unsent = 0;
}

static void report_unsent(struct sim_event *event)
{
	struct hunt_qp *qp = container_of(event, struct hunt_qp, report_unsent);

	hunt_note(qp->session->hunt, "tell", qp->session->number, qp->number, qp->nr_unsent);
	complete_unsent(qp);
	hunt_host_pull(qp->session);
	come_to_complete(qp);
}

/* The engine may post more meanwhile: its other threads do not know yet. */
static void refuse_access(struct hunt_qp *qp, struct weir_wr *wr)
{
	struct hunt *h = qp->session->hunt;

	for (; wr; wr = wr->next)
		qp->unsent[qp->nr_unsent++] = wr;
	if (sim_event_is_scheduled(&qp->report_unsent))
		return;
	if (hunt_dice(&h->net, 800))
		sim_clock_in(&h->clock, &qp->report_unsent, 10 * hunt_while(&h->net));
	else
		complete_unsent(qp);
}

void hunt_qp_post(struct hunt_qp *qp, struct weir_wr *wr)
{
	struct hunt *h = qp->session->hunt;
	struct weir_wr *first = wr;
	uint32_t before = qp->count;

	for (; wr; wr = wr->next) {
		if (hunt_dice(&h->net, h->refusal))
			break;
		hunt_expect(h, qp->count < h->depth, "channel %u is overfilled", qp->number);
		if (qp->count == HUNT_WRS)
			break;
		wqe_fill(wqe_at(qp, qp->count++), wr);
	}
	if (wr != first)
		weir_in_flight_append(&qp->link.in_flight, first, qp->count - before);
	if (!hunt_qp_is_up(qp))
		give_up(qp, false); /* a QP in the error state sends nothing */
	else if (qp->next < qp->count && !sim_event_is_scheduled(&qp->execute))
		sim_clock_in(&h->clock, &qp->execute, hunt_while(&h->net));
	if (wr)
		refuse_access(qp, wr);
}

void hunt_qp_init(struct hunt_qp *qp, struct hunt_session *s, uint16_t number)
{
	qp->session = s;
	qp->number = number;
	qp->execute.happen = execute;
	qp->complete.happen = complete;
	qp->arrive.happen = arrive;
	qp->reconnect.happen = reconnect;
	qp->report_unsent.happen = report_unsent;
	weir_link_up(&qp->link);
	weir_engine_channel_up(&s->engine, number, s->hunt->depth);
}
