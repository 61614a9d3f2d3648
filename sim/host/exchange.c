/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sender and the receiver of an exchange. Each posts its own bitmap reads; core/slots decides
 * when to read, when to ask for a notification and when to send one.
 */
#include <stdlib.h>

#include "sim/host/exchange.h"

#define WCS_MAX 32
#define SIGNAL_EVERY 32 /* writes with immediate for each signalled one */

static uint64_t now_ns(const struct sim_exchange *x)
{
	return x->sender.node->host.clock->now_ps / SIM_PS_PER_NS;
}

static void post_chain(struct sim_thread *self, struct sim_exchange_end *end,
		       const struct sim_wr *wrs, uint32_t count)
{
	if (sim_post_send(self, &end->node->device, end->qp, wrs, count) != count)
		abort(); /* the queue is deeper than the pool */
}

static struct sim_wr bitmap_read_wr(struct sim_exchange *x, struct sim_exchange_end *end)
{
	weir_slot_poll_posted(&end->slot_poll, now_ns(x));
	if (end == &x->sender) {
		weir_slot_bitmap_tx_read_posted(&x->out);
		x->read_end = x->out.committed;
	}
	x->bitmap_reads++;
	return (struct sim_wr){ .id = SIM_EXCHANGE_READ,
				.op = SIM_OP_READ,
				.nr_sge = 1,
				.sge = &end->sge,
				.bytes = weir_slot_bitmap_words(x->out.slots) * 8,
				.rkey = SIM_EXCHANGE_BITS };
}

static struct sim_wr write_of(struct sim_exchange *x, uint32_t slot, uint32_t bytes)
{
	struct sim_exchange_end *end = &x->sender;
	struct sim_wr wr = { .op = SIM_OP_WRITE,
			     .nr_sge = 1,
			     .sge = &end->sge,
			     .bytes = bytes,
			     .rkey = SIM_EXCHANGE_MIRROR,
			     .is_silent = true,
			     .remote = slot * x->settings->slot_bytes };

	wr.is_inline = bytes <= end->node->host.profile->inline_max;
	x->before[slot] = x->out.committed ? weir_slot_bitmap_tx_last(&x->out) : 0;
	weir_slot_bitmap_tx_commit(&x->out, slot);
	weir_slot_poll_put(&end->slot_poll, bytes);
	wr.id = SIM_EXCHANGE_WRITE | x->out.committed << 8;
	x->bytes[slot] = bytes;
	x->has_landed[slot] = false;
	return wr;
}

/* The immediate of the last slot covers all slots that the receiver was not notified of. */
static void notify_with(struct sim_exchange *x, struct sim_wr *wr)
{
	struct sim_exchange_end *end = &x->sender;

	wr->op = SIM_OP_WRITE_IMM;
	x->others[weir_slot_bitmap_tx_last(&x->out)] =
		(uint32_t)weir_slot_poll_unshown(&x->out) - 1;
	weir_slot_bitmap_tx_notified(&x->out);
	wr->is_silent = ++end->unsignalled < SIGNAL_EVERY;
	if (!wr->is_silent)
		end->unsignalled = 0;
}

/* The receiver's current request for notification. */
static struct weir_slot_poll_request request_of(const struct sim_exchange *x)
{
	uint32_t notices_left = x->limit - x->notices;

	if (x->doorbell == x->answered)
		return (struct weir_slot_poll_request){ 0 };
	return (struct weir_slot_poll_request){
		x->doorbell, notices_left <= WEIR_SLOT_POLL_NOTIFIES_MAX ? notices_left : 0,
		weir_slot_poll_delay_ns_max(&x->receiver.slot_poll)
	};
}

static bool must_notify(struct sim_exchange *x)
{
	return !x->is_imm &&
	       weir_slot_poll_must_notify(&x->sender.slot_poll, &x->out, request_of(x), now_ns(x));
}

static void send_immediate(struct sim_exchange *x, struct sim_wr *wr)
{
	weir_slot_poll_notified(&x->sender.slot_poll, &x->out, weir_slot_poll_unshown(&x->out),
				now_ns(x));
	notify_with(x, wr);
	if (++x->notices == x->limit)
		x->answered = x->doorbell;
}

static bool read_is_due(const struct sim_exchange *x)
{
	return !x->is_imm &&
	       weir_slot_poll_is_due(&x->sender.slot_poll, &x->out, request_of(x), now_ns(x));
}

static void post_read(struct sim_thread *self, struct sim_exchange *x, struct sim_exchange_end *end)
{
	struct sim_wr slot_poll = bitmap_read_wr(x, end);

	post_chain(self, end, &slot_poll, 1);
}

