// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Requests. RC: a request in order takes effect; a duplicate is acknowledged, never executed
 * again; a request past a gap is dropped, and the first such request is answered by a NAK (9.7.5).
 * UC: a message with a gap is dropped, and the next message starts afresh (9.8.2). UD: each
 * packet is a message (9.8.3).
 */
#include <errno.h>

#include "softnic/roce/psn.h"
#include "softnic/roce/responder.h"

/*
 * UC has no acknowledgements: a network that repeats or reorders would deliver twice. A message
 * that begins at most this many packets late is dropped. A larger distance is taken for a loss of
 * many packets, so that a forged PSN cannot close the queue pair.
 */
enum { UC_LATE_MAX = 4096 };

void roce_responder_init(struct roce_qp *qp)
{
	qp->resp.expected = roce_psn_first(qp->config.receive_psn);
}

static void drop_message(struct roce_qp *qp)
{
	struct roce_responder *r = &qp->resp;

	if (r->has_receive)
		qp->config.ops->give_back(qp->config.host);
	r->has_receive = false;
	r->message = 0;
}

void roce_responder_end(struct roce_qp *qp)
{
	drop_message(qp);
	qp->resp.is_failed = true;
}

static void finish(struct roce_qp *qp, const struct roce_packet *p, enum roce_status status)
{
	uint32_t traits = roce_packet_traits(p->opcode);
	const struct roce_arrival arrival = {
		.status = status,
		.is_write = traits & ROCE_IS_WRITE,
		.is_solicited = p->is_solicited || status,
		.has_imm = traits & ROCE_HAS_IMM,
		.has_inv = traits & ROCE_HAS_INV,
		.imm = p->imm,
		.bytes = (uint32_t)qp->resp.offset,
		.src_qpn = p->src_qpn,
	};

	qp->resp.has_receive = false;
	qp->config.ops->finish(qp->config.host, &arrival);
}

static uint8_t take_receive(struct roce_qp *qp)
{
	struct roce_responder *r = &qp->resp;
	int64_t room;

	if (r->has_receive)
		return 0;
	room = qp->config.ops->take(qp->config.host);
	if (room < 0)
		return ROCE_SYNDROME_RNR | qp->config.rnr_timer;
	r->has_receive = true;
	r->room = room;
	return 0;
}

static uint8_t accept_send(struct roce_qp *qp, const struct roce_packet *p, uint32_t traits)
{
	struct roce_responder *r = &qp->resp;
	const struct roce_ops *ops = qp->config.ops;
	uint8_t syndrome = take_receive(qp);
	enum roce_status status;

	if (syndrome)
		return syndrome;
	if (p->payload_bytes > r->room - r->offset) {
		finish(qp, p, ROCE_LOC_LEN);
		return ROCE_NAK_INVALID;
	}
	status = ops->place(qp->config.host, r->offset, p->payload, p->payload_bytes);
	if (status) {
		finish(qp, p, ROCE_LOC_PROT);
		return ROCE_NAK_OPERATION;
	}
	r->offset += p->payload_bytes;
	if (traits & ROCE_HAS_INV && ops->invalidate(qp->config.host, p->imm))
		return ROCE_NAK_ACCESS;
	if (traits & ROCE_IS_END)
		finish(qp, p, ROCE_SUCCESS);
	return 0;
}

/* The whole range is checked before the first byte is written, and each packet's range again. */
static uint8_t accept_write(struct roce_qp *qp, const struct roce_packet *p, uint32_t traits)
{
	struct roce_responder *r = &qp->resp;
	const struct roce_ops *ops = qp->config.ops;
	uint8_t syndrome = 0;

	if (traits & ROCE_IS_START) {
		r->rkey = p->rkey;
		r->addr = p->addr;
		r->length = p->dma_bytes;
		if (r->length > ROCE_MESSAGE_MAX)
			return ROCE_NAK_INVALID;
		if (ops->check(qp->config.host, r->rkey, ROCE_RIGHT_WRITE, r->addr, r->length))
			return ROCE_NAK_ACCESS;
	}
	if (p->payload_bytes > r->length - r->offset)
		return ROCE_NAK_INVALID;
	if (traits & ROCE_IS_END && r->offset + p->payload_bytes != r->length)
		return ROCE_NAK_INVALID;
	if (traits & ROCE_HAS_IMM)
		syndrome = take_receive(qp);
	if (syndrome)
		return syndrome;
	if (p->payload_bytes &&
	    ops->write(qp->config.host, r->rkey, r->addr + r->offset, p->payload, p->payload_bytes))
		return ROCE_NAK_ACCESS;
	r->offset += p->payload_bytes;
	if (traits & ROCE_HAS_IMM)
		finish(qp, p, ROCE_SUCCESS);
	return 0;
}

