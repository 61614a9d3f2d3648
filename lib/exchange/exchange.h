/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of an exchange, from the inside. What is where:
 *
 *	meet, connect, listen, greet
 *				until both ends have proven the key and told where their memory is
 *	memory			what is registered, in the host and in a GPU
 *	queue, complete		work requests; completions, and what they mean
 *	look			when to look at the peer's bitmaps, to ask it for a sign, and to
 *	give one wait			when to sleep, and for what
 *	put, take		what the user calls
 *
 * Here is what all of them know.
 */
#ifndef WEIR_LIB_EXCHANGE_H
#define WEIR_LIB_EXCHANGE_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <weir/exchange.h>
#include "core/slots/slot_poll.h"
#include "core/poll/poll.h"
#include "lib/conn/address.h"
#include "lib/base/clock.h"
#include "lib/exchange/cuda.h"
#include "wire/exchange.h"

#define WEIR_EXCHANGE_CHAIN 32u /* work requests with one doorbell, at most, but for a look */
#define WEIR_EXCHANGE_IMM_SLOTS_MAX 4096u
#define WEIR_EXCHANGE_GIVES 4u /* messages under way that give slots back */
#define WEIR_EXCHANGE_RECV_BYTES 256u
#define WEIR_EXCHANGE_RECVS (WIRE_EXCHANGE_TELLS_MAX + 2 * WEIR_EXCHANGE_CHAIN) /* bitmap */
#define WEIR_EXCHANGE_REST_MS_MAX 1000 /* asleep, the peer is asked so often whether it is there */
#define WEIR_EXCHANGE_LOOKS 4u /* at most, of who waits, before it asks to be woken */

/* What somebody asleep waits for, in the low bits of what he writes to the peer's bell. */
#define WEIR_EXCHANGE_NEWS WIRE_EXCHANGE_WANT_NEWS
#define WEIR_EXCHANGE_ROOM WIRE_EXCHANGE_WANT_ROOM
#define WEIR_EXCHANGE_ALL (WEIR_EXCHANGE_NEWS | WEIR_EXCHANGE_ROOM)

/* A slot of the mirror that is full: what its header said when it came, read once. */
struct weir_exchange_arrival {
	uint32_t length;
	uint16_t flags;
	uint16_t before;
	bool is_taken; /* the user has it */
};

/**
 * struct weir_exchange_pool - memory of slots
 * @heads, @head_stride: a wire_exchange_slot_head of each, in host memory
 * @data, @stride: what they carry, where the device reads and writes it
 * @user: where the user has it: elsewhere only if that is a GPU's memory that the device cannot
 *	reach
 * @gpu: the GPU's memory, if it is wanted
 * @gpu_mr: its registration, if the device can reach it
 */
struct weir_exchange_pool {
	char *heads;
	uint64_t head_stride;
	char *data;
	uint64_t stride;
	char *user;
	struct weir_cuda_memory gpu;
	struct ibv_mr *gpu_mr;
};

/**
 * struct weir_exchange - one end
 * @greeting: until both ends know each other
 * @cuda: the GPU that has the slots; NULL: they are in host memory
 * @pool: the own one
 * @mirror: of the peer's
 * @bell: behind the mirror: the peer asks here to be woken; @answered is the last that was
 * @bits: of the pool, then of the mirror
 * @fresh: the peer's, as the last look saw them: of the mirror's pool, then of the pool's mirror
 * @ring: what is written to the peer's bell
 * @recvs: buffers of messages that come, @nr_recvs
 * @gives: buffers of messages that give slots back; @gives_free is a mask
 * @peer: what the peer offered
 *
 * @order: of the slots that have come: by their sequence modulo the peer's slots, number + 1 or 0;
 *	unordered: by how many had come before
 * @next: sequence of the slot that is to be taken next; @found: unordered: how many have come
 * @closing: unordered: number + 1 of the slot that says that there is no more, until all before it,
 *	@closing_sequence of them, have come
 * @nr_acquired: slots acquired, and neither committed nor abandoned; @abandoned: so far
 * @nr_taken: slots the user has; @nr_released: since the peer was last woken for room
 *
 * @look: bitmap mode: when to look, to ring and to tell
 * @is_armed: the completion queue will raise an event
 * @rings: so far; @told: bitmap mode: how often the peer was told so far
 * @put_ns: when the last slots were put
 * @look_end: slots committed before the look under way
 * @is_to_ring: the next look is to ring, for all
 * @is_probing: immediate mode: a write of nothing is under way, to see whether the peer is there
 * @looks: that a wait begins with before it rings, as far as they have been of use lately
 * @acked, @signalled: slots whose writes are known to be done; of them all, those before the last
 *	that will say so; @marked: those before the last write of nothing that will
 * @is_starved: a call has found less than it wanted, and weir_exchange_process() has not said
 *	since that it is to be tried again; @progress when the first one did
 * @nr_recvs_spare: receives that are to be posted again: their buffers are in @spare
 * @nr_returns: immediate mode: slots to be given back, in @back
 *
 * @status: 0, or why it has ended
 * @is_open_message: the last slot committed did not end its message
 * @end: sequence of the slot that says there is no more, @end_slot which it is; valid if @is_ending
 * @is_end_acked: the peer has taken that slot, too
 * @is_finished: the peer has said so; @is_end_ack_posted: that this was heard is under way to it
 * @get_length: bytes of the message that weir_exchange_get() has so far
 */
