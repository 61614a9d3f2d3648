// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The programs: accept, reject, wait, disconnect and release at random. They check each event
 * against all that has happened to its call.
 */
#include <string.h>

#include "cm_hunt.h"

/* A program acts some time from now, always before the peer gives up. */
static void plan(struct cm_hunt *h, uint32_t host, uint32_t view, uint64_t within_ns)
{
	uint32_t i;

	for (i = 0; i < PLANS_MAX && h->plans[i].is_used; i++)
		;
	expect(h, i < PLANS_MAX, "the hunt's list is full");
	if (i == PLANS_MAX)
		return;
	h->plans[i] = (struct planned_act){ h->now_ns + 1 + sim_rng_below(&h->rng, within_ns), host,
					    view, h->hosts[host].incarnation, true };
}

static uint32_t view_of(struct cm_hunt *h, uint32_t host, const struct roce_cm_conn *conn)
{
	uint32_t i;

	for (i = 0; i < CONNS && h->hosts[host].views[i].conn != conn; i++)
		;
	return i;
}

static uint32_t take_view(struct cm_hunt *h, uint32_t host, struct roce_cm_conn *conn,
			  uint32_t call)
{
	uint32_t i = view_of(h, host, conn);

	expect(h, i == CONNS, "host %u: a connection in use is given away", host);
	i = view_of(h, host, NULL);
	expect(h, i < CONNS, "host %u: more connections than there are", host);
	if (i == CONNS)
		return 0;
	h->hosts[host].views[i] = (struct view){ .conn = conn, .call = call };
	return i;
}

static void release(struct cm_hunt *h, uint32_t host, struct view *view)
{
	struct call *call = &h->calls[view->call];

	if (!view->has_ended) {
		call->may_end = true;
		call->is_rejected |= view->conn->state == ROCE_CM_REQ_RCVD ||
				     view->conn->state == ROCE_CM_REP_RCVD;
		if (!view->is_client)
			call->live_servers = 0;
	}
	roce_cm_release(&h->hosts[host].cm, view->conn, h->now_ns);
	view->conn = NULL;
}

static bool is_in_use(const struct cm_hunt_host *host, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < CONNS; i++)
		if (host->conns[i].state != ROCE_CM_FREE && host->conns[i].qpn == qpn)
			return true;
	return false;
}

/* A queue pair number as the header allows it. Return: 0: none now */
static uint32_t take_qpn(struct cm_hunt *h, uint32_t host, struct call *call)
{
	uint32_t i, first = draw(h, QPNS), qpn;

	for (i = 0; i < QPNS; i++) {
		qpn = 1 + (first + i) % QPNS;
		if (is_in_use(&h->hosts[host], qpn) || is_on_the_way(h, host, qpn))
			continue;
		call->is_second_use |= h->hosts[host].has_used[qpn];
		h->hosts[host].has_used[qpn] = true;
		return qpn;
	}
	return 0;
}

void connect_one(struct cm_hunt *h, uint32_t host)
{
	struct roce_mad req = { .kind = draw(h, 4) ? ROCE_MAD_REQ : ROCE_MAD_SIDR_REQ,
				.remote_timeout = TIMEOUT,
				.local_timeout = TIMEOUT,
				.ack_timeout = WAIT,
				.max_cm_retries = RETRIES };
	struct call *call = &h->calls[h->nr_calls];
	struct roce_cm_conn *conn;
	uint32_t view;

	if (h->nr_calls == CALLS_MAX)
		return;
	*call = (struct call){ .is_sidr = req.kind == ROCE_MAD_SIDR_REQ };
	if (!call->is_sidr)
		req.qpn = take_qpn(h, host, call);
	set_call(&req, h->nr_calls);
	if ((!call->is_sidr && !req.qpn) ||
	    roce_cm_connect(&h->hosts[host].cm, &req, &paths[1 - host], h->now_ns, &conn))
		return;
	view = take_view(h, host, conn, h->nr_calls++);
	h->hosts[host].views[view].is_client = true;
	if (!draw(h, 6))
		plan(h, host, view, 6 * TIMEOUT_NS); /* loses patience */
}

