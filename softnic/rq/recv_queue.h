/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The owner's private record of its receives. What takers see is in rq.h.
 */
#ifndef WEIR_SOFTNIC_RQ_RECV_QUEUE_H
#define WEIR_SOFTNIC_RQ_RECV_QUEUE_H

#include <pthread.h>

#include "rq.h"

#define NOT_OUT UINT32_MAX

/* A posted receive, out of the peers' reach. */
struct posted_recv {
	uint64_t wr_id;
	uint64_t room; /* bytes */
	uint32_t num_sge;
	uint32_t position;
	uint64_t in_pieces; /* bytes that came in pieces: see softnic/qp/piece.h */
	uint32_t prev, next; /* in the list of receives that are out, in order posted; or NOT_OUT */
	uint32_t next_lost; /* in the chain of receives that their taker lost */
	bool has_arrived; /* and is not polled; valid only while gather_lost() runs */
};

/* The receive queue of a queue pair, or an SRQ. */
struct recv_queue {
	pthread_mutex_t lock; /* guards all fields, and struct recv_arrivals of its queue pairs */
	struct rq ring;
	struct posted_recv *posted; /* ring.size entries, and the list's end */
	struct ibv_sge *sges; /* max_sge a receive */
	uint32_t *free; /* indices that are not out */
	uint32_t num_free;
	uint32_t max_wr, max_sge;
	uint32_t tail; /* position of the next post */
};

/**
 * recv_queue_init() - reserve room for @room receives, of which @max_wr may be posted
 *
 * Return: 0 or -ENOMEM; in both cases the caller owes recv_queue_fini().
 */
int recv_queue_init(struct recv_queue *rq, uint32_t max_wr, uint32_t room, uint32_t max_sge);
void recv_queue_fini(struct recv_queue *rq);

/**
 * recv_queue_format() - reset to nothing posted
 * @own: rq_own_bytes() of zeroed memory, to be shared with peers
 * @at: rq_bytes() of it; NULL: behind the first
 * @pd: handle of the buffers' protection domain
 */
void recv_queue_format(struct recv_queue *rq, void *own, void *at, uint32_t pd);

/**
 * recv_queue_post() - post a list of receives
 * @posted: set to the number posted
 *
 * Return: 0 or a positive errno, as verbs do.
 */
int recv_queue_post(struct recv_queue *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
		    uint32_t *posted);

/**
 * recv_queue_take() - take the oldest receive, for a message that the owner delivers itself
 * @taker: number of the queue pair that sent the message
 * @r: set to the receive; its room is the owner's record, its buffers are not to be used
 *
 * Return: 0, -EAGAIN if no receive is posted, or -EPROTO if a peer has spoilt the queue.
 */
int recv_queue_take(struct recv_queue *rq, uint32_t taker, struct rq_receive *r);

/**
 * recv_queue_fill() - copy into the buffers of a receive that recv_queue_take() took
 * @pd: handle of the buffers' protection domain
 *
 * The buffers are those of the owner's record, whatever the peers have written.
 *
 * Return: false if the receive is not out any more, or a length, a key or a buffer is invalid.
 */
bool recv_queue_fill(struct recv_queue *rq, const struct rq_receive *r, uint32_t pd,
		     uint64_t offset, const void *bytes, uint32_t length);

/*
 * The functions below need recv_queue.lock. @index is trusted, except where any value is
 * allowed.
 */

/** recv_queue_num_out() - receives that are not free: posted, taken or not polled */
static inline uint32_t recv_queue_num_out(const struct recv_queue *rq)
{
	return rq->ring.size - rq->num_free;
}

/** recv_is_out() - whether @index, any value, names a receive that is out */
bool recv_is_out(const struct recv_queue *rq, uint32_t index);

/** recv_set_in() - unlink a receive that is out; the caller then holds it */
void recv_set_in(struct recv_queue *rq, uint32_t index);

/** recv_set_free() - free a receive that the caller holds */
void recv_set_free(struct recv_queue *rq, uint32_t index);

/** recv_release() - unlink a receive that is out, and free it */
void recv_release(struct recv_queue *rq, uint32_t index);

/**
 * recv_hand_out() - offer a receive that the caller holds to the takers, as the newest
 * @sges: as for rq_post()
 * @num_sge: as for rq_post()
 */
void recv_hand_out(struct recv_queue *rq, uint32_t index, const struct ibv_sge *sges,
		   uint32_t num_sge);

/**
 * recv_scatter() - copy into the buffers of a receive that is out
 *
 * Arguments and result are those of recv_queue_fill().
 */
bool recv_scatter(const struct recv_queue *rq, uint32_t index, uint32_t pd, uint64_t offset,
		  const void *bytes, uint32_t length);

/** recv_hand_out_again() - offer a receive that is out as if posted now */
void recv_hand_out_again(struct recv_queue *rq, uint32_t index);

#endif
