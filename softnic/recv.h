/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives as their owner sees them: posting, polling, flushing. What the takers see is
 * in rq.h.
 */
#ifndef SOFTNIC_RECV_H
#define SOFTNIC_RECV_H

#include <pthread.h>

#include "rq.h"

struct qp;

/* What the owner remembers of a receive, out of its peers' reach. */
struct posted_recv {
	uint64_t wr_id;
	uint64_t room;			/* bytes */
	uint32_t position;
	uint32_t prev, next;		/* among those that are out, as posted; NOT_OUT */
};

/* A queue pair's own receive queue, or an SRQ's. */
struct recv_queue {
	pthread_mutex_t lock;		/* all of it, and what queue pairs polled from it */
	struct rq ring;
	struct posted_recv *posted;	/* ring.size, and one that is the list's end */
	uint32_t *free;			/* indices that are not out */
	uint32_t num_free;
	uint32_t max_wr, max_sge;
	uint32_t tail;			/* position of the next */
};

/* What came in for one queue pair. */
struct recv_arrivals {
	struct arrivals ring;
	uint32_t polled;		/* a position; the receive queue's lock, as the rest */
	uint32_t end;			/* where they ended, once flushing */
	uint64_t flushed_ns;		/* when, if the completion queue is stamped */
	bool flushing;			/* what is left was flushed */
};

/* ibv_post_recv(), through ibv_context.ops */
int recv_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/** recv_queue_init() - room for @max_wr receives. 0 or -ENOMEM; recv_queue_fini() as well. */
int recv_queue_init(struct recv_queue *rq, uint32_t max_wr, uint32_t max_sge);
void recv_queue_fini(struct recv_queue *rq);

/**
 * recv_queue_format() - begin anew, with nothing posted
 * @at: rq_bytes() of zeroed memory that peers will share
 * @pd: that the buffers belong to
 */
void recv_queue_format(struct recv_queue *rq, void *at, uint32_t pd);

/**
 * recv_queue_post() - a list of receives
 * @posted: becomes how many of it were
 *
 * Return: 0 or a positive errno, as verbs have it.
 */
int recv_queue_post(struct recv_queue *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
		    uint32_t *posted);

/** recv_flush() - the peer is out: what is left ends as flushed. qp->lock held. */
void recv_flush(struct qp *qp);

/**
 * recv_forget() - give back to an SRQ what this queue pair had of it
 *
 * Context: its completion queue does not look any more.
 */
void recv_forget(struct qp *qp);

/**
 * recv_take_back() - post again what a taker had that is no more
 * @taker: the number of its queue pair
 */
void recv_take_back(struct qp *qp, uint32_t taker);

/* Takes completions out of the receive queue, as struct cq_source asks. */
int recv_poll(struct qp *qp, struct ibv_wc *wc, int room);
uint32_t recv_waiting(struct qp *qp);

#endif