static void reject_one(struct cm_hunt *h, uint32_t host, struct view *view)
{
	h->calls[view->call].is_rejected = true;
	h->calls[view->call].may_end = true;
	expect(h, !roce_cm_reject(&h->hosts[host].cm, view->conn, ROCE_MAD_CONSUMER, NULL, 0),
	       "host %u cannot reject", host);
	release(h, host, view);
}

static void accept_one(struct cm_hunt *h, uint32_t host, struct view *view)
{
	struct roce_mad rep = { .kind = ROCE_MAD_REP };

	rep.qpn = take_qpn(h, host, &h->calls[view->call]);
	if (!rep.qpn) {
		reject_one(h, host, view);
		return;
	}
	set_call(&rep, view->call);
	expect(h, !roce_cm_accept(&h->hosts[host].cm, view->conn, &rep, h->now_ns),
	       "host %u cannot accept", host);
}

static void answer(struct cm_hunt *h, uint32_t host, uint32_t index)
{
	struct view *view = &h->hosts[host].views[index];
	bool is_request = view->conn->state == ROCE_CM_REQ_RCVD;

	if (!draw(h, 8)) {
		reject_one(h, host, view);
	} else if (!draw(h, 4)) {
		expect(h, !roce_cm_wait(&h->hosts[host].cm, view->conn, TIMEOUT),
		       "host %u cannot ask for patience", host);
		plan(h, host, index, TIMEOUT_NS / 4);
	} else if (is_request) {
		accept_one(h, host, view);
	} else {
		expect(h, !roce_cm_confirm(&h->hosts[host].cm, view->conn),
		       "host %u cannot confirm", host);
		h->calls[view->call].is_confirmed = true;
		view->is_established = true;
		plan(h, host, index, 20 * TIMEOUT_NS);
	}
}

void act(struct cm_hunt *h, const struct planned_act *plan)
{
	struct view *view = &h->hosts[plan->host].views[plan->view];

	if (plan->incarnation != h->hosts[plan->host].incarnation || !view->conn)
		return;
	if (view->has_ended) {
		release(h, plan->host, view);
		return;
	}
	if (view->conn->state == ROCE_CM_REQ_RCVD || view->conn->state == ROCE_CM_REP_RCVD) {
		answer(h, plan->host, plan->view);
		return;
	}
	h->calls[view->call].may_end = true;
	if (view->conn->state == ROCE_CM_ESTABLISHED && draw(h, 4))
		expect(h, !roce_cm_disconnect(&h->hosts[plan->host].cm, view->conn, h->now_ns),
		       "host %u cannot disconnect", plan->host);
	else if (view->is_client || view->is_established)
		release(h, plan->host, view);
}

/* A question is answered at once, and forgotten when its time wait is over. */
static void answer_sidr(struct cm_hunt *h, uint32_t host, const struct roce_cm_event *event)
{
	struct roce_mad rep = { .kind = ROCE_MAD_SIDR_REP };

	set_call(&rep, call_of(event->mad));
	rep.qpn = call_of(event->mad) + 1;
	expect(h, !roce_cm_accept(&h->hosts[host].cm, event->conn, &rep, h->now_ns),
	       "host %u cannot answer", host);
	roce_cm_release(&h->hosts[host].cm, event->conn, h->now_ns);
}

static void hear_request(struct cm_hunt *h, uint32_t host, const struct roce_cm_event *event)
{
	struct call *call = &h->calls[call_of(event->mad)];
	uint32_t i, view;

	if (event->conn->path.peer[0] == STRANGER + 1) {
		roce_cm_reject(&h->hosts[host].cm, event->conn, ROCE_MAD_CONSUMER, NULL, 0);
		roce_cm_release(&h->hosts[host].cm, event->conn, h->now_ns);
		return;
	}
	if (call->is_sidr) {
		answer_sidr(h, host, event);
		return;
	}
	for (i = 0; i < CONNS; i++) {
		struct roce_cm_conn *other = &h->hosts[host].conns[i];

		expect(h,
		       other == event->conn || other->is_sidr || other->state == ROCE_CM_FREE ||
			       other->state == ROCE_CM_REQ_SENT || other->state == ROCE_CM_ENDED ||
			       other->remote_qpn != event->mad->qpn,
		       "host %u has two connections with one queue pair", host);
	}
	expect(h, !call->live_servers++, "host %u hears twice of call %u", host,
	       call_of(event->mad));
	view = take_view(h, host, event->conn, call_of(event->mad));
	plan(h, host, view, TIMEOUT_NS / 4);
}

