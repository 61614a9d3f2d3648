/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives as their owner remembers them. What the takers see is in rq.h.
 */
#ifndef WEIR_SOFTNIC_RQ_RECV_QUEUE_H
#define WEIR_SOFTNIC_RQ_RECV_QUEUE_H

#include <pthread.h>

#include "rq.h"

#define NOT_OUT UINT32_MAX

/* What the owner remembers of a receive, out of its peers' reach. */
struct posted_recv {
	uint64_t wr_id;
	uint64_t room; /* bytes */
	uint32_t position;
	uint32_t prev, next; /* among those that are out, as posted; NOT_OUT */
	uint32_t next_lost; /* among those of a taker that does not pass them on */
	bool has_arrived; /* and was not polled; only while those are gathered */
};

/* A queue pair's own receive queue, or an SRQ's. */
struct recv_queue {
	pthread_mutex_t lock; /* all of it, and what queue pairs polled from it */
	struct rq ring;
	struct posted_recv *posted; /* ring.size, and one that is the list's end */
	uint32_t *free; /* indices that are not out */
	uint32_t num_free;
	uint32_t max_wr, max_sge;
	uint32_t tail; /* position of the next */
};

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

/* The rest is under recv_queue.lock. An index is a peer's word only where that is said. */

/** recv_is_out() - is it of a receive that is out? Any index. */
bool recv_is_out(const struct recv_queue *rq, uint32_t index);

/** recv_set_in() - out of the list, and in the caller's hands */
void recv_set_in(struct recv_queue *rq, uint32_t index);

/** recv_set_free() - what was in the caller's hands may be posted */
void recv_set_free(struct recv_queue *rq, uint32_t index);

/** recv_release() - both of these */
void recv_release(struct recv_queue *rq, uint32_t index);

/**
 * recv_hand_out() - what was in the caller's hands, to the end of the list and to the takers
 * @sges, @num_sge: as rq_post()
 */
void recv_hand_out(struct recv_queue *rq, uint32_t index, const struct ibv_sge *sges,
		   uint32_t num_sge);

/** recv_hand_out_again() - one that is out, as if it were posted now */
void recv_hand_out_again(struct recv_queue *rq, uint32_t index);

#endif
