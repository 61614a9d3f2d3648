/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What to do with a work request that cannot go on: wait, and for how long, or give up. All with
 * qp->lock held.
 */
#ifndef WEIR_SOFTNIC_QP_RETRY_H
#define WEIR_SOFTNIC_QP_RETRY_H

#include "qp.h"

/** retry_after() - so long */
void retry_after(struct qp *qp, uint64_t ns);

/** retry_receiver_not_ready() - it has posted no receive */
void retry_receiver_not_ready(struct qp *qp);

/** retry_nobody_answers() - the other end is not known, or has left */
void retry_nobody_answers(struct qp *qp);

/** retry_atomic_busy() - others are doing atomic operations there */
void retry_atomic_busy(struct qp *qp);

#endif