/* The receiver asks for a notification, then reads the bitmap once more. */
static void request_notification(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->receiver;
	struct sim_wr wrs[2] = { { .id = SIM_EXCHANGE_REQUEST,
				   .op = SIM_OP_WRITE,
				   .is_silent = true,
				   .nr_sge = 1,
				   .sge = &end->sge,
				   .bytes = 8,
				   .rkey = SIM_EXCHANGE_DOORBELL } };

	weir_slot_poll_requested(&end->slot_poll, WEIR_SLOT_POLL_NEWS);
	wrs[0].operand = ++x->requests;
	wrs[0].compare = end->slot_poll.notices + WEIR_SLOT_POLL_NOTIFIES_MAX;
	wrs[1] = bitmap_read_wr(x, end);
	post_chain(self, end, wrs, 2);
}

/* The sender has flipped bits: notifies the receiver if it has asked. */
static void answer_request(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->sender;
	struct sim_wr wr = { .id = SIM_EXCHANGE_SIGN,
			     .op = SIM_OP_WRITE_IMM,
			     .rkey = SIM_EXCHANGE_DOORBELL };

	if (x->doorbell == x->answered)
		return;
	x->answered = x->doorbell;
	post_chain(self, end, &wr, 1);
}

uint32_t sim_exchange_put(struct sim_thread *self, struct sim_exchange *x, const uint32_t *bytes,
			  uint32_t count)
{
	struct sim_wr wrs[SIM_EXCHANGE_CHAIN + 1];
	uint64_t begin_ps = x->sender.node->host.clock->now_ps;
	uint32_t n, posted;

	if (count > x->out.free)
		count = x->out.free;
	for (n = 0; n < count; n++) {
		uint32_t slot = (uint32_t)weir_slot_bitmap_tx_acquire(&x->out);

		x->begin_ps[slot] = begin_ps;
		sim_thread_run(self, x->settings->core_ps);
		wrs[n] = write_of(x, slot, bytes[n]);
		if (x->is_imm)
			notify_with(x, &wrs[n]);
	}
	if (n && must_notify(x))
		send_immediate(x, &wrs[n - 1]);
	posted = n;
	if (n && read_is_due(x))
		wrs[posted++] = bitmap_read_wr(x, &x->sender);
	if (posted)
		post_chain(self, &x->sender, wrs, posted);
	return n;
}

static void sender_looked(struct sim_thread *self, struct sim_exchange *x)
{
	uint64_t arrived = x->out.arrived;
	int freed = weir_slot_bitmap_tx_read_done(&x->out, x->sender.fresh);

	if (freed < 0)
		abort(); /* the peer keeps the protocol */
	if (x->acked < x->read_end)
		x->acked = x->read_end;
	weir_slot_poll_read_done(&x->sender.slot_poll, &x->out, 0, (uint32_t)freed,
				 (uint32_t)(x->out.arrived - arrived), now_ns(x));
	if (x->out.arrived != arrived)
		answer_request(self, x);
}

static void reclaim_slots(struct sim_exchange *x, uint32_t count)
{
	for (; count; count--) {
		if (weir_slot_bitmap_tx_slot_returned(&x->out, x->given[x->first_given]))
			abort();
		x->first_given = (x->first_given + 1) % x->out.slots;
		x->nr_given--;
	}
}

static void sender_completed(struct sim_thread *self, struct sim_exchange *x, uint64_t id)
{
	if (id == SIM_EXCHANGE_READ)
		sender_looked(self, x);
	else if ((id & 0xff) == SIM_EXCHANGE_WRITE && x->acked < id >> 8)
		x->acked = id >> 8;
}

/* A sender without free slots waits for a slot, and for its writes to be found. */
static bool wants_room(const struct sim_exchange *x)
{
	return !x->is_imm && !x->out.free &&
	       weir_slot_poll_is_wanted(&x->sender.slot_poll, WEIR_SLOT_POLL_ROOM,
					x->acked != x->out.committed, now_ns(x));
}

bool sim_exchange_hear(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->sender;
	struct sim_wc wcs[WCS_MAX];
	uint32_t i, n = 0, taken;

	/* Immediate mode: completions of writes carry no news and are polled last. */
	if (x->is_imm && end->recv_cq.count) {
		n = sim_poll_cq(self, &end->recv_cq, wcs, WCS_MAX);
		reclaim_slots(x, n * (uint32_t)x->settings->credit_batch);
		sim_post_recv(self, x->receiver.qp->peer, n);
	}
	if (end->send_cq.count) {
		taken = sim_poll_cq(self, &end->send_cq, wcs, WCS_MAX);
		for (i = 0; i < taken; i++)
			sender_completed(self, x, wcs[i].id);
		n += taken;
	}
	if (end->slot_poll.is_reading)
		weir_slot_poll_polled(&end->slot_poll, now_ns(x));
	if (wants_room(x)) {
		post_read(self, x, end);
		n++;
	}
	return n;
}