struct weir_exchange {
	struct weir_exchange_options options;
	struct weir_exchange_info info;

	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct ibv_qp *qp; /* closed to RDMA until the peer has proven the key */
	struct ibv_pd *pd;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	struct ibv_mr *pool_mr, *mirror_mr, *bits_mr;
	uint32_t inline_max;
	uint32_t send_max; /* slots whose writes may be under way, or that may be acquired, in
			    * all */
	int fd;
	struct weir_exchange_setup_state *greeting;

	struct weir_cuda *cuda;
	char *memory;
	size_t memory_bytes;
	struct weir_exchange_pool pool, mirror;
	uint64_t *bell, answered;
	uint64_t *bits, *fresh, *ring;
	char *recvs;
	uint32_t nr_recvs;
	struct wire_exchange_freed *gives;
	uint32_t gives_free;
	struct wire_exchange_offer peer;

	void *books;
	struct weir_slot_bitmap_tx out;
	struct weir_slot_bitmap_rx in;
	struct weir_exchange_arrival *arrivals;
	uint32_t *order;
	uint64_t next, found;
	uint32_t closing;
	uint64_t closing_sequence;
	uint32_t nr_acquired, nr_taken, nr_released;
	uint64_t abandoned;

	struct weir_slot_poll look;
	bool is_armed, is_to_ring, is_probing;
	uint64_t rings;
	uint32_t told;
	uint64_t put_ns;
	uint64_t look_end;
	unsigned int looks;
	uint64_t checked_ns; /* when it was last seen what the connection manager says */
	uint64_t acked, signalled, marked;
	bool is_starved;
	uint64_t progress;
	struct weir_idle_time gaps, room_gaps;
	uint32_t nr_recvs_spare, *spare;
	uint32_t nr_returns, *back;

	int status;
	bool is_open_message, is_ending, is_end_acked, is_finished, is_end_ack_posted;
	uint32_t end_slot;
	size_t get_length;
};

static inline bool weir_exchange_is_imm(const struct weir_exchange *x)
{
	return x->options.mode == WEIR_EXCHANGE_IMM;
}

/* Slots committed whose arrival is not known yet. */
static inline uint64_t weir_exchange_unconfirmed(const struct weir_exchange *x)
{
	return x->out.committed - x->acked;
}

/* The peer has put its last slot, and has been told that it was taken. */
static inline bool weir_exchange_is_over(const struct weir_exchange *x)
{
	return x->is_finished && !x->nr_returns;
}

/* Grows with all that may let a call do more than it could, but for what there is to take. */
static inline uint64_t weir_exchange_progress(const struct weir_exchange *x)
{
	return x->out.freed + x->abandoned + x->out.committed - weir_exchange_unconfirmed(x) +
	       weir_exchange_is_over(x);
}

/* A call has found less than it wanted. */
static inline void weir_exchange_set_starved(struct weir_exchange *x)
{
	if (x->is_starved)
		return;
	x->is_starved = true;
	x->progress = weir_exchange_progress(x);
}

static inline struct wire_exchange_slot_head *
weir_exchange_slot_header(const struct weir_exchange_pool *pool, uint32_t slot)
{
	return (void *)(pool->heads + slot * pool->head_stride);
}

/* At either end. */
static inline bool weir_exchange_is_unordered(const struct weir_exchange *x)
{
	return x->options.unordered || x->peer.is_unordered;
}

/* One write has a slot's header and its data: they lie together at the peer. */
static inline bool weir_exchange_is_contiguous(const struct weir_exchange *x)
{
	return x->peer.heads.rkey == x->peer.mirror.rkey && x->peer.head_stride == x->pool.stride &&
	       x->peer.heads.address + sizeof(struct wire_exchange_slot_head) ==
		       x->peer.mirror.address;
}

/* The user's slots are a GPU's memory that the device cannot reach: each is copied, to and fro. */
static inline bool weir_exchange_is_staged(const struct weir_exchange *x)
{
	return x->cuda && !x->pool.gpu_mr;
}

/* It has ended, because of @status. Return: the status that counts. */
int weir_exchange_fail(struct weir_exchange *x, int status);

/* A slot of the mirror is full. Return: 0; -EPROTO. */
int weir_exchange_slot_arrived(struct weir_exchange *x, uint32_t slot);

/* The peer's last word is next, behind all that it has put, and was not heard. */
bool weir_exchange_end_is_next(const struct weir_exchange *x);

/* It is heard: the peer is told, and whoever takes finds that there is no more. */
void weir_exchange_take_end(struct weir_exchange *x);

#endif
