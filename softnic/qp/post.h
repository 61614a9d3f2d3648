/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting to a send queue: begin, append any number of WRs, end. Appended WRs become visible to
 * the requester at the end only.
 */
#ifndef WEIR_SOFTNIC_QP_POST_H
#define WEIR_SOFTNIC_QP_POST_H

#include "qp.h"

/* WRs posted together, with one doorbell. */
struct post_batch {
	uint32_t tail; /* position of the next WR */
	uint64_t bytes;
	const char *why; /* after a refusal: the reason, or NULL */
};

/* A function that appends one WR: post_append(), or a check that calls post_append(). */
typedef int post_fn(struct qp *qp, struct post_batch *p, const struct ibv_send_wr *wr);

/** post_is_allowed() - does the state of the queue pair allow posting? */
static inline bool post_is_allowed(const struct qp *qp)
{
	enum ibv_qp_state s = load_acquire(&qp->state);

	return s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE || s == IBV_QPS_ERR;
}

/**
 * post_begin() - lock the send queue for posting
 * @qp: the queue pair
 * @p: written
 *
 * The caller owes one post_end(), also after an error.
 *
 * Return: 0, or EINVAL if the state of the queue pair forbids it.
 */
int post_begin(struct qp *qp, struct post_batch *p);

/**
 * post_append() - check one WR and copy it to the send queue
 * @wr: borrowed, with its SGEs and inline data
 *
 * Return: 0, or an errno value as from ibv_post_send(), with @p unchanged.
 */
int post_append(struct qp *qp, struct post_batch *p, const struct ibv_send_wr *wr);

/** post_end() - post the appended WRs, execute them here if they are small, and unlock */
void post_end(struct qp *qp, const struct post_batch *p);

/** post_list() - post a list as ibv_post_send() does, by @append */
static inline int post_list(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
			    post_fn *append)
{
	struct post_batch p;
	int rc = post_begin(qp, &p);

	for (; !rc && wr; wr = wr->next) {
		rc = append(qp, &p, wr);
		if (rc)
			break;
	}
	if (rc)
		*bad_wr = wr;
	post_end(qp, &p);
	return rc;
}

#endif
