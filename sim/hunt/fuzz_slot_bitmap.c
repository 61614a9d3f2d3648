/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slot confirmation between two ends that read each other's bitmap at random times, over QPs with
 * random delay. A read fetches word by word while the peer goes on; all work posted before the read
 * has executed by then. Slots are announced by bitmaps, by bitmaps and some immediates, or by
 * immediates only; then messages also return the slots. The hunt checks from outside: each message
 * is found once, unaltered, after its data has landed; no slot is written while the receiver holds
 * it; no slot is lost. Sometimes an end breaks the rules, and the other must detect this.
 */
#include "core/slots/slot_bitmap.h"
#include "sim/hunt/hunt.h"

#define SLOTS 200
#define WORDS ((SLOTS + 63) / 64)
#define QUEUE 512
#define MESSAGES 300
#define STEPS_MAX 200000

/* How the ends announce slots to each other. */
enum fuzz_slots_mode {
	SLOTS_BITS,
	SLOTS_BITS_AND_TELLS, /* the receiver returns all slots by bits */
	SLOTS_TELLS,
};

/* Slots announced to an end and not yet processed, oldest first. */
struct fuzz_slot_notice {
	uint32_t slots[SLOTS];
	uint32_t first, count;
};

/* Work posted by an end, oldest first: the write of a slot, or a bitmap read. */
struct fuzz_slot_end {
	uint64_t bits[WORDS], fresh[WORDS];
	uint64_t memory[4 * WORDS + SLOTS];
	int32_t queue[QUEUE]; /* a slot, or -1: a bitmap read */
	struct fuzz_slot_notice news;
	uint32_t first, count;
	bool is_reading, is_answered;
	uint32_t word; /* next word of the bitmap read being executed */
};

struct fuzz_slots {
	struct hunt *hunt;
	struct sim_rng rng;
	enum fuzz_slots_mode mode;
	uint32_t honest; /* steps until an end breaks the rules */
	struct weir_slot_bitmap_tx out;
	struct weir_slot_bitmap_rx in;
	struct fuzz_slot_end sender, receiver;
	uint32_t nr_slots;
	uint32_t written[SLOTS], landed[SLOTS]; /* the message in a slot, counted from 1 */
	bool is_notified[SLOTS], is_at_receiver[SLOTS], was_found[MESSAGES + 1];
	uint32_t sent, found;
	/* Slots that only a bitmap read will announce: all, and those before the last read. */
	uint32_t unshown, covered;
	uint32_t held[SLOTS], nr_held;
};

static void post_work(struct fuzz_slot_end *end, int32_t what)
{
	end->queue[(end->first + end->count++) % QUEUE] = what;
	end->is_reading |= what < 0;
}

static void notify_slot(struct fuzz_slot_end *end, uint32_t slot)
{
	end->news.slots[(end->news.first + end->news.count++) % SLOTS] = slot;
}

/* Returns the next slot announced to @end, or -1. */
static int next_notice(struct fuzz_slot_end *end)
{
	uint32_t slot = end->news.slots[end->news.first];

	if (!end->news.count)
		return -1;
	end->news.first = (end->news.first + 1) % SLOTS;
	end->news.count--;
	return (int)slot;
}

static void init_run(struct fuzz_slots *s)
{
	s->mode = (enum fuzz_slots_mode)sim_rng_below(&s->rng, SLOTS_TELLS + 1);
	s->honest = hunt_dice(&s->rng, 200) ? (uint32_t)sim_rng_below(&s->rng, 3000) : STEPS_MAX;
	s->nr_slots = 1 + (uint32_t)sim_rng_below(&s->rng, SLOTS);
	weir_slot_bitmap_tx_init(&s->out, s->nr_slots, s->sender.bits, s->sender.memory);
	weir_slot_bitmap_rx_init(&s->in, s->nr_slots, s->receiver.bits, s->receiver.memory);
}

/* An immediate announces all unannounced slots. So a slot is announced only if no other waits. */
static bool must_notify(struct fuzz_slots *s)
{
	if (s->mode == SLOTS_TELLS)
		return true;
	return s->mode == SLOTS_BITS_AND_TELLS && !s->unshown && hunt_dice(&s->rng, 500);
}

