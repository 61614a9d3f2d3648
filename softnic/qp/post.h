/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting to a send queue: begin, append any number, end. Nobody sees what was appended
 * before the end.
 */
#ifndef WEIR_SOFTNIC_QP_POST_H
#define WEIR_SOFTNIC_QP_POST_H

#include "qp.h"

/* Work requests that are being posted together: one doorbell. */
struct post_batch {
	uint32_t tail; /* where the next one goes */
	uint64_t bytes;
};

/**
 * post_begin() - lock the send queue for posting
 * @qp: the queue pair
 * @p: written
 *
 * The caller owes one post_end(), whatever this returns.
 *
 * Return: 0, or EINVAL if the state of the queue pair forbids it.
 */
int post_begin(struct qp *qp, struct post_batch *p);

/**
 * post_append() - check and copy one more
 * @wr: borrowed, and what it points to
 *
 * Return: 0, or an errno value as ibv_post_send() gives it; then @p is as it was.
 */
int post_append(struct qp *qp, struct post_batch *p, const struct ibv_send_wr *wr);

/** post_end() - what was appended is posted, and executed at once if it is small */
void post_end(struct qp *qp, const struct post_batch *p);

#endif
