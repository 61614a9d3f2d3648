// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Responses: acknowledgements, NAKs, data of reads and atomics (9.7.5, 9.7.6). A response with PSN
 * p acknowledges everything before p. If a read or atomic before p lacks its data, the response
 * with these data was lost, and the requester goes back ("implied NAK").
 *
 * The requester goes back once between two steps of progress, whatever arrives; then it waits for
 * the timeout. A repeated or late NAK so costs nothing.
 */
#include <string.h>

#include "softnic/roce/psn.h"
#include "softnic/roce/requester.h"
#include "softnic/roce/rnr_timer.h"

#define HINT_NS 100000000ull

static void progressed(struct roce_qp *qp, uint64_t packets, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;

	roce_rate_acked(&r->rate, packets);
	if (r->next < r->acked)
		r->next = r->acked;
	r->has_rewound = false;
	r->retries_left = qp->config.retries;
	r->rnr_left = qp->config.rnr_retries;
	r->wait_until_ns = 0;
	r->deadline_ns = ROCE_NEVER;
	roce_timeout_answered(&r->timeout, r->acked, r->next != r->acked, now_ns);
	if (r->next != r->acked && qp->config.timeout)
		r->deadline_ns = now_ns + roce_timeout_ns(&r->timeout);
	roce_requester_end_stuck(qp);
}

/* Acknowledges all before @psn. Return: false if data are missing before it. */
static bool acknowledge(struct roce_qp *qp, uint64_t psn, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;
	uint64_t before = r->acked;
	bool is_whole = true;

	while (r->acked < psn && is_whole) {
		const struct roce_wqe *wqe = roce_requester_wqe(qp, r->done);

		is_whole = !roce_requester_expects_data(wqe);
		if (is_whole)
			r->acked = psn < wqe->end ? psn : wqe->end;
		if (r->acked == wqe->end)
			roce_requester_end(qp);
	}
	if (r->acked != before)
		progressed(qp, r->acked - before, now_ns);
	return is_whole;
}

/* Return: false if the queue pair has failed. */
static bool take_retry(struct roce_qp *qp)
{
	if (!qp->req.retries_left) {
		roce_requester_fail(qp, ROCE_RETRY_EXC);
		return false;
	}
	qp->req.retries_left--;
	return true;
}

/* A response or request was lost. */
static void go_back(struct roce_qp *qp)
{
	struct roce_requester *r = &qp->req;

	if (r->has_rewound || r->wait_until_ns || !take_retry(qp))
		return;
	roce_timeout_heard(&r->timeout);
	roce_rate_lost(&r->rate, r->acked, r->sent, false);
	roce_requester_rewind(qp);
}

static void receiver_not_ready(struct roce_qp *qp, uint8_t timer, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;

	qp->counters.rnr_in++;
	if (r->wait_until_ns)
		return;
	if (!r->rnr_left) {
		roce_requester_fail(qp, ROCE_RNR_RETRY_EXC);
		return;
	}
	if (qp->config.rnr_retries != ROCE_RNR_FOR_EVER)
		r->rnr_left--;
	roce_timeout_heard(&r->timeout);
	roce_requester_rewind(qp);
	r->wait_until_ns = now_ns + roce_rnr_ns(timer);
}

/* The responder's receives, as of its message number (9.7.7). */
static void learn_credits(struct roce_requester *r, const struct roce_packet *p)
{
	uint8_t code = p->syndrome & ~ROCE_SYNDROME_MASK;

	r->has_limit = code != ROCE_CREDITS_UNKNOWN;
	if (r->has_limit)
		r->limit = (p->msn + roce_packet_receives(code)) & ROCE_PSN_MASK;
}

static void refused(struct roce_qp *qp, uint8_t syndrome)
{
	qp->counters.naks_in++;
	switch (syndrome) {
	case ROCE_NAK_SEQUENCE:
		go_back(qp);
		break;
	case ROCE_NAK_INVALID:
		roce_requester_fail(qp, ROCE_REM_INV_REQ);
		break;
	case ROCE_NAK_ACCESS:
		roce_requester_fail(qp, ROCE_REM_ACCESS);
		break;
	case ROCE_NAK_OPERATION:
		roce_requester_fail(qp, ROCE_REM_OP);
		break;
	default:
		qp->counters.stray++;
	}
}

static void acknowledged(struct roce_qp *qp, const struct roce_packet *p, uint64_t psn,
			 uint64_t now_ns)
{
	bool is_ack = (p->syndrome & ROCE_SYNDROME_MASK) == ROCE_SYNDROME_ACK;

	if (is_ack)
		learn_credits(&qp->req, p);
	if (!acknowledge(qp, psn + is_ack, now_ns))
		go_back(qp);
	else if ((p->syndrome & ROCE_SYNDROME_MASK) == ROCE_SYNDROME_RNR)
		receiver_not_ready(qp, p->syndrome, now_ns);
	else if (!is_ack)
		refused(qp, p->syndrome);
}

