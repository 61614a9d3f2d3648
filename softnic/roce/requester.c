// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The sending half: a ring of WQEs, cut into packets of the path MTU. A WQE gets its PSNs when
 * posted. Going back is one assignment: @next returns to @acked, and the packets are made again.
 *
 * A long read is requested in pieces, because only the requester's window bounds the responses. A
 * read that goes back begins at the first response that is missing. A piece always ends at the same
 * PSN, so that the responder knows the piece again.
 */
#include <errno.h>
#include <string.h>

#include "softnic/roce/psn.h"
#include "softnic/roce/requester.h"
#include "softnic/roce/responder.h"

/* At least one packet in this many wants an acknowledgement, so that the window slides. */
enum { UNASKED_MAX = 16 };

void roce_requester_init(struct roce_qp *qp)
{
	struct roce_requester *r = &qp->req;

	r->acked = r->next = r->sent = r->posted = roce_psn_first(qp->config.send_psn);
	roce_rate_init(&r->rate, qp->config.window);
	r->timeout = (struct roce_timeout){
		.min_ns = qp->config.early_ns,
		.max_ns = qp->config.timeout ? 4096ull << qp->config.timeout : 0,
	};
	r->retries_left = qp->config.retries;
	r->rnr_left = qp->config.rnr_retries;
	r->deadline_ns = ROCE_NEVER;
}

static uint32_t packets_of(const struct roce_qp *qp, const struct roce_wqe *wqe)
{
	if (wqe->op > ROCE_OP_READ || !wqe->length)
		return 1;
	return (wqe->length - 1) / qp->config.mtu + 1;
}

/* Requests of a WQE, as the responder numbers messages. */
static uint32_t messages_of(const struct roce_qp *qp, const struct roce_wqe *wqe)
{
	if (wqe->op != ROCE_OP_READ)
		return 1;
	return (uint32_t)(wqe->end - wqe->first - 1) / qp->config.read_packets + 1;
}

uint64_t roce_requester_request_end(const struct roce_qp *qp, const struct roce_wqe *wqe,
				    uint64_t psn)
{
	uint32_t piece = qp->config.read_packets;
	uint64_t end = psn + piece - (psn - wqe->first) % piece;

	if (wqe->op != ROCE_OP_READ)
		return psn + 1;
	return end < wqe->end ? end : wqe->end;
}

int roce_requester_post(struct roce_qp *qp, const struct roce_wqe *wqe)
{
	struct roce_requester *r = &qp->req;
	struct roce_wqe *to = roce_requester_wqe(qp, r->tail);

	if (r->tail - r->reported == qp->config.send_size)
		return -ENOMEM;
	*to = *wqe;
	to->first = r->posted;
	to->end = r->posted = to->first + packets_of(qp, wqe);
	r->number += messages_of(qp, to);
	to->number = r->number & ROCE_PSN_MASK;
	r->tail++;
	if (r->is_failed)
		r->done = r->current = r->tail;
	return 0;
}

void roce_requester_fail(struct roce_qp *qp, enum roce_status status)
{
	struct roce_requester *r = &qp->req;

	if (r->is_failed)
		return;
	r->is_failed = true;
	r->failed_at = r->done;
	r->failure = status;
	r->done = r->current = r->tail;
	r->deadline_ns = ROCE_NEVER;
	r->wait_until_ns = 0;
	if (qp->config.transport == ROCE_RC)
		roce_responder_end(qp);
}

void roce_requester_end(struct roce_qp *qp)
{
	struct roce_requester *r = &qp->req;

	if (r->current == r->done)
		r->current++;
	r->done++;
}

void roce_requester_end_stuck(struct roce_qp *qp)
{
	if (qp->req.stuck && qp->req.done == qp->req.stuck_at)
		roce_requester_fail(qp, qp->req.stuck);
}

void roce_requester_rewind(struct roce_qp *qp)
{
	struct roce_requester *r = &qp->req;

	r->reads_out = 0;
	r->next = r->acked;
	r->current = r->done;
	r->probed = r->acked;
	r->unasked = 0;
	r->has_rewound = true;
	r->deadline_ns = ROCE_NEVER;
	roce_timeout_rewound(&r->timeout);
}

bool roce_qp_completion(struct roce_qp *qp, struct roce_completion *c)
{
	struct roce_requester *r = &qp->req;

	if (r->reported == r->done)
		return false;
	c->wqe = *roce_requester_wqe(qp, r->reported);
	c->status = ROCE_SUCCESS;
	if (r->is_failed && (int32_t)(r->reported - r->failed_at) >= 0)
		c->status = r->reported == r->failed_at ? r->failure : ROCE_FLUSHED;
	r->reported++;
	return true;
}

