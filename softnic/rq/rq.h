/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A receive queue that many take from at once, without a lock.
 *
 * The owner posts receives; whoever sends takes the oldest, fills its buffers and adds it
 * to the arrivals of the queue pair it sent to, which the owner polls. The same for all:
 * one taker (RC, UC), many takers (UD), many queue pairs (SRQ).
 *
 * A taker may die, or be stopped, between any two instructions. So nobody waits for
 * anybody: a receive is taken by one compare-and-swap that names the taker, and is added
 * to the arrivals by another, and whoever comes later moves a head or a tail that was left
 * behind. What a dead taker held is found by its name.
 *
 * A receive goes by its index. It changes hands by its turn, which holds its position too:
 * the count of receives posted before it, which does not come again for 2^32 of them. So
 * whoever comes too late, by however much, fails in its compare-and-swap.
 *
 * Peers can write all of it. Views hold what was checked when it was mapped; loops are
 * bounded; the owner believes an arrival only of a receive that is out.
 */
#ifndef WEIR_SOFTNIC_RQ_RQ_H
#define WEIR_SOFTNIC_RQ_RQ_H

#include "softnic/shm/shared.h"

/* A side's view of a receive queue. */
struct rq {
	struct shared_rq *shared;
	uint32_t size; /* a power of two; 0: there are no receives */
	uint32_t sges;
};

/* A side's view of arrivals. */
struct arrivals {
	struct shared_arrivals *shared;
	uint32_t size; /* a power of two, or 0 */
};

/* A receive as it was when it was looked at: out of reach of changes. */
struct rq_receive {
	uint32_t position, index;
	uint32_t num_sge;
	uint64_t room; /* bytes */
	struct ibv_sge sges[SHARED_SGES_MAX];
};

/* How a receive ended; the fields are those of struct shared_recv. */
struct rq_result {
	uint32_t status, opcode, flags, byte_len, imm, src_qp, dest_qp;
	uint64_t done_ns;
};

/** rq_bytes(), arrivals_bytes() - how much memory they take */
size_t rq_bytes(uint32_t size, uint32_t sges);
size_t arrivals_bytes(uint32_t size);

/** rq_size_for() - the size of a ring that holds so many: a power of two, 0 for none */
uint32_t rq_size_for(uint32_t num);

/** arrivals_size_for() - of a ring that holds what a receive queue of that size may have */
uint32_t arrivals_size_for(uint32_t rq_size);

/* The owner's side; its host serialises the calls for one queue. */

/** rq_format(), arrivals_format() - make an empty one in zeroed memory */
void rq_format(struct rq *rq, void *at, uint32_t size, uint32_t sges, uint32_t pd);
void arrivals_format(struct arrivals *a, void *at, uint32_t size);

/**
 * rq_first_position(), arrivals_first_position() - where positions begin
 *
 * Beyond what zeroed memory could be taken for.
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
 * rq_post() - hand out a receive
 * @position: one more than the last time
 * @index: of a receive that is not out
 * @sges: its buffers, or NULL to hand out again what is there
 * @num_sge: at most @rq->sges; ignored without @sges
 */
void rq_post(const struct rq *rq, uint32_t position, uint32_t index, const struct ibv_sge *sges,
	     uint32_t num_sge);

/**
 * rq_taker() - who has a receive that is out
 * @done: set to whether it is done with it
 *
 * Return: the number of a queue pair, 0 if nobody has it.
 */
uint32_t rq_taker(const struct rq *rq, uint32_t position, uint32_t index, bool *done);

/** rq_result() - how a receive that is done ended; every field is a peer's word */
void rq_result(const struct rq *rq, uint32_t index, struct rq_result *result);

/** rq_dest() - the number of the queue pair that it was for, when it is done; as rq_result() */
uint32_t rq_dest(const struct rq *rq, uint32_t index);

/** rq_set_limit() - ask to be told when fewer than @limit are left; 0: do not */
void rq_set_limit(const struct rq *rq, uint32_t limit);

/** rq_is_below_limit() - is a limit set, and are there fewer left? */
bool rq_is_below_limit(const struct rq *rq);

/**
 * arrivals_next() - which receive arrived at a position
 * @index: written if there is one; any number
 *
 * Return: true if there is one.
 */
bool arrivals_next(const struct arrivals *a, uint32_t position, uint32_t *index);

/** arrivals_are_overrun() - more than could be came in: somebody does not play by the rules */
bool arrivals_are_overrun(const struct arrivals *a, uint32_t position);

/* The takers' side. Any thread of any process. */

/**
 * rq_map(), arrivals_map() - a view of a peer's
 * @room: bytes that are mapped there
 *
 * Return: 0, or -EPROTO if it is not what it should be.
 */
int rq_map(struct rq *rq, void *at, size_t room);
int arrivals_map(struct arrivals *a, void *at, size_t room, uint32_t size);

/**
 * rq_peek() - look at the oldest receive
 * @r: a copy; valid only if rq_take() succeeds
 *
 * Return: 0, -EAGAIN if there is none, -EPROTO if there is nonsense.
 */
int rq_peek(const struct rq *rq, struct rq_receive *r);

/** rq_take() - take what was looked at. False: it is gone, look again. */
bool rq_take(const struct rq *rq, const struct rq_receive *r, uint32_t taker);

/**
 * rq_finish() - say how it ended and pass it on to the owner
 *
 * Return: false if the owner has taken it back meanwhile, for it gave up on us.
 */
bool rq_finish(const struct rq *rq, const struct rq_receive *r, uint32_t taker,
	       const struct rq_result *result, const struct arrivals *a);

/** arrivals_add() - the last step of rq_finish(): the owner may see it from now on */
void arrivals_add(const struct arrivals *a, uint32_t index);

/** rq_should_tell() - fewer are left than the owner's limit, and the caller is to tell it */
bool rq_should_tell(const struct rq *rq);

#endif
