/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The send queue holds WRs from the post until their completions are polled.
 */
#ifndef WEIR_SOFTNIC_QP_SQ_H
#define WEIR_SOFTNIC_QP_SQ_H

#include "qp.h"

/** sq_init() - allocate sq->size entries; 0 or -ENOMEM; the caller owes sq_fini() in both cases */
int sq_init(struct qp *qp);
void sq_fini(struct qp *qp);

/** sq_reset() - forget all posted WRs; no thread polls completions meanwhile */
void sq_reset(struct qp *qp);

/** sq_is_empty() - true if all posted WRs are done */
static inline bool sq_is_empty(const struct send_queue *sq)
{
	return sq->done == load_ordered(&sq->tail);
}

/** sq_current() - the WR being executed; qp->lock held */
static inline struct send_wqe *sq_current(struct send_queue *sq)
{
	return &sq->wqes[sq->done & (sq->size - 1)];
}

/** sq_inline_bytes() - where the WQE at index @at keeps its inline data */
static inline void *sq_inline_bytes(const struct send_queue *sq, size_t at)
{
	if (sq->wqes[at].opcode == IBV_WR_ATOMIC_WRITE)
		return &sq->wqes[at].value;
	return sq->inlined + at * sq->max_inline;
}

/** sq_has_begun() - true if the first WR in the queue is in flight; qp->lock held */
bool sq_has_begun(const struct qp *qp);

/** sq_uses_key() - does the first WR in the queue name that local key? qp->lock held */
bool sq_uses_key(const struct send_queue *sq, uint32_t lkey);

/** sq_forget_attempt() - clear the progress of the current WR; qp->lock held */
void sq_forget_attempt(struct send_queue *sq);

/** sq_is_noticed() - true if a done WR has a completion: signalled or failed */
static inline bool sq_is_noticed(const struct send_wqe *wqe)
{
	return wqe->status != IBV_WC_SUCCESS || (wqe->flags & IBV_SEND_SIGNALED);
}

/** sq_poll_until() - poll completions of WRs before position @until */
int sq_poll_until(struct qp *qp, uint32_t until, struct ibv_wc *wc, int room);

/* The functions of struct cq_source. */
int sq_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t sq_waiting(struct qp *qp);

#endif