static void receiver_read_done(struct sim_exchange *x)
{
	int found = weir_slot_bitmap_rx_read_done(&x->in, x->receiver.fresh);

	if (found < 0)
		abort();
	weir_slot_poll_read_done(&x->receiver.slot_poll, &x->out, (uint32_t)found, 0, 0, now_ns(x));
}

/* Notification of @slot and the slots before it, or of no slot. */
static void take_notice(struct sim_exchange *x, uint32_t slot)
{
	uint32_t others;

	if (slot == SIM_EXCHANGE_NO_SLOT) {
		weir_slot_poll_woken(&x->receiver.slot_poll);
		return;
	}
	weir_slot_poll_was_notified(&x->receiver.slot_poll);
	for (others = x->others[slot];; slot = x->before[slot]) {
		if (weir_slot_bitmap_rx_slot_filled(&x->in, slot))
			abort();
		x->taken[x->nr_taken++] = slot;
		if (!others--)
			return;
	}
}

/*
 * Takes the immediates of @count receives, in the order landed. With bitmaps, immediates are rare.
 */
static void take_immediates(struct sim_thread *self, struct sim_exchange *x, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t slot = x->landed[x->first_landed];

		x->first_landed = (x->first_landed + 1) % x->landed_max;
		x->nr_landed--;
		take_notice(x, slot);
	}
	x->nr_spare += count;
	if (!x->is_imm && x->nr_spare < SIM_EXCHANGE_RECVS)
		return;
	sim_post_recv(self, x->sender.qp->peer, x->nr_spare);
	x->nr_spare = 0;
}

static void look_for_news(struct sim_thread *self, struct sim_exchange *x)
{
	struct weir_slot_poll *slot_poll = &x->receiver.slot_poll;

	if (x->is_imm || x->nr_taken ||
	    !weir_slot_poll_is_wanted(slot_poll, WEIR_SLOT_POLL_NEWS, false, now_ns(x)))
		return;
	if (weir_slot_poll_prefers_notify(slot_poll) && slot_poll->requested != WEIR_SLOT_POLL_NEWS)
		request_notification(self, x);
	else
		post_read(self, x, &x->receiver);
}

uint32_t sim_exchange_look(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->receiver;
	struct sim_wc wcs[WCS_MAX];
	uint32_t i, n;
	int slot;

	if (end->recv_cq.count)
		take_immediates(self, x, sim_poll_cq(self, &end->recv_cq, wcs, WCS_MAX));
	n = end->send_cq.count ? sim_poll_cq(self, &end->send_cq, wcs, WCS_MAX) : 0;
	for (i = 0; i < n; i++) {
		if (wcs[i].id == SIM_EXCHANGE_READ)
			receiver_read_done(x);
	}
	if (end->slot_poll.is_reading)
		weir_slot_poll_polled(&end->slot_poll, now_ns(x));
	while ((slot = weir_slot_bitmap_rx_next_full(&x->in)) >= 0)
		x->taken[x->nr_taken++] = (uint32_t)slot;
	look_for_news(self, x);
	return x->nr_taken;
}

struct sim_cq *sim_exchange_awaited(struct sim_exchange *x)
{
	bool is_notified = x->is_imm || weir_slot_poll_has_requested(&x->receiver.slot_poll,
								     WEIR_SLOT_POLL_NEWS, false);

	return is_notified ? &x->receiver.recv_cq : &x->receiver.send_cq;
}

uint32_t sim_exchange_take(struct sim_exchange *x)
{
	uint32_t slot = x->taken[--x->nr_taken];

	if (!x->has_landed[slot])
		abort(); /* no slot may be announced before its data has landed */
	return slot;
}

static void return_slots(struct sim_thread *self, struct sim_exchange *x)
{
	struct sim_exchange_end *end = &x->receiver;
	struct sim_wr wr = { .id = SIM_EXCHANGE_GIVE,
			     .op = SIM_OP_SEND,
			     .nr_sge = 1,
			     .sge = &end->sge,
			     .bytes = 4 * (uint32_t)x->settings->credit_batch };

	wr.is_inline = wr.bytes <= end->node->host.profile->inline_max;
	wr.is_silent = ++end->unsignalled < SIGNAL_EVERY;
	if (!wr.is_silent)
		end->unsignalled = 0;
	x->nr_back = 0;
	post_chain(self, end, &wr, 1);
}

void sim_exchange_release(struct sim_thread *self, struct sim_exchange *x, uint32_t slot)
{
	sim_thread_run(self, x->settings->core_ps);
	weir_slot_bitmap_rx_release(&x->in, slot);
	if (!x->is_imm)
		return;
	x->given[(x->first_given + x->nr_given++) % x->out.slots] = slot;
	if (++x->nr_back == x->settings->credit_batch)
		return_slots(self, x);
}
