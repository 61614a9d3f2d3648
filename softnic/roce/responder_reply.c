// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Responses of RC, in order of their PSNs: data of reads and atomics first, then one NAK or
 * acknowledgement, which covers all requests before it.
 *
 * A ring keeps the last reads and atomics, as many as the peer may have in flight. A duplicate
 * read is executed again, from the first response that the peer lacks. A duplicate atomic gets
 * the result that the ring keeps (9.7.5). The response to an atomic write is that of an empty read.
 */
#include <string.h>

#include "softnic/roce/psn.h"
#include "softnic/roce/requester.h"
#include "softnic/roce/responder.h"

static struct roce_resource *resource_at(struct roce_qp *qp, uint64_t position)
{
	return &qp->config.resources[position % qp->config.max_dest_rd_atomic];
}

static void set_pending(struct roce_qp *qp, struct roce_resource *res, bool is_pending)
{
	qp->resp.nr_pending += is_pending - res->is_pending;
	res->is_pending = is_pending;
}

static enum roce_status failure_of(uint8_t syndrome)
{
	switch (syndrome) {
	case ROCE_NAK_ACCESS:
		return ROCE_REM_ACCESS;
	case ROCE_NAK_OPERATION:
		return ROCE_REM_OP;
	default:
		return ROCE_REM_INV_REQ;
	}
}

void roce_responder_nak(struct roce_qp *qp, uint8_t syndrome, uint64_t psn)
{
	struct roce_responder *r = &qp->resp;

	r->has_gap = true;
	r->owes_ack = false;
	r->nak = syndrome;
	r->nak_psn = psn;
	if ((syndrome & ROCE_SYNDROME_MASK) == ROCE_SYNDROME_RNR || syndrome == ROCE_NAK_SEQUENCE)
		return;
	qp->error = failure_of(syndrome);
	roce_requester_fail(qp, ROCE_FLUSHED);
	roce_responder_end(qp);
}

static bool is_read(const struct roce_resource *res)
{
	return res->request == ROCE_READ_REQUEST;
}

static bool is_valid_atomic(const struct roce_packet *p)
{
	if (p->opcode == ROCE_ATOMIC_WRITE &&
	    (p->payload_bytes != sizeof(uint64_t) || p->dma_bytes != sizeof(uint64_t)))
		return false;
	return !(p->addr % sizeof(uint64_t));
}

static uint8_t execute(struct roce_qp *qp, const struct roce_packet *p, struct roce_resource *res)
{
	const struct roce_ops *ops = qp->config.ops;
	enum roce_status status;

	if (!is_read(res)) {
		if (!is_valid_atomic(p))
			return ROCE_NAK_INVALID;
		status = ops->atomic(qp->config.host, p, &res->original);
	} else {
		if (p->dma_bytes > ROCE_MESSAGE_MAX)
			return ROCE_NAK_INVALID;
		status = ops->check(qp->config.host, p->rkey, ROCE_RIGHT_READ, p->addr,
				    p->dma_bytes);
	}
	return status ? ROCE_NAK_ACCESS : 0;
}

uint8_t roce_responder_answer(struct roce_qp *qp, const struct roce_packet *p)
{
	struct roce_responder *r = &qp->resp;
	struct roce_resource *to, res = {
		.first = r->expected,
		.end = r->expected + 1,
		.begun = r->expected,
		.next = r->expected,
		.addr = p->addr,
		.rkey = p->rkey,
		.length = p->dma_bytes,
		.request = p->opcode,
	};
	uint8_t syndrome;

	if (!qp->config.max_dest_rd_atomic)
		return ROCE_NAK_INVALID;
	to = resource_at(qp, r->newest);
	if (to->is_pending && !to->is_again) /* the peer has more in flight than agreed */
		return ROCE_NAK_INVALID;
	syndrome = execute(qp, p, &res);
	if (syndrome)
		return syndrome;
	if (res.length)
		res.end = res.first + (res.length - 1) / qp->config.mtu + 1;
	set_pending(qp, to, false);
	*to = res;
	set_pending(qp, to, true);
	r->newest++;
	r->expected = res.end;
	r->msn = (r->msn + 1) & ROCE_PSN_MASK;
	return 0;
}

/* The same request, or the rest of the same read? */
static bool is_again(const struct roce_qp *qp, const struct roce_resource *res,
		     const struct roce_packet *p, uint64_t psn)
{
	uint64_t offset = (psn - res->first) * qp->config.mtu;

	if (psn < res->first || psn >= res->end || p->rkey != res->rkey ||
	    p->opcode != res->request)
		return false;
	if (!is_read(res))
		return p->addr == res->addr;
	return p->addr == res->addr + offset && p->dma_bytes == res->length - offset;
}

