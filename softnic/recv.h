/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receive queue: its owner appends and polls, its peer uses it up.
 */
#ifndef SOFTNIC_RECV_H
#define SOFTNIC_RECV_H

#include "qp.h"

/* ibv_post_recv(), through ibv_context.ops */
int recv_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/** recv_init() - a receive queue of the size that is set. 0 or -ENOMEM; recv_fini() as well. */
int recv_init(struct qp *qp);
void recv_fini(struct qp *qp);

/** recv_flush() - the peer is out: what is left ends as flushed. qp->lock held. */
void recv_flush(struct qp *qp);

/** recv_reset() - forget all that was posted. No completions are polled meanwhile. */
void recv_reset(struct qp *qp);

/* Takes completions out of the receive queue, as struct cq_source asks. */
int recv_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t recv_waiting(struct qp *qp);

#endif
