/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What comes in for a queue pair: polling and flushing it.
 */
#ifndef WEIR_SOFTNIC_RQ_RECV_H
#define WEIR_SOFTNIC_RQ_RECV_H

#include "recv_queue.h"

struct qp;

/* What came in for one queue pair. */
struct recv_arrivals {
	struct arrivals ring;
	uint32_t polled; /* a position; the receive queue's lock, as the rest */
	uint32_t batch_end; /* where what is being polled ends; who polls, as the next */
	uint32_t batch_sent; /* a position in the send queue: what is polled before that */
	uint32_t end; /* where they ended, once flushing */
	uint64_t flushed_ns; /* when, if the completion queue is stamped */
	bool flushing; /* what is left was flushed */
	uint32_t lost, num_lost; /* of an SRQ and flushing: the first to be, and how many */
};

/* ibv_post_recv(), through ibv_context.ops */
int recv_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/** recv_flush() - the peer is out: what is left ends as flushed. qp->lock held. */
void recv_flush(struct qp *qp);

/**
 * recv_forget() - give back to an SRQ what this queue pair had of it
 *
 * Context: its completion queue does not look any more.
 */
void recv_forget(struct qp *qp);

/**
 * recv_take_back() - post again what takers of a process had that is no more
 * @slot: whose it was
 */
void recv_take_back(struct qp *qp, uint32_t slot);

/* Takes completions out of the receive queue, as struct cq_source asks. */
int recv_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t recv_waiting(struct qp *qp);

#endif