static bool is_send_or_imm(const struct roce_wqe *wqe)
{
	return wqe->op <= ROCE_OP_SEND_INV || wqe->op == ROCE_OP_WRITE_IMM;
}

/* End-to-end flow control: the responder has no receive. A message begun has its receive. */
static bool lacks_receive(const struct roce_requester *r, const struct roce_wqe *wqe)
{
	return r->has_limit && is_send_or_imm(wqe) && r->acked <= wqe->first &&
	       ((r->limit - wqe->number) & (1u << (ROCE_PSN_BITS - 1)));
}

static bool may_send(const struct roce_qp *qp, const struct roce_wqe *wqe, uint64_t now_ns)
{
	const struct roce_requester *r = &qp->req;

	if ((r->stuck && r->current == r->stuck_at) || now_ns < r->wait_until_ns)
		return false;
	if (qp->config.transport != ROCE_RC)
		return true;
	if (r->next != r->acked &&
	    roce_requester_request_end(qp, wqe, r->next) - r->acked > r->rate.window)
		return false;
	if (wqe->is_fenced && r->reads_out)
		return false;
	if (roce_requester_expects_data(wqe))
		return r->reads_out < qp->config.max_rd_atomic;
	if (lacks_receive(r, wqe)) /* one packet may go, as a probe */
		return r->next == wqe->first && r->probed <= r->acked;
	return true;
}

static uint8_t opcode_of(const struct roce_wqe *wqe, bool is_first, bool is_last)
{
	static const uint8_t lasts[][2] = {
		[ROCE_OP_SEND] = { ROCE_SEND_LAST, ROCE_SEND_ONLY },
		[ROCE_OP_SEND_IMM] = { ROCE_SEND_LAST_IMM, ROCE_SEND_ONLY_IMM },
		[ROCE_OP_SEND_INV] = { ROCE_SEND_LAST_INV, ROCE_SEND_ONLY_INV },
		[ROCE_OP_WRITE] = { ROCE_WRITE_LAST, ROCE_WRITE_ONLY },
		[ROCE_OP_WRITE_IMM] = { ROCE_WRITE_LAST_IMM, ROCE_WRITE_ONLY_IMM },
		[ROCE_OP_READ] = { ROCE_READ_REQUEST, ROCE_READ_REQUEST },
		[ROCE_OP_CMP_SWAP] = { ROCE_CMP_SWAP, ROCE_CMP_SWAP },
		[ROCE_OP_FETCH_ADD] = { ROCE_FETCH_ADD, ROCE_FETCH_ADD },
		[ROCE_OP_ATOMIC_WRITE] = { ROCE_ATOMIC_WRITE, ROCE_ATOMIC_WRITE },
	};

	if (is_last)
		return lasts[wqe->op][is_first];
	if (wqe->op < ROCE_OP_WRITE)
		return is_first ? ROCE_SEND_FIRST : ROCE_SEND_MIDDLE;
	return is_first ? ROCE_WRITE_FIRST : ROCE_WRITE_MIDDLE;
}

/* The bytes that a read asks for now. */
static uint32_t read_bytes(const struct roce_qp *qp, const struct roce_wqe *wqe, uint32_t offset)
{
	uint64_t end = roce_requester_request_end(qp, wqe, qp->req.next);

	if (end == wqe->end)
		return wqe->length - offset;
	return (uint32_t)(end - qp->req.next) * qp->config.mtu;
}

/* The packet after this one waits for an acknowledgement, or there is none yet. */
static bool wants_ack(struct roce_qp *qp, const struct roce_wqe *wqe, bool is_last)
{
	struct roce_requester *r = &qp->req;

	r->unasked++;
	if (qp->config.transport != ROCE_RC || roce_requester_expects_data(wqe))
		return false;
	if (lacks_receive(r, wqe))
		r->probed = r->next + 1;
	if ((is_last && r->current + 1 == (r->stuck ? r->stuck_at : r->tail)) ||
	    r->unasked >= UNASKED_MAX || r->next + 1 - r->acked >= r->rate.window ||
	    r->probed > r->next)
		r->unasked = 0;
	return !r->unasked;
}

