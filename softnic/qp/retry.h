/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retries of a stalled WR: wait for some time, or give up. All with qp->lock held.
 */
#ifndef WEIR_SOFTNIC_QP_RETRY_H
#define WEIR_SOFTNIC_QP_RETRY_H

#include "qp.h"

/** retry_after() - suspend the send queue for @ns */
void retry_after(struct qp *qp, uint64_t ns);

/** retry_receiver_not_ready() - the receiver has posted no receive (RNR) */
void retry_receiver_not_ready(struct qp *qp);

/** retry_nobody_answers() - the remote queue pair is unknown or gone */
void retry_nobody_answers(struct qp *qp);

/** retry_atomic_busy() - another initiator holds the target's atomic lock */
void retry_atomic_busy(struct qp *qp);

#endif
