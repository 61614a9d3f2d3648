/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "sim/exchange.h"

#define DEPTH 4096 /* of a QP: deeper than what one end has under way */
/* When ends look is as lib/exchange has it, except that nobody sleeps here, and so nobody rings. */
#define BATCH 64u /* news that a look is to find */
#define CONFIRM_MANY 32u /* slots that are not left unconfirmed, whatever the peer is at */
#define CONFIRM_NS 512000u /* and no slot longer than that, while more is put */
#define WCS_MAX 32
#define SIGNAL_EVERY 32 /* immediate mode: writes with one completion */
#define MIRROR_KEY 1u
#define BITS_KEY 2u
#define SLOTS_KEY (1u << 31)

enum tag { TAG_LOOK = 1, TAG_WRITE, TAG_GIVE };

static uint64_t now_ns(const struct sim_exchange *x)
{
	return x->sender.node->host.clock->now_ps / SIM_PS_PER_NS;
}

/* A message takes effect at the receiver. */
static void effect_at_receiver(void *arg, const struct sim_wr *wr)
{
	struct sim_exchange *x = arg;
	uint32_t i, slot = (uint32_t)(wr->remote / x->settings->slot_bytes);

	if (wr->op == SIM_OP_READ) {
		for (i = 0; i < weir_confirm_words(x->in.slots); i++)
			x->sender.fresh[i] = x->in.bits[i];
		return;
	}
	x->has_landed[slot] = true;
	if (x->is_imm)
		x->landed[(x->first_landed + x->nr_landed++) % x->in.slots] = slot;
}

/* And at the sender: a look, or slots that are given back. */
static void effect_at_sender(void *arg, const struct sim_wr *wr)
{
	struct sim_exchange *x = arg;
	uint32_t i;

	if (wr->op != SIM_OP_READ)
		return;
	for (i = 0; i < weir_confirm_words(x->out.slots); i++)
		x->receiver.fresh[i] = x->out.bits[i];
}

static void post(struct sim_thread *self, struct sim_exchange_end *end, const struct sim_wr *wrs,
		 uint32_t count)
{
	if (sim_post_send(self, &end->node->device, end->qp, wrs, count) != count)
		abort(); /* the queue is deeper than the pool */
}

static struct sim_wr look_of(struct sim_exchange *x, struct sim_exchange_end *end)
{
	end->is_looking = true;
	x->looks++;
	return (struct sim_wr){ .id = TAG_LOOK, .op = SIM_OP_READ, .nr_sge = 1, .sge = &end->sge,
				.bytes = weir_confirm_words(x->out.slots) * 8, .rkey = BITS_KEY };
}

static struct sim_wr write_of(struct sim_exchange *x, uint32_t slot, uint32_t bytes)
{
	struct sim_exchange_end *end = &x->sender;
	struct sim_wr wr = { .id = TAG_WRITE, .op = SIM_OP_WRITE, .nr_sge = 1, .sge = &end->sge,
			     .bytes = bytes, .rkey = MIRROR_KEY, .is_silent = true,
			     .remote = slot * x->settings->slot_bytes };

	wr.is_inline = bytes <= end->node->host.profile->inline_max;
	weir_confirm_out_commit(&x->out, slot);
	x->bytes[slot] = bytes;
	x->has_landed[slot] = false;
	if (!x->is_imm)
		return wr;
	wr.op = SIM_OP_WRITE_IMM;
	weir_confirm_out_sent(&x->out);
	wr.is_silent = ++end->unsignalled < SIGNAL_EVERY;
	if (!wr.is_silent)
		end->unsignalled = 0;
	return wr;
}

static bool is_low(const struct sim_exchange *x)
{
	return (uint64_t)x->out.free * 100 < x->settings->percent * x->out.slots;
}

/* A peer that still had slots to give back when it was last looked at is busy with those. */
static bool is_to_confirm(const struct sim_exchange *x)
{
	uint64_t unconfirmed = x->out.committed - x->out.arrived;

	if (!unconfirmed || !weir_pace_is_due(&x->confirm, now_ns(x)))
		return false;
	return x->out.arrived == x->out.freed || unconfirmed >= CONFIRM_MANY ||
	       now_ns(x) - x->confirm.looked_ns >= x->confirm.gap_ns_max;
}

