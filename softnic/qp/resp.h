/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The responder's part of a request. It is carried out by the initiator, on what the
 * target published, so that the target's CPU has no part in it.
 */
#ifndef WEIR_SOFTNIC_QP_RESP_H
#define WEIR_SOFTNIC_QP_RESP_H

#include "qp.h"

/* How a step ended, when it is not an enum ibv_wc_status. */
enum {
	RESP_MORE = -1, /* there is more to move */
	RESP_RNR = -2, /* no receive is posted */
	RESP_SILENT = -3, /* the other end does not answer (yet) */
	RESP_BUSY = -4, /* another initiator does an atomic operation */
	RESP_LATER = -5, /* a fault delays it */
	RESP_DROPPED = -6, /* not wanted there; of UC and UD only */
};

enum { RESP_BYTES_MAX = 1 << 20 }; /* of one step */

/**
 * resp_step() - move the next bytes of a request
 * @qp: the requester, linked
 * @wqe: what to do; qp->sq.offset bytes of it are done and will be advanced
 * @sges: its local pieces
 * @inlined: its data, if it was posted inline
 *
 * Context: qp->lock held.
 * Return: how it ended, IBV_WC_SUCCESS if all is done, or RESP_*.
 */
int resp_step(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges, void *inlined);

/** resp_give_back() - a receive that was taken is not needed after all. qp->lock held. */
void resp_give_back(struct qp *qp);

#endif
