/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inside of one end of an exchange. The files:
 *
 *	setup, connect, listener, accept
 *				until both ends have proven the key and exchanged addresses
 *	memory			memory registered in the host and in a GPU
 *	post, completion	posting work requests; handling completions
 *	bitmap_poll		when to read the peer's bitmaps, request a wake-up, or notify
 *	wait			when to sleep, and for what
 *	put, take		the calls of the user
 *
 * A slot goes from the sender's pool to a mirror of the pool at the receiver. In bitmap mode
 * each end learns the state of slots by RDMA reads of the peer's bitmaps; in immediate mode, by
 * immediates and messages.
 */
#ifndef WEIR_LIB_EXCHANGE_EXCHANGE_H
#define WEIR_LIB_EXCHANGE_EXCHANGE_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <weir/exchange.h>
#include "core/slots/slot_poll.h"
#include "core/poll/poll.h"
#include "lib/conn/address.h"
#include "lib/base/clock.h"
#include "lib/exchange/cuda.h"
#include "wire/exchange.h"

#define WEIR_EXCHANGE_CHAIN 32u /* WRs per doorbell, without a bitmap read */
#define WEIR_EXCHANGE_IMM_SLOTS_MAX 4096u
#define WEIR_EXCHANGE_RETURN_BUFFERS 4u /* buffers for messages that return slots */
#define WEIR_EXCHANGE_RECV_BYTES 256u
#define WEIR_EXCHANGE_RECVS (WIRE_EXCHANGE_NOTICES_MAX + 2 * WEIR_EXCHANGE_CHAIN) /* bitmap mode */
#define WEIR_EXCHANGE_REST_MS_MAX 1000 /* pause between probes of a silent peer */
#define WEIR_EXCHANGE_READS 4u /* bitmap reads of a wait before the doorbell */

/* Events that a sleeping end waits for: low bits of the doorbell word written to the peer. */
#define WEIR_EXCHANGE_NEWS WIRE_EXCHANGE_WANT_NEWS
#define WEIR_EXCHANGE_ROOM WIRE_EXCHANGE_WANT_ROOM
#define WEIR_EXCHANGE_ALL (WEIR_EXCHANGE_NEWS | WEIR_EXCHANGE_ROOM)

/**
 * enum weir_exchange_sending - the life of an end's own stream of slots
 *
 * An end is SENDING until weir_exchange_finish() commits the end slot: the end is then ENDING, and
 * commits no more slots. Once the peer has taken the end slot, too, the end has ENDED. An error of
 * the exchange changes none of this: see status.
 */
enum weir_exchange_sending {
	WEIR_EXCHANGE_SENDING,
	WEIR_EXCHANGE_ENDING,
	WEIR_EXCHANGE_ENDED,
};

/* A full slot of the mirror: a copy of the header, read once on arrival. */
struct weir_exchange_arrival {
	uint32_t length;
	uint16_t flags;
	uint16_t before;
	bool is_taken; /* lent to the user */
};

