/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrivals of a queue pair: polling and flushing them.
 */
#ifndef WEIR_SOFTNIC_RQ_RECV_H
#define WEIR_SOFTNIC_RQ_RECV_H

#include "recv_queue.h"

struct qp;

/* Receives that have arrived for one queue pair. */
struct recv_arrivals {
	struct arrivals ring;
	uint32_t polled; /* a position; under the receive queue's lock, as the fields below */
	uint32_t batch_end; /* end of the batch being polled; the poller's, as the next */
	uint32_t batch_sent; /* send queue position: sends before it are polled first */
	uint32_t end; /* end of the arrivals, once flushing */
	uint64_t flushed_ns; /* if the CQ stamps its completions */
	bool flushing; /* the queue pair's other receives are flushed */
	bool has_failed; /* a message did not fit its receive's buffers */
	/* for an SRQ, once flushing: the first receive to flush, and how many */
	uint32_t lost, num_lost;
};

/* The handle of the protection domain of the receives' buffers. */
uint32_t recv_pd(const struct qp *qp);

/* ibv_post_recv(), called through ibv_context.ops. */
int recv_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/**
 * recv_flush() - flush the receives left, because the peer can no longer reach them
 *
 * Context: qp->lock held.
 */
void recv_flush(struct qp *qp);

/**
 * recv_forget() - give back to an SRQ the receives that this queue pair holds
 *
 * Context: The CQ no longer polls the queue pair.
 */
void recv_forget(struct qp *qp);

/**
 * recv_take_back() - post again the receives that a dead process had taken
 * @slot: of that process
 */
void recv_take_back(struct qp *qp, uint32_t slot);

/* Poll the receive queue, as struct cq_source asks. */
int recv_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t recv_waiting(struct qp *qp);

#endif