static void put_message(struct fuzz_slots *s, uint32_t slot)
{
	weir_slot_bitmap_tx_commit(&s->out, slot);
	s->written[slot] = ++s->sent;
	s->is_notified[slot] = must_notify(s);
	if (s->is_notified[slot])
		weir_slot_bitmap_tx_notified(&s->out);
	else
		s->unshown++;
	post_work(&s->sender, (int32_t)slot);
}

static void start_read(struct fuzz_slots *s)
{
	weir_slot_bitmap_tx_read_posted(&s->out);
	s->covered = s->unshown;
	post_work(&s->sender, -1);
}

/* Sends a message, takes a slot and gives it up, or starts a bitmap read. */
static void send_one(struct fuzz_slots *s)
{
	int slot;

	if (s->mode != SLOTS_TELLS && !s->sender.is_reading && hunt_dice(&s->rng, 200)) {
		start_read(s);
		return;
	}
	slot = s->sent < MESSAGES ? weir_slot_bitmap_tx_acquire(&s->out) : -1;
	if (slot < 0)
		return;
	hunt_expect(s->hunt, !s->is_at_receiver[slot], "slot %d is free, and the receiver has it",
		    slot);
	if (hunt_dice(&s->rng, 50)) {
		weir_slot_bitmap_tx_abandon(&s->out, (uint32_t)slot);
		return;
	}
	put_message(s, (uint32_t)slot);
}

/* Executes the next posted work of an end, or its next word. */
static void execute_posted(struct fuzz_slots *s, struct fuzz_slot_end *end, const uint64_t *others)
{
	int32_t what = end->count ? end->queue[end->first] : 0;

	if (!end->count || end->is_answered)
		return;
	if (what >= 0) {
		s->landed[what] = s->written[what];
		if (s->is_notified[what])
			notify_slot(&s->receiver, (uint32_t)what);
	} else {
		end->fresh[end->word] = others[end->word];
		if (++end->word < weir_slot_bitmap_words(s->nr_slots))
			return;
		end->word = 0;
		end->is_answered = true;
	}
	end->first = (end->first + 1) % QUEUE;
	end->count--;
}

static void sender_notices(struct fuzz_slots *s)
{
	int slot = next_notice(&s->sender);

	hunt_expect(s->hunt,
		    slot < 0 || !weir_slot_bitmap_tx_slot_returned(&s->out, (uint32_t)slot),
		    "the sender is told that slot %d is given back, and does not take it", slot);
	if (!s->sender.is_answered)
		return;
	s->unshown -= s->covered;
	s->sender.is_reading = s->sender.is_answered = false;
	hunt_expect(s->hunt, weir_slot_bitmap_tx_read_done(&s->out, s->sender.fresh) >= 0,
		    "the sender finds that the receiver breaks the rules");
}

static void take_slot(struct fuzz_slots *s, uint32_t slot)
{
	uint32_t message = s->landed[slot];

	hunt_expect(s->hunt, message && message == s->written[slot],
		    "slot %u is found before its message is there", slot);
	hunt_expect(s->hunt, !s->was_found[message], "message %u is found twice", message);
	s->was_found[message] = true;
	s->found++;
	s->is_at_receiver[slot] = true;
	s->held[s->nr_held++] = slot;
	hunt_note(s->hunt, "found", slot, message, s->nr_held);
}

static void receiver_notices(struct fuzz_slots *s)
{
	int slot = next_notice(&s->receiver);

	if (slot >= 0) {
		hunt_expect(s->hunt,
			    !weir_slot_bitmap_rx_slot_filled(&s->in, (uint32_t)slot) &&
				    weir_slot_bitmap_rx_is_held(&s->in, (uint32_t)slot),
			    "the receiver is told of slot %d, and does not take it", slot);
		take_slot(s, (uint32_t)slot);
	}
	if (!s->receiver.is_answered)
		return;
	s->receiver.is_reading = s->receiver.is_answered = false;
	hunt_expect(s->hunt, weir_slot_bitmap_rx_read_done(&s->in, s->receiver.fresh) >= 0,
		    "the receiver finds that the sender breaks the rules");
	while (!*s->hunt->why && (slot = weir_slot_bitmap_rx_next_full(&s->in)) >= 0)
		take_slot(s, (uint32_t)slot);
}