/**
 * struct weir_exchange_pool - memory of slots
 * @heads, @head_stride: a wire_exchange_slot_head per slot, in host memory
 * @data, @stride: the payload, accessible to the device
 * @user: the payload as the user sees it; differs from @data only for GPU memory out of the
 *	device's reach
 * @gpu: the GPU memory, if any
 * @gpu_mr: the registration of @gpu, if within the device's reach
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
 * @setup: setup state, until both ends are ready
 * @cuda: the GPU of the slots; NULL: host memory
 * @pool: our slots
 * @mirror: copy of the peer's slots
 * @doorbell: doorbell word behind the mirror, written by the peer; @answered: the last value
 *	answered
 * @bits: bitmaps of the pool, then of the mirror
 * @fresh: the peer's bitmaps as of the last read: for the mirror, then for the pool
 * @ring: source of doorbell writes to the peer
 * @recvs: @nr_recvs receive buffers
 * @return_buffers: buffers of messages that return slots; @return_buffers_free is a mask
 * @peer: the peer's offer
 *
 * @order: slots by sequence modulo the peer's slots: number + 1, or 0; unordered: by arrival
 * @next: sequence of the slot to take next; @found: unordered: slots arrived
 * @closing: unordered: number + 1 of the end slot, until @closing_sequence slots before the end
 *	have arrived
 * @nr_acquired: slots acquired, not committed or abandoned yet; @abandoned: total
 * @nr_taken: slots lent to the user; @nr_released: since the last wake-up of the peer for room
 *
 * @slot_poll: bitmap mode: when to read, to ring and to notify
 * @is_armed: the CQ will raise an event
 * @doorbells_sent: doorbells sent; @notices_sent: bitmap mode: notices sent
 * @put_ns: time of the last put
 * @read_end: slots committed before the bitmap read in flight
 * @must_request: the next bitmap read also rings, for everything
 * @is_probing: immediate mode: a probe of the peer is in flight
 * @reads: bitmap reads at the start of a wait before the doorbell, adapted to their recent
 *	success
 * @acked: slots whose writes have completed; @signalled: slots covered by a signalled write;
 *	@marked: slots covered by the last empty write
 * @is_starved: a call found less than wanted, and weir_exchange_process() has not reported a
 *	change since; @progress: the counter when that began
 * @nr_recvs_spare: receives to post again, with buffers in @spare
 * @nr_returns: immediate mode: slots to return, in @back
 *
 * @status: 0, or why the exchange has ended
 * @is_open_message: the last slot committed did not end a message
 * @sending: the state of this end's stream; @end_slot: the end slot, unless SENDING
 * @is_started: slots may go both ways; @is_close_posted: our farewell is in flight; @is_closed: the
 *	peer's has come, and after it nothing will
 * @is_finished: the peer has sent an end slot; @is_end_ack_posted: our acknowledgement is in
 *	flight
 * @get_length: bytes of the current message of weir_exchange_get()
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
	uint32_t send_max; /* limit of slots acquired or with writes in flight */
	int fd;
	struct weir_exchange_setup_state *setup;

	struct weir_cuda *cuda;
	char *memory;
	size_t memory_bytes;
	struct weir_exchange_pool pool, mirror;
	uint64_t *doorbell, answered;
	uint64_t *bits, *fresh, *ring;
	char *recvs;
	uint32_t nr_recvs;
	struct wire_exchange_freed *return_buffers;
	uint32_t return_buffers_free;
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

	struct weir_slot_poll slot_poll;
	bool is_armed, must_request, is_probing;
	uint64_t doorbells_sent;
	uint32_t notices_sent;
	uint64_t put_ns;
	uint64_t read_end;
	unsigned int reads;
	uint64_t checked_ns; /* last check of the connection manager's events */
	uint64_t acked, signalled, marked;
	bool is_starved;
	uint64_t progress;
	struct weir_idle_time idle_time, room_idle_time;
	uint32_t nr_recvs_spare, *spare;
	uint32_t nr_returns, *back;

	int status;
	enum weir_exchange_sending sending;
	uint32_t end_slot;
	bool is_open_message, is_finished, is_end_ack_posted;
	bool is_started, is_close_posted, is_closed;
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

/* The peer has ended the stream and knows that all was taken. */
static inline bool weir_exchange_is_over(const struct weir_exchange *x)
{
	return x->is_finished && !x->nr_returns;
}

/* A counter of all events, except arrivals, after which a failed call may succeed. */
static inline uint64_t weir_exchange_progress(const struct weir_exchange *x)
{
	return x->out.freed + x->abandoned + x->out.committed - weir_exchange_unconfirmed(x) +
	       weir_exchange_is_over(x);
}

/* A call has found less than wanted. */
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

/* Whether a slot's header and data are adjacent at the peer, so one write covers both. */
static inline bool weir_exchange_is_contiguous(const struct weir_exchange *x)
{
	return x->peer.heads.rkey == x->peer.mirror.rkey && x->peer.head_stride == x->pool.stride &&
	       x->peer.heads.address + sizeof(struct wire_exchange_slot_head) ==
		       x->peer.mirror.address;
}

/*
 * Whether slots are in GPU memory out of the device's reach, and so are copied through host
 * memory.
 */
static inline bool weir_exchange_is_staged(const struct weir_exchange *x)
{
	return x->cuda && !x->pool.gpu_mr;
}

/* Ends the exchange with @status. Return: the first such status. */
int weir_exchange_fail(struct weir_exchange *x, int status);

/* A slot of the mirror is full. Return: 0; -EPROTO. */
int weir_exchange_slot_arrived(struct weir_exchange *x, uint32_t slot);

/* Whether all but the peer's end slot has been taken. */
bool weir_exchange_end_is_next(const struct weir_exchange *x);

/* Takes the end slot and acknowledges; takes then report the end of the stream. */
void weir_exchange_take_end(struct weir_exchange *x);

#endif