/* The sender has something to look for, and it is time. Who has no slot left waits for nothing else. */
static bool look_is_due(const struct sim_exchange *x)
{
	if (x->is_imm || x->sender.is_looking)
		return false;
	if (!x->out.free && x->out.arrived != x->out.committed)
		return true;
	return is_to_confirm(x) || (is_low(x) && weir_pace_is_due(&x->room, now_ns(x)));
}

static void look_from(struct sim_thread *self, struct sim_exchange *x, struct sim_exchange_end *end)
{
	struct sim_wr look = look_of(x, end);

	if (end == &x->sender)
		weir_confirm_out_look(&x->out);
	post(self, end, &look, 1);
}

uint32_t sim_exchange_put(struct sim_thread *self, struct sim_exchange *x, const uint32_t *bytes,
			  uint32_t count)
{
	struct sim_wr wrs[SIM_EXCHANGE_CHAIN + 1];
	uint64_t begin_ps = x->sender.node->host.clock->now_ps;
	uint32_t n, posted;
	int slot;

	for (n = 0; n < count && (slot = weir_confirm_out_acquire(&x->out)) >= 0; n++) {
		x->begin_ps[slot] = begin_ps;
		sim_thread_run(self, x->settings->core_ps);
		wrs[n] = write_of(x, (uint32_t)slot, bytes[n]);
	}
	posted = n;
	if (n && look_is_due(x)) {
		wrs[posted++] = look_of(x, &x->sender);
		weir_confirm_out_look(&x->out);
	}
	if (posted)
		post(self, &x->sender, wrs, posted);
	return n;
}

static void sender_looked(struct sim_exchange *x)
{
	uint64_t arrived = x->out.arrived;
	int freed = weir_confirm_out_looked(&x->out, x->sender.fresh);

	if (freed < 0)
		abort(); /* the other end keeps the rules */
	x->sender.is_looking = false;
	weir_pace_looked(&x->room, (uint32_t)freed, now_ns(x));
	weir_pace_looked(&x->confirm, (uint32_t)(x->out.arrived - arrived), now_ns(x));
}

static void take_back(struct sim_exchange *x, uint32_t count)
{
	for (; count; count--) {
		if (weir_confirm_out_told(&x->out, x->given[x->first_given]))
			abort();
		x->first_given = (x->first_given + 1) % x->out.slots;
		x->nr_given--;
	}
}

bool sim_exchange_hear(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->sender;
	struct sim_wc wcs[WCS_MAX];
	uint32_t i, n = 0;

	/* Immediate mode: completions of writes say nothing that is not known, and are taken last. */
	if (x->is_imm && end->recv_cq.count) {
		n = sim_poll_cq(self, &end->recv_cq, wcs, WCS_MAX);
		take_back(x, n * (uint32_t)x->settings->gives);
		sim_post_recv(self, x->receiver.qp->peer, n);
	}
	if (end->send_cq.count) {
		uint32_t taken = sim_poll_cq(self, &end->send_cq, wcs, WCS_MAX);

		for (i = 0; i < taken; i++) {
			if (wcs[i].id == TAG_LOOK)
				sender_looked(x);
		}
		n += taken;
	}
	if (look_is_due(x)) {
		look_from(self, x, end);
		n++;
	}
	return n;
}

static void receiver_looked(struct sim_exchange *x)
{
	int found = weir_confirm_in_looked(&x->in, x->receiver.fresh);

	if (found < 0)
		abort();
	x->receiver.is_looking = false;
	weir_pace_looked(&x->news, (uint32_t)found, now_ns(x));
}

/* Who were told of: as many as receives were taken, in the order landed. */
static void told(struct sim_thread *self, struct sim_exchange *x, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t slot = x->landed[x->first_landed];

		x->first_landed = (x->first_landed + 1) % x->in.slots;
		x->nr_landed--;
		if (weir_confirm_in_told(&x->in, slot))
			abort();
		x->taken[x->nr_taken++] = slot;
	}
	sim_post_recv(self, x->sender.qp->peer, count);
}

uint32_t sim_exchange_look(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->receiver;
	struct sim_wc wcs[WCS_MAX];
	uint32_t i, n;
	int slot;

	if (x->is_imm && end->recv_cq.count)
		told(self, x, sim_poll_cq(self, &end->recv_cq, wcs, WCS_MAX));
	n = end->send_cq.count ? sim_poll_cq(self, &end->send_cq, wcs, WCS_MAX) : 0;
	for (i = 0; i < n; i++) {
		if (wcs[i].id == TAG_LOOK)
			receiver_looked(x);
	}
	while ((slot = weir_confirm_in_find(&x->in)) >= 0)
		x->taken[x->nr_taken++] = (uint32_t)slot;
	if (!x->is_imm && !end->is_looking && weir_pace_is_due(&x->news, now_ns(x)))
		look_from(self, x, end);
	return x->nr_taken;
}

