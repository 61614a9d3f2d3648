/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A receive queue that many senders take from at once, without a lock.
 *
 * The owner posts receives. A sender takes the oldest, fills its buffers and adds it to the
 * arrivals of the destination queue pair, which the owner polls. One taker (RC, UC), many
 * takers (UD) and many queue pairs (SRQ) work alike.
 *
 * A taker may die or stop between any two instructions, so no thread waits for another. One
 * compare-and-swap that names the taker takes a receive, and another adds it to the arrivals.
 * Later threads advance a head or tail that was left behind. The owner finds the receives of a
 * dead taker by its name.
 *
 * A receive is known by its index. It changes hands by its turn, a word that also holds its
 * position: the count of receives posted before, which repeats after 2^32. So the
 * compare-and-swap of a late taker fails.
 *
 * A queue has two parts. Peers can write the first. In an SRQ, only the owner can write the second:
 * which receives are out, at which position, and their buffers. So a peer can spoil the receives of
 * other peers, but a message goes only into the buffers of a receive that is out.
 *
 * A view keeps the sizes checked when it was mapped. Loops are bounded. The owner accepts an
 * arrival only for a receive that is out.
 */
#ifndef WEIR_SOFTNIC_RQ_RQ_H
#define WEIR_SOFTNIC_RQ_RQ_H

#include "softnic/shm/shared.h"

/* Attempts to take a receive. Each that fails is another taker's success, unless peers lie. */
enum { RQ_TAKES_MAX = 64 };

/* One side's view of a receive queue. */
struct rq {
	struct shared_rq *shared;
	struct shared_rq_own *own; /* not written by takers, who may map it read-only */
	uint32_t size; /* a power of two; 0: no receives */
	uint32_t sges;
};

/* One side's view of arrivals. */
struct arrivals {
	struct shared_arrivals *shared;
	uint32_t size; /* a power of two, or 0 */
};

/* A private copy of a receive, as rq_peek() saw it. */
struct rq_receive {
	uint32_t position, index;
	uint32_t num_sge;
	uint64_t room; /* bytes */
	struct ibv_sge sges[SHARED_SGES_MAX];
};

/* How a receive ended; the fields of struct shared_recv. */
struct rq_result {
	uint32_t status, opcode, flags, byte_len, imm, src_qp, dest_qp;
	uint64_t done_ns;
};

/** rq_bytes(), rq_own_bytes(), arrivals_bytes() - the memory needed, in bytes */
size_t rq_bytes(uint32_t size);
size_t rq_own_bytes(uint32_t size, uint32_t sges);
size_t arrivals_bytes(uint32_t size);

/** rq_size_for() - the ring size for @num receives: a power of two, or 0 for none */
uint32_t rq_size_for(uint32_t num);

/** arrivals_size_for() - the size of the arrivals ring for a receive queue of @rq_size */
uint32_t arrivals_size_for(uint32_t rq_size);

/* The owner's side. The host serialises the calls for one queue. */

/**
 * rq_format(), arrivals_format() - format an empty ring in zeroed memory
 * @own: the owner's part
 * @at: the takers' part; NULL: behind the owner's
 */
void rq_format(struct rq *rq, void *own, void *at, uint32_t size, uint32_t sges, uint32_t pd);
void arrivals_format(struct arrivals *a, void *at, uint32_t size);

/**
 * rq_first_position(), arrivals_first_position() - the first position
 *
 * Not 0, so that zeroed memory is never taken for an entry.
 */
static inline uint32_t rq_first_position(const struct rq *rq)
{
	return rq->size;
}

static inline uint32_t arrivals_first_position(const struct arrivals *a)
{
	return a->size;
}

/**
 * rq_post() - post a receive
 * @position: one more than at the last call
 * @index: of a receive that is not out
 * @sges: its buffers, or NULL to keep the present ones
 * @num_sge: at most @rq->sges; ignored without @sges
 */
void rq_post(const struct rq *rq, uint32_t position, uint32_t index, const struct ibv_sge *sges,
	     uint32_t num_sge);

/** rq_end() - the receive is not out any more: takers may not use the buffers */
void rq_end(const struct rq *rq, uint32_t index);

/**
 * rq_taker() - find the taker of a receive that is out
 * @done: set to whether the taker has finished
 *
 * Return: the taker's queue pair number; 0 if not taken.
 */
uint32_t rq_taker(const struct rq *rq, uint32_t position, uint32_t index, bool *done);

/** rq_result() - read how a finished receive ended; the peer can have written any values */
void rq_result(const struct rq *rq, uint32_t index, struct rq_result *result);

/**
 * rq_dest() - the destination queue pair number of a finished receive; any value, as in
 * rq_result()
 */
uint32_t rq_dest(const struct rq *rq, uint32_t index);

/** rq_set_limit() - ask for a message when fewer than @limit receives are left; 0: never */
void rq_set_limit(const struct rq *rq, uint32_t limit);

/** rq_is_below_limit() - whether a limit is set and fewer receives are left */
bool rq_is_below_limit(const struct rq *rq);

/**
 * arrivals_next() - read the arrival at a position
 * @index: set if there is an arrival; any value
 *
 * Return: true if there is an arrival.
 */
bool arrivals_next(const struct arrivals *a, uint32_t position, uint32_t *index);

/** arrivals_are_overrun() - whether more arrived than possible, so that a peer broke the rules */
bool arrivals_are_overrun(const struct arrivals *a, uint32_t position);

/* The takers' side, for any thread of any process. */

/**
 * rq_map(), arrivals_map() - make a view of a peer's memory
 * @own: the owner's part
 * @own_room: bytes mapped at @own
 * @at: NULL: behind the owner's part
 * @room: bytes mapped at @at
 *
 * Return: 0, or -EPROTO if the memory does not hold a valid ring.
 */
int rq_map(struct rq *rq, void *own, size_t own_room, void *at, size_t room);
int arrivals_map(struct arrivals *a, void *at, size_t room, uint32_t size);

/**
 * rq_peek() - read the oldest receive
 * @r: a copy, valid only if rq_take() then succeeds
 *
 * Return: 0, -EAGAIN if no receive is posted, -EPROTO if the contents are invalid.
 */
int rq_peek(const struct rq *rq, struct rq_receive *r);

/** rq_is_out() - whether the owner still offers the buffers of the receive in @r */
bool rq_is_out(const struct rq *rq, const struct rq_receive *r);

/** rq_take() - take the receive that rq_peek() read; false: already taken, peek again */
bool rq_take(const struct rq *rq, const struct rq_receive *r, uint32_t taker);

/**
 * rq_finish() - store the result and pass the receive on to the owner
 *
 * Return: false if the owner has given up on the taker and taken the receive back.
 */
bool rq_finish(const struct rq *rq, const struct rq_receive *r, uint32_t taker,
	       const struct rq_result *result, const struct arrivals *a);

/** arrivals_add() - the last step of rq_finish(): make the receive visible to the owner */
void arrivals_add(const struct arrivals *a, uint32_t index);

/**
 * rq_should_tell() - whether fewer receives than the limit are left and the caller must tell
 * the owner
 */
bool rq_should_tell(const struct rq *rq);

#endif
