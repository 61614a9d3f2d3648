/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC: extended reliable connections, between processes of one host.
 *
 * A domain joins receiving queue pairs and SRQs. A request names an SRQ. It arrives at a receiving
 * queue pair, which has the rights of the connection, and uses the receives and the protection
 * domain of the SRQ. The two may belong to two processes.
 */
#ifndef WEIR_SOFTNIC_XRC_XRC_H
#define WEIR_SOFTNIC_XRC_XRC_H

#include "softnic/qp/qp.h"
#include "softnic/verbs/verbs.h"

struct xrcd {
	struct ibv_xrcd ibv;
	uint64_t number; /* equal in all processes that opened the domain; never 0 */
	uint32_t users; /* SRQs and receiving queue pairs */
	/* Of the receiving queue pairs, which have no others. Nothing uses or completes there. */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static inline struct xrcd *to_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct xrcd *)xrcd;
}

/* Verbs called through the context. */
struct ibv_xrcd *xrc_open_domain(struct ibv_context *context, struct ibv_xrcd_init_attr *init);
int xrc_close_domain(struct ibv_xrcd *xrcd);
struct ibv_srq *xrc_create_srq(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
int xrc_srq_number(struct ibv_srq *srq, uint32_t *number);

/**
 * xrc_open_qp() - one more handle of a receiving queue pair: ibv_open_qp(), through the context
 *
 * The queue pair ends with its last handle, the creator's included. Events go to the creator.
 *
 * Return: NULL with errno set: EOPNOTSUPP for a queue pair of another process, EINVAL if there is
 * none of that number in the domain.
 */
struct ibv_qp *xrc_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/** xrc_close_qp() - give a handle up; returns the queue pair if it was the last one, else NULL */
struct qp *xrc_close_qp(struct qp *handle);

/** xrc_opened() - the queue pair of a handle, which is mostly itself */
static inline struct qp *xrc_opened(struct qp *handle)
{
	return handle->opened ? handle->opened : handle;
}

/** xrc_create_receiver() - create a receiving queue pair; NULL with errno set */
struct ibv_qp *xrc_create_receiver(const struct ibv_qp_init_attr_ex *init);

#endif
