// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "deliver.h"
#include "fault.h"
#include "lossy.h"
#include "mw.h"
#include "resp.h"

/* At the other end qp->to. */
static int attempt(struct qp *qp, const struct send_wqe *wqe)
{
	const struct send_queue *sq = &qp->sq;
	size_t at = wqe - sq->wqes;
	int status = qp->to->shared ? fault_step(qp, wqe) : RESP_SILENT;

	if (!status)
		status = resp_step(qp, wqe, sq->sges + at * sq->max_sge,
				   sq->inlined + at * sq->max_inline);
	return qp_is_reliable(qp) ? status : lossy_status(qp, status);
}

static int send_datagram(struct qp *qp, const struct send_wqe *wqe)
{
	if (wqe->length > SOFTNIC_DATAGRAM_MAX)
		return IBV_WC_LOC_LEN_ERR;
	qp->to = qp_remote(qp, wqe->ud.qpn);
	return qp->to ? attempt(qp, wqe) : IBV_WC_LOC_QP_OP_ERR;
}

int deliver_step(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;
	struct send_wqe *wqe = &sq->wqes[sq->done & (sq->size - 1)];

	if (qp_is_datagram(qp))
		return send_datagram(qp, wqe);
	qp->to = &qp->remote;
	return wr_is_local(wqe->opcode) ? mw_step(qp, wqe) : attempt(qp, wqe);
}

void deliver_give_up(struct qp *qp)
{
	qp->to->is_mute = true;
}