/* One packet moves the send queue on, or a piece of a read. */
static void advance(struct roce_qp *qp, const struct roce_wqe *wqe, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;

	qp->counters.retransmitted += r->next < r->sent;
	r->next = roce_requester_request_end(qp, wqe, r->next);
	if (r->next > r->sent) {
		r->sent = r->next;
		if (!r->unasked || roce_requester_expects_data(wqe))
			roce_timeout_sent(&r->timeout, r->next, now_ns);
	}
	r->reads_out += roce_requester_expects_data(wqe);
	if (r->next == wqe->end)
		r->current++;
	if (qp->config.transport != ROCE_RC) {
		r->acked = r->next;
		r->done = r->current;
	} else if (r->deadline_ns == ROCE_NEVER && qp->config.timeout) {
		roce_timeout_began(&r->timeout, now_ns);
		r->deadline_ns = now_ns + roce_timeout_ns(&r->timeout);
	}
}

static void fill(struct roce_qp *qp, const struct roce_wqe *wqe, struct roce_packet *p)
{
	const struct roce_config *c = &qp->config;
	uint64_t left = wqe->end - qp->req.next;
	uint32_t offset = (uint32_t)(qp->req.next - wqe->first) * c->mtu;
	bool is_request = roce_requester_expects_data(wqe);
	bool is_last = is_request || left == 1;
	bool has_bytes = !is_request || wqe->op == ROCE_OP_ATOMIC_WRITE;

	*p = (struct roce_packet){
		.opcode = c->transport |
			  opcode_of(wqe, is_request || qp->req.next == wqe->first, is_last),
		.is_solicited = is_last && wqe->is_solicited,
		.wants_ack = wants_ack(qp, wqe, is_last),
		.pkey = ROCE_PKEY_DEFAULT,
		.psn = roce_psn_wire(qp->req.next),
		.dest_qpn = c->transport == ROCE_UD ? wqe->dest_qpn : c->dest_qpn,
		.src_qpn = c->qpn,
		.qkey = wqe->qkey >> 31 ? c->qkey : wqe->qkey,
		.rkey = wqe->rkey,
		.addr = wqe->addr + (wqe->op == ROCE_OP_READ ? offset : 0),
		.dma_bytes = wqe->op == ROCE_OP_READ ? read_bytes(qp, wqe, offset) : wqe->length,
		.swap_add = wqe->swap_add,
		.compare = wqe->compare,
		.imm = wqe->imm,
		.payload_bytes = !has_bytes ? 0 :
				 is_last    ? wqe->length - offset :
					      c->mtu,
	};
}

/* The WQEs before end first. Their last packet did not ask for an acknowledgement: send again. */
static void get_stuck(struct roce_qp *qp, enum roce_status status)
{
	qp->req.stuck = status;
	qp->req.stuck_at = qp->req.current;
	roce_requester_rewind(qp);
	roce_requester_end_stuck(qp);
}

/*
 * A write of no bytes with the PSN before the first that is not acknowledged. Any responder takes
 * it for a duplicate, and acknowledges it (9.7.5).
 */
static size_t ask(struct roce_qp *qp, uint8_t *bytes)
{
	const struct roce_packet p = {
		.opcode = ROCE_RC | ROCE_WRITE_ONLY,
		.wants_ack = true,
		.pkey = ROCE_PKEY_DEFAULT,
		.psn = roce_psn_wire(qp->req.acked - 1),
		.dest_qpn = qp->config.dest_qpn,
	};

	qp->req.must_ask = false;
	return roce_packet_encode(&p, bytes);
}

size_t roce_requester_output(struct roce_qp *qp, uint8_t *bytes, uint64_t *path, uint64_t now_ns)
{
	struct roce_requester *r = &qp->req;
	const struct roce_wqe *wqe = roce_requester_wqe(qp, r->current);
	uint32_t offset = (uint32_t)(r->next - wqe->first) * qp->config.mtu;
	enum roce_status status = ROCE_SUCCESS;
	struct roce_packet p;
	size_t length;

	if (r->is_failed)
		return 0;
	if (r->current == r->tail || !may_send(qp, wqe, now_ns))
		return r->must_ask ? ask(qp, bytes) : 0;
	fill(qp, wqe, &p);
	length = roce_packet_encode(&p, bytes);
	if (p.payload_bytes)
		status = qp->config.ops->gather(qp->config.host, wqe, offset, p.payload_bytes,
						bytes + length);
	if (status) {
		get_stuck(qp, status);
		return 0;
	}
	length += p.payload_bytes;
	qp->counters.bytes_out += p.payload_bytes;
	*path = wqe->path;
	advance(qp, wqe, now_ns);
	return length + roce_packet_pad(bytes + length, p.payload_bytes);
}
