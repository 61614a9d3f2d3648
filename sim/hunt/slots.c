/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Confirmation by bitmaps, between two ends that look when they please, over queue pairs that take
 * their time. A look reads one word after the other while the peer goes on; what was posted before
 * it has been executed by then. Judged from outside: each message is found once, after its data is
 * there and as it was sent; no slot is written while the receiver has it; none is lost.
 */
#include "core/confirm.h"
#include "sim/hunt/hunt.h"

#define SLOTS 200
#define WORDS ((SLOTS + 63) / 64)
#define QUEUE 512
#define MESSAGES 300
#define STEPS_MAX 200000

/* What an end has posted, oldest first: a slot's write, or a look. */
struct slot_end {
	uint64_t bits[WORDS], fresh[WORDS];
	uint64_t memory[3 * WORDS + SLOTS];
	int32_t queue[QUEUE]; /* a slot, or -1: a look */
	uint32_t first, count;
	bool is_looking, is_answered;
	uint32_t word; /* of the look that is being executed, the next */
};

struct slots {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_confirm_out out;
	struct weir_confirm_in in;
	struct slot_end sender, receiver;
	uint32_t nr_slots;
	uint32_t written[SLOTS], landed[SLOTS]; /* the message in a slot, counted from 1 */
	bool is_at_receiver[SLOTS], was_found[MESSAGES + 1];
	uint32_t sent, found;
	uint32_t held[SLOTS], nr_held;
};

static void queue(struct slot_end *end, int32_t what)
{
	end->queue[(end->first + end->count++) % QUEUE] = what;
	end->is_looking |= what < 0;
}

static void begin(struct slots *s)
{
	s->nr_slots = 1 + (uint32_t)sim_rng_below(&s->rng, SLOTS);
	weir_confirm_out_init(&s->out, s->nr_slots, s->sender.bits, s->sender.memory);
	weir_confirm_in_init(&s->in, s->nr_slots, s->receiver.bits, s->receiver.memory);
}

/* One message, or a slot taken and given up; or a look. */
static void send(struct slots *s)
{
	int slot;

	if (!s->sender.is_looking && hunt_dice(&s->rng, 200)) {
		weir_confirm_out_look(&s->out);
		queue(&s->sender, -1);
		return;
	}
	slot = s->sent < MESSAGES ? weir_confirm_out_acquire(&s->out) : -1;
	if (slot < 0)
		return;
	hunt_expect(s->hunt, !s->is_at_receiver[slot], "slot %d is free, and the receiver has it",
		    slot);
	if (hunt_dice(&s->rng, 50)) {
		weir_confirm_out_abandon(&s->out, (uint32_t)slot);
		return;
	}
	weir_confirm_out_commit(&s->out, (uint32_t)slot);
	s->written[slot] = ++s->sent;
	queue(&s->sender, slot);
}

/* The next thing that an end has posted, or the next word of it. */
static void execute(struct slots *s, struct slot_end *end, const uint64_t *others)
{
	int32_t what = end->count ? end->queue[end->first] : 0;

	if (!end->count || end->is_answered)
		return;
	if (what >= 0) {
		s->landed[what] = s->written[what];
	} else {
		end->fresh[end->word] = others[end->word];
		if (++end->word < weir_confirm_words(s->nr_slots))
			return;
		end->word = 0;
		end->is_answered = true;
	}
	end->first = (end->first + 1) % QUEUE;
	end->count--;
}

static void hear_sender(struct slots *s)
{
	if (!s->sender.is_answered)
		return;
	s->sender.is_looking = s->sender.is_answered = false;
	hunt_expect(s->hunt, weir_confirm_out_looked(&s->out, s->sender.fresh) >= 0,
		    "the sender finds that the receiver breaks the rules");
}

static void find(struct slots *s, uint32_t slot)
{
	uint32_t message = s->landed[slot];

	hunt_expect(s->hunt, message && message == s->written[slot],
		    "slot %u is found, and its message is not there", slot);
	hunt_expect(s->hunt, !s->was_found[message], "message %u is found twice", message);
	s->was_found[message] = true;
	s->found++;
	s->is_at_receiver[slot] = true;
	s->held[s->nr_held++] = slot;
	hunt_note(s->hunt, "found", slot, message, s->nr_held);
}

static void hear_receiver(struct slots *s)
{
	int slot;

	if (!s->receiver.is_answered)
		return;
	s->receiver.is_looking = s->receiver.is_answered = false;
	hunt_expect(s->hunt, weir_confirm_in_looked(&s->in, s->receiver.fresh) >= 0,
		    "the receiver finds that the sender breaks the rules");
	while (!*s->hunt->why && (slot = weir_confirm_in_find(&s->in)) >= 0)
		find(s, (uint32_t)slot);
}

static void receive(struct slots *s)
{
	uint32_t i;

	if (!s->receiver.is_looking && hunt_dice(&s->rng, 400))
		queue(&s->receiver, -1);
	if (!s->nr_held || hunt_dice(&s->rng, 300))
		return;
	i = (uint32_t)sim_rng_below(&s->rng, s->nr_held);
	s->is_at_receiver[s->held[i]] = false;
	weir_confirm_in_release(&s->in, s->held[i]);
	s->held[i] = s->held[--s->nr_held];
}

static bool is_over(const struct slots *s)
{
	return s->found == MESSAGES && !s->nr_held && s->out.free == s->nr_slots;
}

void hunt_slots(struct hunt *h, uint64_t seed)
{
	struct slots s = { .hunt = h };
	uint32_t steps;

	sim_rng_init(&s.rng, seed, "slots", 0);
	begin(&s);
	for (steps = 0; !*h->why && !is_over(&s) && steps < STEPS_MAX; steps++) {
		switch (sim_rng_below(&s.rng, 6)) {
		case 0:
			send(&s);
			break;
		case 1:
			execute(&s, &s.sender, s.receiver.bits);
			break;
		case 2:
			execute(&s, &s.receiver, s.sender.bits);
			break;
		case 3:
			hear_sender(&s);
			break;
		case 4:
			hear_receiver(&s);
			break;
		default:
			receive(&s);
			break;
		}
	}
	hunt_expect(h, is_over(&s), "%u messages of %u are found, and %u slots of %u are free", s.found,
		    MESSAGES, s.out.free, s.nr_slots);
}
