/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive queues: one receive queue for many queue pairs, in memory of its own.
 */
#ifndef WEIR_SOFTNIC_RQ_SRQ_H
#define WEIR_SOFTNIC_RQ_SRQ_H

#include "softnic/verbs/async.h"
#include "softnic/verbs/listing.h"
#include "recv_queue.h"

struct qp;

struct srq {
	struct ibv_srq ibv;
	struct recv_queue rq;
	uint32_t limit; /* rq.lock; 0: not armed */
	uint32_t users; /* queue pairs */
	struct listing_place listing;
	struct srq_part {
		int fd;
		void *map;
		size_t size;
	} ring, buffers; /* peers write the first, and only read the second */
	struct async_subject events;
	struct qp *end; /* XRC: see xrc.c; counted by @users */
};

static inline struct srq *to_srq(struct ibv_srq *srq)
{
	return (struct srq *)srq;
}

/* ibv_post_srq_recv(), called through ibv_context.ops. */
int srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/**
 * srq_check_limit() - raise the limit event of @qp's SRQ, if any, when too few receives are
 * left
 */
void srq_check_limit(struct qp *qp);

#endif
