/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The send queue: work requests from when they are posted until their completions are polled.
 */
#ifndef WEIR_SOFTNIC_QP_SQ_H
#define WEIR_SOFTNIC_QP_SQ_H

#include "qp.h"

/** sq_init() - of the size that is set. 0 or -ENOMEM; sq_fini() in any case. */
int sq_init(struct qp *qp);
void sq_fini(struct qp *qp);

/** sq_reset() - forget all that was posted. No completions are polled meanwhile. */
void sq_reset(struct qp *qp);

/** sq_is_empty() - is all that was posted done? */
static inline bool sq_is_empty(const struct send_queue *sq)
{
	return sq->done == load_ordered(&sq->tail);
}

/** sq_current() - the work request being executed. qp->lock held. */
static inline struct send_wqe *sq_current(struct send_queue *sq)
{
	return &sq->wqes[sq->done & (sq->size - 1)];
}

/** sq_has_begun() - is the first one in the queue under way? qp->lock held. */
bool sq_has_begun(const struct qp *qp);

/** sq_forget_attempt() - the next begins as if there had been none before. qp->lock held. */
void sq_forget_attempt(struct send_queue *sq);

/** sq_is_noticed() - is there a completion of what is done? */
static inline bool sq_is_noticed(const struct send_wqe *wqe)
{
	return wqe->status != IBV_WC_SUCCESS || (wqe->flags & IBV_SEND_SIGNALED);
}

/** sq_poll_until() - take completions out of it, of what is before a position */
int sq_poll_until(struct qp *qp, uint32_t until, struct ibv_wc *wc, int room);

/* Takes completions out of it, as struct cq_source asks. */
int sq_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t sq_waiting(struct qp *qp);

#endif
