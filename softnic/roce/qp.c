// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Routes packets to the requester (responses) and to the responder (requests). Both halves send by
 * turns, so that neither a long read nor a long write starves the other direction.
 */
#include <errno.h>
#include <string.h>

#include "softnic/roce/psn.h"
#include "softnic/roce/requester.h"
#include "softnic/roce/responder.h"

enum { MULTICAST_QPN = 0xffffff };

void roce_qp_init(struct roce_qp *qp, const struct roce_config *config)
{
	memset(qp, 0, sizeof(*qp));
	qp->config = *config;
	roce_requester_init(qp);
	roce_responder_init(qp);
}

void roce_qp_start_sending(struct roce_qp *qp)
{
	memset(&qp->req, 0, sizeof(qp->req));
	roce_requester_init(qp);
}

int roce_qp_post(struct roce_qp *qp, const struct roce_wqe *wqe)
{
	static const uint32_t ops_of_uc = 1 << ROCE_OP_SEND | 1 << ROCE_OP_SEND_IMM |
					  1 << ROCE_OP_WRITE | 1 << ROCE_OP_WRITE_IMM;
	static const uint32_t ops_of_ud = 1 << ROCE_OP_SEND | 1 << ROCE_OP_SEND_IMM;
	const struct roce_config *c = &qp->config;

	if (wqe->op > ROCE_OP_ATOMIC_WRITE || wqe->length > ROCE_MESSAGE_MAX)
		return -EINVAL;
	if (c->transport == ROCE_UC && !(ops_of_uc >> wqe->op & 1))
		return -EINVAL;
	if (c->transport == ROCE_UD && (!(ops_of_ud >> wqe->op & 1) || wqe->length > c->mtu))
		return -EINVAL;
	if (wqe->op >= ROCE_OP_READ &&
	    (!c->max_rd_atomic || (wqe->op > ROCE_OP_READ && wqe->length != sizeof(uint64_t))))
		return -EINVAL;
	return roce_requester_post(qp, wqe);
}

/* 9.6 of the specification: the checks before the packet's transport. */
static enum roce_refusal check(const struct roce_qp *qp, const struct roce_packet *p)
{
	if (p->pkey != ROCE_PKEY_DEFAULT)
		return ROCE_REFUSED_PKEY;
	if (p->dest_qpn != qp->config.qpn &&
	    !(qp->config.transport == ROCE_UD && p->dest_qpn == MULTICAST_QPN))
		return ROCE_REFUSED_QPN;
	if ((p->opcode & ROCE_TRANSPORT_MASK) != qp->config.transport)
		return ROCE_REFUSED_TRANSPORT;
	if (qp->config.transport == ROCE_UD && p->qkey != qp->config.qkey)
		return ROCE_REFUSED_QKEY;
	return ROCE_ACCEPTED;
}

void roce_qp_input(struct roce_qp *qp, const struct roce_packet *p, const uint8_t *grh,
		   uint64_t now_ns)
{
	enum roce_refusal refusal = check(qp, p);

	qp->counters.packets_in++;
	qp->counters.bytes_in += p->payload_bytes;
	qp->counters.refused[refusal]++;
	if (refusal)
		return;
	roce_requester_heard(qp, now_ns);
	if (roce_packet_traits(p->opcode) & ROCE_IS_RESPONSE)
		roce_requester_input(qp, p, now_ns);
	else
		roce_responder_input(qp, p, grh);
}

size_t roce_qp_output(struct roce_qp *qp, uint8_t *bytes, uint64_t *path, uint64_t now_ns)
{
	size_t length = 0;
	int tries;

	for (tries = 0; tries < 2 && !length; tries++) {
		qp->responds_next = !qp->responds_next;
		length = qp->responds_next ? roce_responder_output(qp, bytes) :
					     roce_requester_output(qp, bytes, path, now_ns);
	}
	qp->counters.packets_out += length > 0;
	return length;
}

void roce_qp_fail(struct roce_qp *qp)
{
	roce_requester_fail(qp, ROCE_FLUSHED);
	roce_responder_end(qp);
	qp->resp.nr_pending = 0;
	qp->resp.nak = 0;
	qp->resp.owes_ack = false;
}
