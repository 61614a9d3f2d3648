/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester: what is in a send queue, in order, with its retries.
 */
#ifndef SOFTNIC_REQ_H
#define SOFTNIC_REQ_H

#include "qp.h"

/* ibv_post_send(), through ibv_context.ops */
int req_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/** req_init() - a send queue of the size that is set. 0 or -ENOMEM; req_fini() in any case. */
int req_init(struct qp *qp);
void req_fini(struct qp *qp);

/** req_execute_small() - after @bytes were posted: do them, or have the engine do them */
void req_execute_small(struct qp *qp, uint64_t bytes);

/** req_run() - one step of the send queue, as the engine's work */
bool req_run(struct softnic_work *work);

/** req_has_begun() - is the first one in the queue under way? qp->lock held. */
bool req_has_begun(const struct qp *qp);

/** req_is_sending() - is there more that will be sent? */
bool req_is_sending(struct qp *qp);

/** req_resume() - what the send queue waited for may be there. qp->lock held. */
void req_resume(struct qp *qp);

/** req_fail() - the work request being executed, if any, ends so. qp->lock held. */
void req_fail(struct qp *qp, enum ibv_wc_status status);

/** req_flush() - all that was posted ends as flushed. qp->lock held. */
void req_flush(struct qp *qp);

/** req_reset() - forget all that was posted. No completions are polled meanwhile. */
void req_reset(struct qp *qp);

/* Takes completions out of the send queue, as struct cq_source asks. */
int req_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t req_waiting(struct qp *qp);

#endif