uint32_t sim_exchange_take(struct sim_exchange *x)
{
	uint32_t slot = x->taken[--x->nr_taken];

	if (!x->has_landed[slot])
		abort(); /* nobody is told of a slot before its data is there */
	return slot;
}

static void give(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->receiver;
	struct sim_wr wr = { .id = TAG_GIVE, .op = SIM_OP_SEND, .nr_sge = 1, .sge = &end->sge,
			     .bytes = 4 * (uint32_t)x->settings->gives };

	wr.is_inline = wr.bytes <= end->node->host.profile->inline_max;
	wr.is_silent = ++end->unsignalled < SIGNAL_EVERY;
	if (!wr.is_silent)
		end->unsignalled = 0;
	x->nr_back = 0;
	post(self, end, &wr, 1);
}

void sim_exchange_release(struct sim_thread *self, struct sim_exchange *x, uint32_t slot)
{
	sim_thread_run(self, x->settings->core_ps);
	weir_confirm_in_release(&x->in, slot);
	if (!x->is_imm)
		return;
	x->given[(x->first_given + x->nr_given++) % x->out.slots] = slot;
	if (++x->nr_back == x->settings->gives)
		give(self, x);
}

static int end_init(struct sim_exchange_end *end, struct sim_exchange *x, struct sim_node *node,
		    size_t memory)
{
	uint32_t words = weir_confirm_words((uint32_t)x->settings->slots);

	end->exchange = x;
	end->node = node;
	end->sge = (struct sim_sge){ 0, (uint32_t)x->settings->slot_bytes, SLOTS_KEY };
	end->bits = calloc(words, 8);
	end->fresh = calloc(words, 8);
	end->memory = calloc(1, memory);
	if (!end->bits || !end->fresh || !end->memory)
		return -ENOMEM;
	return sim_cq_init(&end->send_cq, NULL, 64) || sim_cq_init(&end->recv_cq, NULL, 64) ?
		       -ENOMEM : 0;
}

/* @from's QP; what it posts takes effect at @to. */
static int connect(struct sim_exchange *x, struct sim_world *world, struct sim_exchange_end *from,
		   struct sim_exchange_end *to,
		   void (*effect)(void *arg, const struct sim_wr *wr))
{
	struct sim_load_settings settings = *x->settings;

	settings.op = SIM_OP_WRITE; /* receives are this one's own affair */
	from->qp = sim_world_connect(world, from->node, to->node, &from->send_cq, &settings, DEPTH);
	if (!from->qp)
		return -ENOMEM;
	from->qp->peer->recv_cq = &to->recv_cq;
	from->qp->peer->recvs = (uint32_t)x->settings->slots;
	from->qp->peer->execute = effect;
	from->qp->peer->arg = x;
	return 0;
}

static uint32_t part_of(uint32_t slots, uint32_t parts)
{
	return slots / parts < 2 * BATCH ? slots / parts + 1 : 2 * BATCH;
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
	x->landed = calloc(slots, sizeof(*x->landed));
	x->given = calloc(slots, sizeof(*x->given));
	x->taken = calloc(slots, sizeof(*x->taken));
	if (!x->has_landed || !x->begin_ps || !x->bytes || !x->landed || !x->given || !x->taken)
		return -ENOMEM;
	weir_pace_init(&x->confirm, part_of(slots, 2), CONFIRM_NS, true);
	weir_pace_init(&x->news, BATCH, WEIR_PACE_NS, false);
	weir_pace_init(&x->room, part_of(slots, 4), WEIR_PACE_NS, true);
	rc = end_init(&x->sender, x, from, weir_confirm_out_bytes(slots));
	if (!rc)
		rc = end_init(&x->receiver, x, to, weir_confirm_in_bytes(slots));
	if (rc)
		return rc;
	weir_confirm_out_init(&x->out, slots, x->sender.bits, x->sender.memory);
	weir_confirm_in_init(&x->in, slots, x->receiver.bits, x->receiver.memory);
	rc = connect(x, world, &x->sender, &x->receiver, effect_at_receiver);
	return rc ? rc : connect(x, world, &x->receiver, &x->sender, effect_at_sender);
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
	free(x->given);
	free(x->taken);
}
