/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The timer of a far queue pair: qp->timer, which near queue pairs use for their retries.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_FAR_TIMER_H
#define WEIR_SOFTNIC_QP_FAR_FAR_TIMER_H

#include "softnic/qp/qp.h"

/** far_timer_set() - wake the queue pair at the transport's deadline; qp->lock held */
void far_timer_set(struct qp *qp);

#endif
