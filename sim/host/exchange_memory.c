/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Both ends of an exchange: their memory, and the effect of messages on the memory. */
#include <errno.h>
#include <stdlib.h>

#include "sim/host/exchange.h"

#define DEPTH 4096 /* of a QP: more than one end has in flight */
#define SLOTS_KEY (1u << 31)
#define RECVS (WEIR_SLOT_POLL_NOTIFIES_MAX + 2 * SIM_EXCHANGE_RECVS) /* with bitmaps */

/* Effect of a message in the receiver's memory. */
static void effect_at_receiver(void *arg, const struct sim_wr *wr)
{
	struct sim_exchange *x = arg;
	uint32_t i, slot = (uint32_t)(wr->remote / x->settings->slot_bytes);

	if (wr->op == SIM_OP_READ) {
		for (i = 0; i < weir_slot_bitmap_words(x->in.slots); i++)
			x->sender.fresh[i] = x->in.bits[i];
		return;
	}
	if (wr->id != SIM_EXCHANGE_SIGN)
		x->has_landed[slot] = true;
	if (wr->op == SIM_OP_WRITE_IMM)
		x->landed[(x->first_landed + x->nr_landed++) % x->landed_max] =
			wr->id == SIM_EXCHANGE_SIGN ? SIM_EXCHANGE_NO_SLOT : slot;
}

/* Effect in the sender's memory: a bitmap read, a notification request, or returned slots. */
static void effect_at_sender(void *arg, const struct sim_wr *wr)
{
	struct sim_exchange *x = arg;
	uint32_t i;

	if (wr->id == SIM_EXCHANGE_REQUEST) {
		x->doorbell = (uint32_t)wr->operand;
		x->limit = (uint32_t)wr->compare;
	}
	if (wr->op != SIM_OP_READ)
		return;
	for (i = 0; i < weir_slot_bitmap_words(x->out.slots); i++)
		x->receiver.fresh[i] = x->out.bits[i];
}

static int end_init(struct sim_exchange_end *end, struct sim_exchange *x, struct sim_node *node,
		    size_t memory)
{
	uint32_t words = weir_slot_bitmap_words((uint32_t)x->settings->slots);

	end->exchange = x;
	end->node = node;
	weir_slot_poll_init(&end->slot_poll, (uint32_t)x->settings->slots,
			    (uint32_t)x->settings->percent);
	end->sge = (struct sim_sge){ 0, (uint32_t)x->settings->slot_bytes, SLOTS_KEY };
	end->bits = calloc(words, 8);
	end->fresh = calloc(words, 8);
	end->memory = calloc(1, memory);
	if (!end->bits || !end->fresh || !end->memory)
		return -ENOMEM;
	return sim_cq_init(&end->send_cq, NULL, 64) || sim_cq_init(&end->recv_cq, NULL, 64) ?
		       -ENOMEM :
		       0;
}

/* Connects @from's QP; its requests take effect at @to. */
static int connect_end(struct sim_exchange *x, struct sim_world *world,
		       struct sim_exchange_end *from, struct sim_exchange_end *to,
		       void (*effect)(void *arg, const struct sim_wr *wr))
{
	struct sim_load_settings settings = *x->settings;

	settings.op = SIM_OP_WRITE; /* no receives from the world: the exchange posts its own */
	from->qp = sim_world_connect(world, from->node, to->node, &from->send_cq, &settings, DEPTH);
	if (!from->qp)
		return -ENOMEM;
	from->qp->peer->recv_cq = &to->recv_cq;
	from->qp->peer->recvs = x->is_imm ? (uint32_t)x->settings->slots : RECVS;
	from->qp->peer->execute = effect;
	from->qp->peer->arg = x;
	return 0;
}

int sim_exchange_init(struct sim_exchange *x, struct sim_world *world, struct sim_node *from,
		      struct sim_node *to, const struct sim_load_settings *settings)
{
	uint32_t slots = (uint32_t)settings->slots;
	int rc;

	*x = (struct sim_exchange){ .settings = settings, .is_imm = settings->imm };
	x->has_landed = calloc(slots, sizeof(*x->has_landed));
	x->begin_ps = calloc(slots, sizeof(*x->begin_ps));
	x->bytes = calloc(slots, sizeof(*x->bytes));
	x->landed_max = slots + WEIR_SLOT_POLL_NOTIFIES_MAX;
	x->landed = calloc(x->landed_max, sizeof(*x->landed));
	x->before = calloc(slots, sizeof(*x->before));
	x->others = calloc(slots, sizeof(*x->others));
	x->given = calloc(slots, sizeof(*x->given));
	x->taken = calloc(slots, sizeof(*x->taken));
	if (!x->has_landed || !x->begin_ps || !x->bytes || !x->landed || !x->before || !x->others ||
	    !x->given || !x->taken)
		return -ENOMEM;
	rc = end_init(&x->sender, x, from, weir_slot_bitmap_tx_bytes(slots));
	if (!rc)
		rc = end_init(&x->receiver, x, to, weir_slot_bitmap_rx_bytes(slots));
	if (rc)
		return rc;
	weir_slot_bitmap_tx_init(&x->out, slots, x->sender.bits, x->sender.memory);
	weir_slot_bitmap_rx_init(&x->in, slots, x->receiver.bits, x->receiver.memory);
	rc = connect_end(x, world, &x->sender, &x->receiver, effect_at_receiver);
	return rc ? rc : connect_end(x, world, &x->receiver, &x->sender, effect_at_sender);
}

static void end_fini(struct sim_exchange_end *end)
{
	sim_cq_fini(&end->send_cq);
	sim_cq_fini(&end->recv_cq);
	free(end->bits);
	free(end->fresh);
	free(end->memory);
}

void sim_exchange_fini(struct sim_exchange *x)
{
	end_fini(&x->sender);
	end_fini(&x->receiver);
	free(x->has_landed);
	free(x->begin_ps);
	free(x->bytes);
	free(x->landed);
	free(x->before);
	free(x->others);
	free(x->given);
	free(x->taken);
}
