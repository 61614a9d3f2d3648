/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exchange on simulated threads: messages from one machine to another through a pool of slots,
 * as lib/exchange has it. core/confirm says which slots are full and which are free, core/look when
 * to look, to ring at the other end, and to tell it of a slot by an immediate. Or, as usual,
 * by an immediate for each message and messages that give slots back. Both ends poll, as who calls
 * lib/exchange without waiting does: nobody sleeps.
 *
 * Each end has a QP to the other. A look reads the other end's bits when it is executed there,
 * after the writes that came before it; that no slot is found before its data has landed is
 * checked.
 *
 * A call belongs to the thread of its end. Slots are found in no order, and given back as they
 * are.
 */
#ifndef WEIR_SIM_HOST_EXCHANGE_H
#define WEIR_SIM_HOST_EXCHANGE_H

#include "core/slots/slot_poll.h"
#include "sim/host/world.h"

#define SIM_EXCHANGE_CHAIN 32u /* messages with one doorbell, at most */
#define SIM_EXCHANGE_RECVS 32u /* receives with one doorbell, where bitmaps confirm */
#define SIM_EXCHANGE_NO_SLOT UINT32_MAX /* what an immediate is of that is a sign */

/* What a completion is of: the low byte of its id; above it, of a write, slots committed then. */
enum sim_exchange_tag {
	SIM_EXCHANGE_LOOK = 1,
	SIM_EXCHANGE_WRITE,
	SIM_EXCHANGE_GIVE,
	SIM_EXCHANGE_RING,
	SIM_EXCHANGE_SIGN,
};

enum sim_exchange_key {
	SIM_EXCHANGE_MIRROR = 1,
	SIM_EXCHANGE_BITS,
	SIM_EXCHANGE_BELL,
};

struct sim_exchange;

/**
 * struct sim_exchange_end - what both ends have
 * @exchange: of which it is an end
 * @node: where
 * @qp: to the other
 * @send_cq, @recv_cq: of it, and of what the other sends
 * @bits: its bits; @fresh: the other's, as the look under way found them; @memory: core/confirm's
 * @look: when to look
 * @sge: of what it posts
 * @unsignalled: work requests since the last one with a completion
 */
struct sim_exchange_end {
	struct sim_exchange *exchange;
	struct sim_node *node;
	struct sim_qp *qp;
	struct sim_cq send_cq, recv_cq;
	uint64_t *bits, *fresh;
	void *memory;
	struct weir_slot_poll look;
	struct sim_sge sge;
	uint32_t unsignalled;
};

/**
 * struct sim_exchange - one direction, from a sender to a receiver
 * @settings: kept
 * @is_imm: an immediate for each
 * @sender, @receiver: its ends
 * @out, @in: core's
 * @bell, @limit: what the receiver has rung, and how often in all it may be told;
 *	@answered: the last that was; @rings, @told: so far
 * @look_end, @acked: slots committed before the sender's look under way; those whose writes are
 *	known to be done
 * @has_landed, @begin_ps, @bytes: of each slot: its data is in the mirror; when its message began;
 *	its length
 * @taken, @nr_taken: slots found, and not asked for yet
 * @landed, @first_landed, @nr_landed, @landed_max: slots whose immediates wait, and signs, in the
 *	order landed, a ring; @nr_spare: receives that are to be posted again
 * @before, @others: of each slot: which was sent before it; how many of those its immediate tells of, too
 * @given, @first_given, @nr_given: slots given back, in the order sent, a ring; the last @nr_back
 *	are not sent yet
 * @looks: of both ends, so far
 */
struct sim_exchange {
	const struct sim_load_settings *settings;
	bool is_imm;
	struct sim_exchange_end sender, receiver;
	struct weir_slot_bitmap_tx out;
	struct weir_slot_bitmap_rx in;
	uint32_t bell, limit, answered, rings, told;
	uint64_t look_end, acked;
	bool *has_landed;
	uint64_t *begin_ps;
	uint32_t *bytes;
	uint32_t *taken, nr_taken;
	uint32_t *landed, first_landed, nr_landed, landed_max, nr_spare;
	uint32_t *before, *others;
	uint32_t *given, first_given, nr_given, nr_back;
	uint64_t looks;
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

/* Frees what it holds; the clock runs no more. */
void sim_exchange_fini(struct sim_exchange *exchange);

/**
 * sim_exchange_put() - send what there is room for
 * @self: the sender's thread
 * @x: the exchange
 * @bytes: of each of @count messages, at most SIM_EXCHANGE_CHAIN
 *
 * Return: how many were sent, perhaps none.
 */
uint32_t sim_exchange_put(struct sim_thread *self, struct sim_exchange *x, const uint32_t *bytes,
			  uint32_t count);

/* Takes what the other end tells, and looks if it has to. Return: whether anything was told. */
bool sim_exchange_hear(struct sim_thread *self, struct sim_exchange *x);

/* At the receiver: the same. Return: how many messages can be taken. */
uint32_t sim_exchange_look(struct sim_thread *self, struct sim_exchange *x);

/* Where the receiver hears of the next. */
struct sim_cq *sim_exchange_awaited(struct sim_exchange *x);

/* One of them; it is owed a sim_exchange_release(). Return: its slot. */
uint32_t sim_exchange_take(struct sim_exchange *x);
void sim_exchange_release(struct sim_thread *self, struct sim_exchange *x, uint32_t slot);

#endif
