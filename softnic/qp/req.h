/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester executes the WRs of a send queue in order.
 */
#ifndef WEIR_SOFTNIC_QP_REQ_H
#define WEIR_SOFTNIC_QP_REQ_H

#include "qp.h"

/* ibv_post_send(), called through ibv_context.ops */
int req_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/** req_execute_small() - execute a post of @bytes here if small, else by the engine */
void req_execute_small(struct qp *qp, uint64_t bytes);

/** req_run() - execute one step of the send queue, as work of the engine */
bool req_run(struct softnic_work *work);

/** req_is_sending() - true in RTS if the send queue is not empty */
bool req_is_sending(struct qp *qp);

/** req_resume() - end a wait of the send queue; qp->lock held */
void req_resume(struct qp *qp);

/** req_complete() - complete the WR being executed; qp->lock held */
void req_complete(struct qp *qp, enum ibv_wc_status status);

/** req_fail() - complete the WR being executed, if any, with an error; qp->lock held */
void req_fail(struct qp *qp, enum ibv_wc_status status);

/** req_flush() - complete all posted WRs as flushed; qp->lock held */
void req_flush(struct qp *qp);

/** req_timer_expired() - resume the send queue; function of qp->timer, on the engine thread */
void req_timer_expired(struct softnic_timer *timer);

#endif
