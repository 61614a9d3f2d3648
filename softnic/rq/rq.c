// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A receive's turn goes through these values:
 *
 *	(position, 0)			posted by the owner
 *	(position, taker)		rq_take()
 *	(position, taker | RECV_DONE)	rq_finish(), then its index goes to the arrivals
 *
 * A receive is out from rq_post() to rq_end(). Its buffers change only in between: rq_post() ends
 * the receive first, and a taker checks before and after reading them.
 *
 * Takers find a posted receive only through the ring entry of its position. head is a hint at
 * the oldest such entry, behind by as much as dead or slow takers did not advance it.
 */
#include <errno.h>

#include "rq.h"

/* Some thread succeeds in each round, so honest takers never need more. */
enum { ROUNDS_MAX = 2 * SHARED_WRS_MAX };

static uint64_t make_entry(uint32_t position, uint32_t low)
{
	return (uint64_t)position << 32 | low;
}

static uint32_t position_of(uint64_t entry)
{
	return entry >> 32;
}

static bool swap_u64(uint64_t *at, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_ACQUIRE);
}

/* Any thread that sees a used entry advances the hint: the entry's user may be dead. */
static void advance_hint(uint32_t *hint, uint32_t position)
{
	__atomic_compare_exchange_n(hint, &position, position + 1, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

static uint64_t out_at(uint32_t position)
{
	return make_entry(position, 1);
}

static size_t buffers_bytes(uint32_t sges)
{
	return (sizeof(struct shared_buffers) + sges * sizeof(struct ibv_sge) + 63) & ~(size_t)63;
}

static struct shared_buffers *buffers_at(const struct rq *rq, uint32_t index)
{
	return (struct shared_buffers *)(rq->own->buffers + index * buffers_bytes(rq->sges));
}

static struct shared_recv *recv_at(const struct rq *rq, uint32_t index)
{
	return (struct shared_recv *)(rq->shared->posted + rq->size) + index;
}

uint32_t rq_size_for(uint32_t num)
{
	uint32_t size = 8; /* whole cache lines */

	while (size < num)
		size *= 2;
	return num ? size : 0;
}

/* Twice, because a receive taken back while its taker adds it may be added twice. */
uint32_t arrivals_size_for(uint32_t rq_size)
{
	return 2 * rq_size;
}

size_t rq_bytes(uint32_t size)
{
	return sizeof(struct shared_rq) + size * (sizeof(uint64_t) + sizeof(struct shared_recv));
}

size_t rq_own_bytes(uint32_t size, uint32_t sges)
{
	return sizeof(struct shared_rq_own) + size * buffers_bytes(sges);
}

size_t arrivals_bytes(uint32_t size)
{
	return sizeof(struct shared_arrivals) + size * sizeof(uint64_t);
}

static struct shared_rq *behind(struct shared_rq_own *own, uint32_t size, uint32_t sges)
{
	return (struct shared_rq *)((uint8_t *)own + rq_own_bytes(size, sges));
}

void rq_format(struct rq *rq, void *at_own, void *at, uint32_t size, uint32_t sges, uint32_t pd)
{
	struct shared_rq_own *own = at_own;

	*rq = (struct rq){ at ? at : behind(own, size, sges), own, size, sges };
	own->magic = SHARED_MAGIC;
	own->version = SHARED_VERSION;
	own->size = size;
	own->sges = sges;
	own->pd = pd;
	rq->shared->tail = rq->shared->head = rq_first_position(rq);
}

void arrivals_format(struct arrivals *a, void *at, uint32_t size)
{
	*a = (struct arrivals){ at, size };
	a->shared->tail = arrivals_first_position(a);
}

static bool is_ring_size(uint32_t size, uint32_t max)
{
	return size <= max && !(size & (size - 1));
}

/* Reads each size once, because the peer may change it at any time. */
int rq_map(struct rq *rq, void *at_own, size_t own_room, void *at, size_t room)
{
	struct shared_rq_own *own = at_own;
	uint32_t size, sges;

	if (own_room < sizeof(*own) || own->magic != SHARED_MAGIC || own->version != SHARED_VERSION)
		return -EPROTO;
	size = load_relaxed(&own->size);
	sges = load_relaxed(&own->sges);
	if (!is_ring_size(size, SHARED_WRS_MAX) || sges > SHARED_SGES_MAX ||
	    rq_own_bytes(size, sges) > own_room)
		return -EPROTO;
	if (!at)
		room = own_room - rq_own_bytes(size, sges);
	if (rq_bytes(size) > room)
		return -EPROTO;
	*rq = (struct rq){ at ? at : behind(own, size, sges), own, size, sges };
	return 0;
}

int arrivals_map(struct arrivals *a, void *at, size_t room, uint32_t size)
{
	if (!is_ring_size(size, 2 * SHARED_WRS_MAX) || arrivals_bytes(size) > room)
		return -EPROTO;
	*a = (struct arrivals){ at, size };
	return 0;
}

void rq_end(const struct rq *rq, uint32_t index)
{
	store_release(&buffers_at(rq, index)->out, 0);
}

/* Release: a taker that reads a new value then sees that the receive had ended. */
static void put_buffers(struct shared_buffers *b, const struct ibv_sge *sges, uint32_t num_sge)
{
	uint32_t i;

	store_release(&b->num_sge, num_sge);
	for (i = 0; i < num_sge; i++) {
		store_release(&b->sges[i].addr, sges[i].addr);
		store_release(&b->sges[i].length, sges[i].length);
		store_release(&b->sges[i].lkey, sges[i].lkey);
	}
}

/* No thread can take the receive during the writes: its turn is invalid first. */
void rq_post(const struct rq *rq, uint32_t position, uint32_t index, const struct ibv_sge *sges,
	     uint32_t num_sge)
{
	struct shared_buffers *buffers = buffers_at(rq, index);
	struct shared_recv *recv = recv_at(rq, index);

	store_ordered(&recv->turn, make_entry(position, RECV_DONE));
	rq_end(rq, index);
	if (sges)
		put_buffers(buffers, sges, num_sge);
	store_release(&buffers->out, out_at(position));
	store_release(&recv->turn, make_entry(position, 0));
	store_release(&rq->shared->posted[position & (rq->size - 1)], make_entry(position, index));
	store_ordered(&rq->shared->tail, position + 1);
}

uint32_t rq_taker(const struct rq *rq, uint32_t position, uint32_t index, bool *done)
{
	uint64_t turn = load_acquire(&recv_at(rq, index)->turn);

	*done = turn & RECV_DONE;
	return position_of(turn) == position ? (uint32_t)turn & ~(uint32_t)RECV_DONE : 0;
}

void rq_result(const struct rq *rq, uint32_t index, struct rq_result *result)
{
	const struct shared_recv *recv = recv_at(rq, index);

	result->status = load_relaxed(&recv->status);
	result->opcode = load_relaxed(&recv->opcode);
	result->flags = load_relaxed(&recv->flags);
	result->byte_len = load_relaxed(&recv->byte_len);
	result->imm = load_relaxed(&recv->imm);
	result->src_qp = load_relaxed(&recv->src_qp);
	result->dest_qp = load_relaxed(&recv->dest_qp);
	result->done_ns = load_relaxed(&recv->done_ns);
}

uint32_t rq_dest(const struct rq *rq, uint32_t index)
{
	return load_relaxed(&recv_at(rq, index)->dest_qp);
}

/*
 * Store-load pairing with rq_should_tell(): the owner stores the limit, then reads head; a
 * taker takes a receive, then reads the limit. At least one side sees the other.
 */
void rq_set_limit(const struct rq *rq, uint32_t limit)
{
	store_ordered(&rq->shared->low, 0);
	store_ordered(&rq->shared->limit, limit);
}

bool rq_is_below_limit(const struct rq *rq)
{
	struct shared_rq *s = rq->shared;

	return load_ordered(&s->tail) - load_ordered(&s->head) < load_ordered(&s->limit);
}

bool rq_should_tell(const struct rq *rq)
{
	return rq_is_below_limit(rq) && !swap_ordered(&rq->shared->low, 1);
}

bool arrivals_next(const struct arrivals *a, uint32_t position, uint32_t *index)
{
	uint64_t e;

	if (!a->size)
		return false;
	e = load_acquire(&a->shared->at[position & (a->size - 1)]);
	*index = (uint32_t)e;
	return position_of(e) == position;
}

bool arrivals_are_overrun(const struct arrivals *a, uint32_t position)
{
	uint64_t e;

	if (!a->size)
		return false;
	e = load_acquire(&a->shared->at[position & (a->size - 1)]);
	return (int32_t)(position_of(e) - position) > 0;
}

bool rq_is_out(const struct rq *rq, const struct rq_receive *r)
{
	return load_acquire(&buffers_at(rq, r->index)->out) == out_at(r->position);
}

/* Return: 0, -EAGAIN if the receive is not out any more, -EPROTO if the contents are invalid. */
static int copy_receive(const struct rq *rq, struct rq_receive *r)
{
	const struct shared_buffers *b = buffers_at(rq, r->index);
	uint32_t i;

	if (!rq_is_out(rq, r))
		return -EAGAIN;
	r->num_sge = load_acquire(&b->num_sge);
	for (r->room = 0, i = 0; i < r->num_sge && i < rq->sges; i++) {
		r->sges[i].addr = load_acquire(&b->sges[i].addr);
		r->sges[i].length = load_acquire(&b->sges[i].length);
		r->sges[i].lkey = load_acquire(&b->sges[i].lkey);
		r->room += r->sges[i].length;
	}
	if (!rq_is_out(rq, r))
		return -EAGAIN;
	return r->num_sge > rq->sges ? -EPROTO : 0;
}

int rq_peek(const struct rq *rq, struct rq_receive *r)
{
	struct shared_rq *s = rq->shared;
	struct shared_recv *recv;
	int rc = -EAGAIN;
	uint32_t round;
	uint64_t e;

	for (round = 0; rq->size && round < ROUNDS_MAX; round++) {
		r->position = load_ordered(&s->head);
		e = load_acquire(&s->posted[r->position & (rq->size - 1)]);
		if (position_of(e) != r->position) {
			if (load_ordered(&s->head) == r->position)
				return -EAGAIN;
			continue;
		}
		r->index = (uint32_t)e;
		if (r->index >= rq->size)
			return -EPROTO;
		recv = recv_at(rq, r->index);
		if (load_acquire(&recv->turn) == make_entry(r->position, 0))
			rc = copy_receive(rq, r);
		if (rc != -EAGAIN)
			return rc;
		advance_hint(&s->head, r->position);
	}
	return -EAGAIN;
}

bool rq_take(const struct rq *rq, const struct rq_receive *r, uint32_t taker)
{
	struct shared_recv *recv = recv_at(rq, r->index);

	if (!swap_u64(&recv->turn, make_entry(r->position, 0), make_entry(r->position, taker)))
		return false;
	advance_hint(&rq->shared->head, r->position);
	return true;
}

void arrivals_add(const struct arrivals *a, uint32_t index)
{
	struct shared_arrivals *s = a->shared;
	uint32_t round, tail;
	bool added = false;
	uint64_t e, *at;

	for (round = 0; a->size && !added && round < ROUNDS_MAX; round++) {
		tail = load_acquire(&s->tail);
		at = &s->at[tail & (a->size - 1)];
		e = load_acquire(at);
		if ((int32_t)(position_of(e) - tail) < 0)
			added = swap_u64(at, e, make_entry(tail, index));
		advance_hint(&s->tail, tail);
	}
}

bool rq_finish(const struct rq *rq, const struct rq_receive *r, uint32_t taker,
	       const struct rq_result *result, const struct arrivals *a)
{
	struct shared_recv *recv = recv_at(rq, r->index);

	if (load_acquire(&recv->turn) != make_entry(r->position, taker))
		return false;
	store_relaxed(&recv->status, result->status);
	store_relaxed(&recv->opcode, result->opcode);
	store_relaxed(&recv->flags, result->flags);
	store_relaxed(&recv->byte_len, result->byte_len);
	store_relaxed(&recv->imm, result->imm);
	store_relaxed(&recv->src_qp, result->src_qp);
	store_relaxed(&recv->dest_qp, result->dest_qp);
	store_relaxed(&recv->done_ns, result->done_ns);
	if (!swap_u64(&recv->turn, make_entry(r->position, taker),
		      make_entry(r->position, taker | RECV_DONE)))
		return false;
	arrivals_add(a, r->index);
	return true;
}
