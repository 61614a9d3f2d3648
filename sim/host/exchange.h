/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exchange on simulated threads: messages from one machine to another through a pool of slots,
 * as in lib/exchange. core/slots/slot_bitmap tracks full and free slots. core/slots/slot_poll
 * decides when to read the peer's bitmap, when to ask the peer for a notification, and when to
 * notify by an immediate. In immediate mode, each message has an immediate, and messages return the
 * slots. Both ends poll and never sleep, as callers of lib/exchange that do not wait.
 *
 * Each end has a QP to the other. A bitmap read sees the peer's bits when the peer's NIC executes
 * it, after all earlier writes. The model checks that no slot is found before its data has landed.
 *
 * Each call belongs to the thread of its end. Slots are found in any order, and returned in the
 * order released.
 */
#ifndef WEIR_SIM_HOST_EXCHANGE_H
#define WEIR_SIM_HOST_EXCHANGE_H

#include "core/slots/slot_poll.h"
#include "sim/host/world.h"

#define SIM_EXCHANGE_CHAIN 32u /* most messages with one doorbell */
#define SIM_EXCHANGE_RECVS 32u /* with bitmaps: receives with one doorbell */
#define SIM_EXCHANGE_NO_SLOT UINT32_MAX /* immediate that announces no slot, only wakes */

/* Kind of a completion: low byte of its id. Above, for a write: slots committed at the time. */
enum sim_exchange_tag {
	SIM_EXCHANGE_READ = 1,
	SIM_EXCHANGE_WRITE,
	SIM_EXCHANGE_GIVE,
	SIM_EXCHANGE_REQUEST,
	SIM_EXCHANGE_SIGN,
};

enum sim_exchange_key {
	SIM_EXCHANGE_MIRROR = 1,
	SIM_EXCHANGE_BITS,
	SIM_EXCHANGE_DOORBELL,
};

struct sim_exchange;

/**
 * struct sim_exchange_end - state of either end
 * @exchange: the exchange
 * @node: the machine
 * @qp: to the other end
 * @send_cq, @recv_cq: for own requests, and for incoming messages
 * @bits: own bitmap; @fresh: the peer's bitmap, as last read; @memory: of slot_bitmap
 * @slot_poll: decides when to read the peer's bitmap
 * @sge: of posted requests
 * @unsignalled: work requests since the last signalled one
 */
struct sim_exchange_end {
	struct sim_exchange *exchange;
	struct sim_node *node;
	struct sim_qp *qp;
	struct sim_cq send_cq, recv_cq;
	uint64_t *bits, *fresh;
	void *memory;
	struct weir_slot_poll slot_poll;
	struct sim_sge sge;
	uint32_t unsignalled;
};

/**
 * struct sim_exchange - one direction, from a sender to a receiver
 * @settings: *kept*
 * @is_imm: immediate mode
 * @sender, @receiver: the ends
 * @out, @in: the core's
 * @doorbell, @limit: the receiver's latest request number, and the total of notifications it
 *	allows;
 *	@answered: the last request answered; @requests, @notices: requests and notifications so far
 * @read_end, @acked: slots committed before the sender's bitmap read under way; slots whose writes
 *	are known to be complete
 * @has_landed, @begin_ps, @bytes: per slot: data has landed; start time and length of the message
 * @taken, @nr_taken: slots found, and not yet given to the caller
 * @landed, @first_landed, @nr_landed, @landed_max: ring of immediates not yet polled, in the order
 *	landed; @nr_spare: receives to post again
 * @before, @others: per slot: the slot sent before; number of earlier slots that the immediate
 *	covers
 * @given, @first_given, @nr_given: ring of returned slots, in the order sent; the last @nr_back are
 *	not sent yet
 * @bitmap_reads: bitmap reads of both ends so far
 */
struct sim_exchange {
	const struct sim_load_settings *settings;
	bool is_imm;
	struct sim_exchange_end sender, receiver;
	struct weir_slot_bitmap_tx out;
	struct weir_slot_bitmap_rx in;
	uint32_t doorbell, limit, answered, requests, notices;
	uint64_t read_end, acked;
	bool *has_landed;
	uint64_t *begin_ps;
	uint32_t *bytes;
	uint32_t *taken, nr_taken;
	uint32_t *landed, first_landed, nr_landed, landed_max, nr_spare;
	uint32_t *before, *others;
	uint32_t *given, first_given, nr_given, nr_back;
	uint64_t bitmap_reads;
};

/**
 * sim_exchange_init() - an exchange with empty slots
 * @exchange: *kept*
 * @world, @from, @to, @settings: *kept*
 *
 * Return: 0, or -ENOMEM.
 */
int sim_exchange_init(struct sim_exchange *exchange, struct sim_world *world, struct sim_node *from,
		      struct sim_node *to, const struct sim_load_settings *settings);

/* Frees all memory of the exchange. The clock must not run afterwards. */
void sim_exchange_fini(struct sim_exchange *exchange);

/**
 * sim_exchange_put() - send messages into the free slots
 * @self: the sender's thread
 * @x: the exchange
 * @bytes: length of each of @count messages, at most SIM_EXCHANGE_CHAIN
 *
 * Return: messages sent, possibly 0.
 */
uint32_t sim_exchange_put(struct sim_thread *self, struct sim_exchange *x, const uint32_t *bytes,
			  uint32_t count);

/* Sender: polls its CQs, and reads the bitmap if due. Return: whether any completion came. */
bool sim_exchange_hear(struct sim_thread *self, struct sim_exchange *x);

/* Receiver: the same. Return: number of messages to take. */
uint32_t sim_exchange_look(struct sim_thread *self, struct sim_exchange *x);

/* The CQ that announces the receiver's next message. */
struct sim_cq *sim_exchange_awaited(struct sim_exchange *x);

/* Takes a message. The caller owes a sim_exchange_release(). Return: its slot. */
uint32_t sim_exchange_take(struct sim_exchange *x);
void sim_exchange_release(struct sim_thread *self, struct sim_exchange *x, uint32_t slot);

#endif
