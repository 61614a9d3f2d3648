/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The responder's part of a request. The initiator executes it on the target's shared memory, so
 * that the target's CPU takes no part.
 */
#ifndef WEIR_SOFTNIC_QP_RESP_H
#define WEIR_SOFTNIC_QP_RESP_H

#include "qp.h"

/* Results of a step beside enum ibv_wc_status. */
enum {
	RESP_MORE = -1, /* bytes are left to move */
	RESP_RNR = -2, /* no receive is posted */
	RESP_SILENT = -3, /* the remote queue pair does not answer (yet) */
	RESP_BUSY = -4, /* another initiator executes an atomic */
	RESP_LATER = -5, /* a fault delays the WR */
	RESP_DROPPED = -6, /* the target does not accept the message; UC and UD only */
	RESP_STUCK = -8, /* another copy to the peer waits for a page */
	RESP_ASKED = -7, /* the port of a softnic on another host is being found out */
};

enum { RESP_BYTES_MAX = 1 << 20 }; /* per step */

/**
 * resp_step() - move the next bytes of a request
 * @qp: the requester, with qp->to mapped
 * @wqe: the request; qp->sq.offset bytes are done, and the step adds to them
 * @sges: its local SGEs
 * @inlined: its data, if posted inline
 *
 * Context: qp->lock held; dropped while the kernel copies.
 * Return: IBV_WC_SUCCESS if the request is done, another enum ibv_wc_status, or RESP_*.
 */
int resp_step(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges, void *inlined);

/** resp_give_back() - return a taken receive unused; qp->lock held */
void resp_give_back(struct qp *qp);

#endif