static void hear_reply(struct cm_hunt *h, uint32_t host, uint32_t index, const struct roce_mad *rep)
{
	struct view *view = &h->hosts[host].views[index];

	expect(h, view->is_client && !view->has_reply, "host %u: second reply", host);
	expect(h, call_of(rep) == view->call, "host %u: another call's reply", host);
	view->has_reply = true;
	if (h->calls[view->call].is_sidr) {
		expect(h, rep->qpn == view->call + 1, "host %u: another queue pair", host);
		view->has_ended = true;
	}
	plan(h, host, index, TIMEOUT_NS / 4);
}

/* A rejection has a reason that is true. */
static bool is_true(const struct call *call, uint16_t reason)
{
	switch (reason) {
	case ROCE_MAD_CONSUMER:
		return call->is_rejected;
	case ROCE_MAD_STALE:
		return call->is_second_use;
	case ROCE_MAD_NO_RESOURCES:
		return call->is_crowded;
	case ROCE_MAD_TIMEOUT:
	case ROCE_MAD_INVALID_ID:
		return call->may_end;
	default:
		return false;
	}
}

static void hear_end(struct cm_hunt *h, uint32_t host, struct view *view,
		     const struct roce_cm_event *event)
{
	struct call *call = &h->calls[view->call];

	if (event->kind == ROCE_CM_UNREACHABLE) {
		expect(h,
		       !h->is_faithful || h->now_ns < h->faithful_since_ns + 6 * TIMEOUT_NS ||
			       (call->is_sidr && call->is_crowded),
		       "host %u does not reach its peer over a faithful network", host);
		call->may_end = true;
	}
	if (event->kind == ROCE_CM_REJECTED) {
		expect(h, is_true(call, event->mad->reason),
		       "host %u: call %u is rejected for a false reason: %u", host, view->call,
		       event->mad->reason);
		call->may_end = true;
	}
	if (event->kind == ROCE_CM_DISCONNECTED) {
		expect(h, call->may_end, "host %u: call %u is disconnected without a reason", host,
		       view->call);
		return;
	}
	view->has_ended = true;
	if (!view->is_client)
		call->live_servers = 0;
	plan(h, host, (uint32_t)(view - h->hosts[host].views), TIMEOUT_NS);
}

void hear(struct cm_hunt *h, uint32_t host)
{
	struct roce_cm_event event;
	struct view *view;
	uint32_t i;

	while (!h->is_broken && roce_cm_next_event(&h->hosts[host].cm, &event)) {
		if (event.kind == ROCE_CM_REQUEST) {
			hear_request(h, host, &event);
			continue;
		}
		i = view_of(h, host, event.conn);
		expect(h, i < CONNS, "host %u hears of a connection it has released", host);
		if (i == CONNS)
			return;
		view = &h->hosts[host].views[i];
		expect(h, !view->has_ended, "host %u hears of a connection at its end", host);
		if (event.kind == ROCE_CM_REPLY) {
			hear_reply(h, host, i, event.mad);
		} else if (event.kind == ROCE_CM_IS_ESTABLISHED) {
			expect(h, !view->is_client && !view->is_established,
			       "host %u: established twice", host);
			expect(h, h->calls[view->call].is_confirmed,
			       "host %u: call %u is established but not confirmed", host,
			       view->call);
			view->is_established = true;
			plan(h, host, i, 20 * TIMEOUT_NS);
		} else {
			hear_end(h, host, view, &event);
		}
	}
}