/* Does the packet fit the place in the read? A forged or stale response does not. */
static bool is_response_of(const struct roce_qp *qp, const struct roce_wqe *wqe,
			   const struct roce_packet *p, uint64_t psn)
{
	uint32_t mtu = qp->config.mtu, left = wqe->length - (uint32_t)(psn - wqe->first) * mtu;
	bool is_last = psn + 1 == roce_requester_request_end(qp, wqe, psn);

	if (wqe->op == ROCE_OP_ATOMIC_WRITE)
		return p->opcode == ROCE_READ_ONLY && !p->payload_bytes;
	if (wqe->op != ROCE_OP_READ)
		return wqe->op > ROCE_OP_READ && p->opcode == ROCE_ATOMIC_ACK;
	return p->opcode != ROCE_ATOMIC_ACK && p->payload_bytes == (left < mtu ? left : mtu) &&
	       is_last == !!(roce_packet_traits(p->opcode) & ROCE_IS_END);
}

/* A response is taken: was it the last of a request that is out since the queue pair went back? */
static void request_answered(struct roce_qp *qp, const struct roce_wqe *wqe, uint64_t psn)
{
	if (psn + 1 == roce_requester_request_end(qp, wqe, psn) && psn < qp->req.next)
		qp->req.reads_out--;
}

static void take_data(struct roce_qp *qp, const struct roce_packet *p, uint64_t psn,
		      uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;
	const struct roce_wqe *wqe;
	const uint8_t *from = p->payload;
	uint32_t offset, bytes = p->payload_bytes;
	enum roce_status status = ROCE_SUCCESS;

	if (!acknowledge(qp, psn, now_ns)) {
		go_back(qp);
		return;
	}
	wqe = roce_requester_wqe(qp, r->done);
	offset = (uint32_t)(psn - wqe->first) * qp->config.mtu;
	if (!is_response_of(qp, wqe, p, psn)) {
		qp->counters.stray++;
		return;
	}
	if (p->opcode == ROCE_ATOMIC_ACK) {
		from = (const uint8_t *)&p->original;
		bytes = sizeof(p->original);
	}
	if (bytes)
		status = qp->config.ops->scatter(qp->config.host, wqe, offset, from, bytes);
	if (status) {
		roce_requester_fail(qp, status);
		return;
	}
	if (roce_packet_traits(p->opcode) & ROCE_HAS_AETH)
		learn_credits(r, p);
	request_answered(qp, wqe, psn);
	r->acked = psn + 1;
	if (r->acked == wqe->end)
		roce_requester_end(qp);
	progressed(qp, 1, now_ns);
}

void roce_requester_input(struct roce_qp *qp, const struct roce_packet *p, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;
	uint64_t psn = roce_psn_extend(p->psn, r->acked);

	if (r->is_failed || psn < r->acked || psn >= r->sent)
		qp->counters.stray++;
	else if (p->opcode == ROCE_ACK)
		acknowledged(qp, p, psn, now_ns);
	else
		take_data(qp, p, psn, now_ns);
}

void roce_requester_heard(struct roce_qp *qp, uint64_t now_ns)
{
	qp->req.heard_ns = now_ns ? now_ns : 1;
	qp->req.asks = 0;
	qp->req.must_ask = false;
}

/* While something is in flight, its own deadline tells a dead peer. */
static uint64_t ask_at_ns(const struct roce_qp *qp)
{
	const struct roce_requester *r = &qp->req;

	if (qp->config.transport != ROCE_RC || !qp->config.idle_ns || !r->heard_ns || r->is_failed)
		return ROCE_NEVER;
	return r->heard_ns + qp->config.idle_ns;
}

static void ask_again(struct roce_qp *qp, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;

	r->heard_ns = now_ns;
	if (r->asks++ < ROCE_ASKS) {
		r->must_ask = true;
		return;
	}
	qp->is_lost = true;
	roce_requester_fail(qp, ROCE_RETRY_EXC);
}

void roce_qp_ask(struct roce_qp *qp, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;

	if (qp->config.transport != ROCE_RC || r->is_failed ||
	    (r->hinted_ns && now_ns - r->hinted_ns < HINT_NS))
		return;
	r->hinted_ns = now_ns;
	r->must_ask = true;
}

uint64_t roce_qp_deadline_ns(const struct roce_qp *qp)
{
	const struct roce_requester *r = &qp->req;

	if (r->wait_until_ns)
		return r->wait_until_ns;
	return r->deadline_ns != ROCE_NEVER ? r->deadline_ns : ask_at_ns(qp);
}

void roce_qp_expired(struct roce_qp *qp, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;

	if (now_ns < roce_qp_deadline_ns(qp))
		return;
	if (r->wait_until_ns) {
		r->wait_until_ns = 0;
		r->has_rewound = false;
		return;
	}
	if (r->deadline_ns == ROCE_NEVER) {
		ask_again(qp, now_ns);
		return;
	}
	qp->counters.timeouts++;
	if (roce_timeout_expired(&r->timeout, now_ns) && !take_retry(qp))
		return;
	roce_rate_lost(&r->rate, r->acked, r->sent, true);
	roce_requester_rewind(qp);
}