/* Sends and writes. Return: 0, or the syndrome of the NAK. */
static uint8_t accept_message(struct roce_qp *qp, const struct roce_packet *p, uint32_t traits)
{
	struct roce_responder *r = &qp->resp;
	uint32_t kind = traits & (ROCE_IS_SEND | ROCE_IS_WRITE);
	uint8_t syndrome;

	if (r->message != (traits & ROCE_IS_START ? 0 : kind))
		return ROCE_NAK_INVALID;
	if (p->payload_bytes > qp->config.mtu ||
	    (!(traits & ROCE_IS_END) && p->payload_bytes != qp->config.mtu) ||
	    (!(traits & ROCE_IS_START) && !p->payload_bytes))
		return ROCE_NAK_INVALID;
	if (traits & ROCE_IS_START)
		r->offset = 0;
	syndrome = kind == ROCE_IS_SEND ? accept_send(qp, p, traits) : accept_write(qp, p, traits);
	if (syndrome)
		return syndrome;
	r->message = traits & ROCE_IS_END ? 0 : kind;
	r->expected++;
	if (traits & ROCE_IS_END)
		r->msn = (r->msn + 1) & ROCE_PSN_MASK;
	return 0;
}

static void accept_in_order(struct roce_qp *qp, const struct roce_packet *p, uint32_t traits)
{
	struct roce_responder *r = &qp->resp;
	uint64_t psn = r->expected;
	bool is_message = traits & (ROCE_IS_SEND | ROCE_IS_WRITE);
	uint8_t syndrome;

	r->has_gap = false;
	r->nak = 0;
	if (is_message)
		syndrome = accept_message(qp, p, traits);
	else
		syndrome = r->message ? ROCE_NAK_INVALID : roce_responder_answer(qp, p);
	if (syndrome)
		roce_responder_nak(qp, syndrome, psn);
	else if (is_message)
		r->owes_ack |= p->wants_ack;
}

/* The peer asks whether this end lives: requester.c */
static bool is_question(const struct roce_packet *p, uint32_t traits)
{
	return traits & ROCE_IS_WRITE && traits & ROCE_HAS_RETH && !p->dma_bytes;
}

static void receive_reliable(struct roce_qp *qp, const struct roce_packet *p, uint32_t traits)
{
	struct roce_responder *r = &qp->resp;
	uint64_t psn = roce_psn_extend(p->psn, r->expected);

	if (psn == r->expected) {
		accept_in_order(qp, p, traits);
	} else if (psn > r->expected) {
		qp->counters.gaps++;
		if (!r->has_gap)
			roce_responder_nak(qp, ROCE_NAK_SEQUENCE, r->expected);
	} else {
		qp->counters.duplicates += !is_question(p, traits);
		if (traits & (ROCE_IS_SEND | ROCE_IS_WRITE))
			r->owes_ack = true;
		else
			roce_responder_answer_again(qp, p, psn);
	}
}

static void receive_unreliable(struct roce_qp *qp, const struct roce_packet *p, uint32_t traits)
{
	struct roce_responder *r = &qp->resp;
	uint64_t psn = roce_psn_extend(p->psn, r->expected);

	if (psn < r->expected && r->expected - psn <= UC_LATE_MAX) {
		qp->counters.duplicates++;
		return;
	}
	if (psn != r->expected) {
		qp->counters.gaps++;
		drop_message(qp);
	}
	if (traits & ROCE_IS_START) {
		drop_message(qp);
		r->expected = psn;
	}
	if (psn != r->expected)
		return;
	if (accept_message(qp, p, traits)) {
		drop_message(qp);
		r->expected++;
	}
}

/* A receive that is too short stays for the next datagram: its program would see no error. */
static void receive_datagram(struct roce_qp *qp, const struct roce_packet *p, const uint8_t *grh)
{
	struct roce_responder *r = &qp->resp;
	const struct roce_ops *ops = qp->config.ops;
	enum roce_status status;

	if (take_receive(qp))
		return;
	if (ROCE_GRH_BYTES + p->payload_bytes > r->room) {
		drop_message(qp);
		return;
	}
	r->offset = ROCE_GRH_BYTES + p->payload_bytes;
	status = ops->place(qp->config.host, 0, grh, ROCE_GRH_BYTES);
	if (!status)
		status = ops->place(qp->config.host, ROCE_GRH_BYTES, p->payload, p->payload_bytes);
	finish(qp, p, status);
}

void roce_responder_input(struct roce_qp *qp, const struct roce_packet *p, const uint8_t *grh)
{
	uint32_t traits = roce_packet_traits(p->opcode);

	if (qp->resp.is_failed)
		return;
	switch (qp->config.transport) {
	case ROCE_RC:
		receive_reliable(qp, p, traits);
		break;
	case ROCE_UC:
		receive_unreliable(qp, p, traits);
		break;
	default:
		receive_datagram(qp, p, grh);
	}
}