static void receive_one(struct fuzz_slots *s)
{
	uint32_t i;

	if (s->mode != SLOTS_TELLS && !s->receiver.is_reading && hunt_dice(&s->rng, 400))
		post_work(&s->receiver, -1);
	if (!s->nr_held || hunt_dice(&s->rng, 300))
		return;
	i = (uint32_t)sim_rng_below(&s->rng, s->nr_held);
	s->is_at_receiver[s->held[i]] = false;
	weir_slot_bitmap_rx_release(&s->in, s->held[i]);
	if (s->mode == SLOTS_TELLS)
		notify_slot(&s->sender, s->held[i]);
	s->held[i] = s->held[--s->nr_held];
}

static bool is_over(const struct fuzz_slots *s)
{
	return s->found == MESSAGES && !s->nr_held && s->out.free == s->nr_slots;
}

static void run_step(struct fuzz_slots *s)
{
	switch (sim_rng_below(&s->rng, 6)) {
	case 0:
		send_one(s);
		break;
	case 1:
		execute_posted(s, &s->sender, s->receiver.bits);
		break;
	case 2:
		execute_posted(s, &s->receiver, s->sender.bits);
		break;
	case 3:
		sender_notices(s);
		break;
	case 4:
		receiver_notices(s);
		break;
	default:
		receive_one(s);
		break;
	}
}

/* A slot that the sender holds, so the receiver cannot return it; or a slot that does not exist. */
static uint32_t slot_of_sender(struct fuzz_slots *s)
{
	int slot = hunt_dice(&s->rng, 800) ? weir_slot_bitmap_tx_acquire(&s->out) : -1;

	if (slot < 0)
		return s->nr_slots;
	if (s->mode == SLOTS_BITS && hunt_dice(&s->rng, 500))
		weir_slot_bitmap_tx_commit(&s->out, (uint32_t)slot);
	return (uint32_t)slot;
}

/* A slot that the receiver holds, so it cannot be filled; or a slot that does not exist. */
static uint32_t slot_of_receiver(struct fuzz_slots *s)
{
	if (!s->nr_held || hunt_dice(&s->rng, 200))
		return s->nr_slots;
	return s->held[sim_rng_below(&s->rng, s->nr_held)];
}

/* The peer's bitmap with the bit of @slot inverted. */
static bool show_bad_bits(struct fuzz_slots *s, struct fuzz_slot_end *end,
			  const struct fuzz_slot_end *peer, uint32_t slot)
{
	memcpy(end->fresh, peer->bits, sizeof(peer->bits));
	if (slot >= weir_slot_bitmap_words(s->nr_slots) * 64)
		return false;
	end->fresh[slot / 64] ^= 1ull << (slot % 64);
	return true;
}

/* The last step: no end continues afterwards. */
static void break_rules(struct fuzz_slots *s)
{
	bool by_bits = s->mode != SLOTS_TELLS && (s->mode == SLOTS_BITS || hunt_dice(&s->rng, 500));
	bool by_receiver = hunt_dice(&s->rng, 500);
	uint32_t slot = by_receiver ? slot_of_sender(s) : slot_of_receiver(s);
	int rc = -EPROTO;

	if (!by_bits)
		rc = by_receiver ? weir_slot_bitmap_tx_slot_returned(&s->out, slot) :
				   weir_slot_bitmap_rx_slot_filled(&s->in, slot);
	else if (by_receiver && show_bad_bits(s, &s->sender, &s->receiver, slot))
		rc = weir_slot_bitmap_tx_read_done(&s->out, s->sender.fresh);
	else if (!by_receiver && show_bad_bits(s, &s->receiver, &s->sender, slot))
		rc = weir_slot_bitmap_rx_read_done(&s->in, s->receiver.fresh);
	hunt_note(s->hunt, "breach", slot, by_bits, by_receiver);
	hunt_expect(s->hunt, rc == -EPROTO,
		    "the %s breaks the rules with slot %u, and that returns %d",
		    by_receiver ? "receiver" : "sender", slot, rc);
}

void hunt_slot_bitmap(struct hunt *h, uint64_t seed)
{
	struct fuzz_slots s = { .hunt = h };
	uint32_t steps;

	sim_rng_init(&s.rng, seed, "slots", 0);
	init_run(&s);
	for (steps = 0; !*h->why && !is_over(&s) && steps < s.honest; steps++)
		run_step(&s);
	if (!*h->why && steps == s.honest && steps < STEPS_MAX) {
		break_rules(&s);
		return;
	}
	hunt_expect(h, is_over(&s), "%u messages of %u are found, and %u slots of %u are free",
		    s.found, MESSAGES, s.out.free, s.nr_slots);
}
