/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester: executes what is in a send queue, in order.
 */
#ifndef WEIR_SOFTNIC_QP_REQ_H
#define WEIR_SOFTNIC_QP_REQ_H

#include "qp.h"

/* ibv_post_send(), through ibv_context.ops */
int req_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/** req_execute_small() - after @bytes were posted: do them, or have the engine do them */
void req_execute_small(struct qp *qp, uint64_t bytes);

/** req_run() - one step of the send queue, as the engine's work */
bool req_run(struct softnic_work *work);

/** req_is_sending() - is there more that will be sent? */
bool req_is_sending(struct qp *qp);

/** req_resume() - what the send queue waited for may be there. qp->lock held. */
void req_resume(struct qp *qp);

/** req_complete() - the work request being executed is done. qp->lock held. */
void req_complete(struct qp *qp, enum ibv_wc_status status);

/** req_fail() - the work request being executed, if any, ends so. qp->lock held. */
void req_fail(struct qp *qp, enum ibv_wc_status status);

/** req_flush() - all that was posted ends as flushed. qp->lock held. */
void req_flush(struct qp *qp);

/** req_timer_expired() - go on, on the engine's thread; qp->timer's function */
void req_timer_expired(struct softnic_timer *timer);

#endif