void roce_responder_answer_again(struct roce_qp *qp, const struct roce_packet *p, uint64_t psn)
{
	uint32_t i;

	for (i = 0; i < qp->config.max_dest_rd_atomic && i < qp->resp.newest; i++) {
		struct roce_resource *res = resource_at(qp, qp->resp.newest - 1 - i);

		if (!is_again(qp, res, p, psn))
			continue;
		res->is_again |= !res->is_pending;
		res->begun = res->next = psn;
		set_pending(qp, res, true);
		return;
	}
}

static uint8_t credits(const struct roce_qp *qp)
{
	int64_t receives = qp->config.ops->receives(qp->config.host);

	if (receives < 0)
		return ROCE_CREDITS_UNKNOWN;
	return roce_packet_credits((uint32_t)receives + qp->resp.has_receive);
}

/* The oldest resource with responses to send; there is one. */
static struct roce_resource *oldest_pending(struct roce_qp *qp)
{
	uint64_t at = qp->resp.newest;

	while (!resource_at(qp, at)->is_pending)
		at++;
	return resource_at(qp, at);
}

static uint8_t opcode_of(const struct roce_resource *res, bool is_first)
{
	bool is_last = res->next + 1 == res->end;

	if (!is_read(res) && res->request != ROCE_ATOMIC_WRITE)
		return ROCE_ATOMIC_ACK;
	if (is_last)
		return is_first ? ROCE_READ_ONLY : ROCE_READ_LAST;
	return is_first ? ROCE_READ_FIRST : ROCE_READ_MIDDLE;
}

/* The first response to each request is FIRST or ONLY, also if the request was repeated. */
static size_t respond(struct roce_qp *qp, uint8_t *bytes)
{
	const struct roce_config *c = &qp->config;
	struct roce_resource *res = oldest_pending(qp);
	uint64_t offset = (res->next - res->first) * c->mtu;
	uint32_t left = is_read(res) ? (uint32_t)(res->length - offset) : 0;
	struct roce_packet p = {
		.opcode = opcode_of(res, res->next == res->begun),
		.pkey = ROCE_PKEY_DEFAULT,
		.psn = roce_psn_wire(res->next),
		.dest_qpn = c->dest_qpn,
		.syndrome = ROCE_SYNDROME_ACK | credits(qp),
		.msn = qp->resp.msn,
		.original = res->original,
		.payload_bytes = left < c->mtu ? left : c->mtu,
	};
	size_t length = roce_packet_encode(&p, bytes);

	if (p.payload_bytes &&
	    c->ops->read(c->host, res->rkey, res->addr + offset, bytes + length, p.payload_bytes)) {
		uint64_t psn = res->next;

		qp->resp.nr_pending = 0;
		roce_responder_nak(qp, ROCE_NAK_ACCESS, psn);
		return 0;
	}
	if (++res->next == res->end)
		set_pending(qp, res, false);
	length += p.payload_bytes;
	qp->counters.bytes_out += p.payload_bytes;
	return length + roce_packet_pad(bytes + length, p.payload_bytes);
}

static size_t acknowledge(struct roce_qp *qp, uint8_t *bytes)
{
	struct roce_responder *r = &qp->resp;
	const struct roce_packet p = {
		.opcode = ROCE_ACK,
		.pkey = ROCE_PKEY_DEFAULT,
		.psn = roce_psn_wire(r->nak ? r->nak_psn : r->expected - 1),
		.dest_qpn = qp->config.dest_qpn,
		.syndrome = r->nak ? r->nak : ROCE_SYNDROME_ACK | credits(qp),
		.msn = r->msn,
	};
	bool is_rnr = (r->nak & ROCE_SYNDROME_MASK) == ROCE_SYNDROME_RNR;

	if (!r->nak && !r->owes_ack)
		return 0;
	qp->counters.rnr_out += is_rnr;
	qp->counters.naks_out += r->nak && !is_rnr;
	r->nak = 0;
	r->owes_ack = false;
	return roce_packet_encode(&p, bytes);
}

size_t roce_responder_output(struct roce_qp *qp, uint8_t *bytes)
{
	size_t length = 0;

	if (qp->resp.nr_pending)
		length = respond(qp, bytes);
	return length || qp->resp.nr_pending ? length : acknowledge(qp, bytes);
}
