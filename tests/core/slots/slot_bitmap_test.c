/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Both ends of a pool over a modelled connection, in random interleavings. Writes land late. A
 * bitmap read sees one word now and the next later, and completes later still. The connection
 * may execute a read again from the start, as after a lost response. Some slots are notified
 * instead. In every run nothing is lost, duplicated or overwritten before it is given back, and
 * the run ends.
 */
#include <stdlib.h>

#include "core/base/rng.h"
#include "tests/support/engine_bench.h"
#include "core/slots/slot_bitmap.h"

#define SLOTS_MAX 200
#define WORDS_MAX 4

/* A bitmap read in flight: it reads word by word and completes some time after the last word. */
struct bitmap_read {
	bool is_under_way;
	uint32_t words;
	uint64_t seen[WORDS_MAX];
};

struct pool {
	uint32_t slots, words;
	uint64_t out_bits[WORDS_MAX], in_bits[WORDS_MAX];
	uint64_t out_memory[WORDS_MAX * 4 + SLOTS_MAX], in_memory[WORDS_MAX * 3];
	struct weir_slot_bitmap_tx out;
	struct weir_slot_bitmap_rx in;
	struct bitmap_read out_look, in_look;

	/* writes in flight, in order: the message, and its slot below */
	uint64_t posted[SLOTS_MAX];
	uint32_t posted_slot[SLOTS_MAX];
	uint32_t notices_left[SLOTS_MAX]; /* how many slots the write notifies, its own included */
	uint32_t slot_of[20000]; /* of each message */
	uint32_t nr_posted;
	uint64_t mirror[SLOTS_MAX]; /* content of each slot at the receiver */
	uint32_t told[SLOTS_MAX], nr_told; /* notified, not handled yet */
	uint64_t sent, taken; /* message numbers, from 1 */
	bool seen[20000];
	uint32_t held[SLOTS_MAX], nr_held;
};

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	return weir_rng_scale(weir_rng_next(state), n);
}

static void land_one(struct pool *p)
{
	uint32_t i;

	if (!p->nr_posted)
		return;
	assert_int_equal(p->mirror[p->posted_slot[0]], 0); /* the slot was given back */
	p->mirror[p->posted_slot[0]] = p->posted[0];
	for (i = p->notices_left[0]; i--;)
		p->told[p->nr_told++] = p->slot_of[p->posted[0] - i];
	for (i = 1; i < p->nr_posted; i++) {
		p->posted[i - 1] = p->posted[i];
		p->posted_slot[i - 1] = p->posted_slot[i];
		p->notices_left[i - 1] = p->notices_left[i];
	}
	p->nr_posted--;
}

/*
 * Notify the peer of the slot, of all slots not shown yet, and of slots followed by a read in
 * flight.
 */
static void put_one(struct pool *p, bool notices_left)
{
	int slot = weir_slot_bitmap_tx_acquire(&p->out);

	if (slot < 0)
		return;
	weir_slot_bitmap_tx_commit(&p->out, (uint32_t)slot);
	assert_int_equal(weir_slot_bitmap_tx_last(&p->out), slot);
	p->notices_left[p->nr_posted] =
		notices_left ? (uint32_t)(p->out.committed - p->out.arrived) : 0;
	if (notices_left)
		weir_slot_bitmap_tx_notified(&p->out);
	p->posted[p->nr_posted] = ++p->sent;
	p->slot_of[p->sent] = (uint32_t)slot;
	p->posted_slot[p->nr_posted++] = (uint32_t)slot;
}

/* Execute the read again; only before it completes. */
static void look_again(struct bitmap_read *look)
{
	if (look->is_under_way)
		look->words = 0;
}

/* The connection is ordered: the sender's read comes after its writes. */
static void look_step(struct bitmap_read *look, const struct pool *p, const uint64_t *bits)
{
	if (look->words < p->words) {
		look->seen[look->words] = __atomic_load_n(&bits[look->words], __ATOMIC_ACQUIRE);
		look->words++;
	}
}

static void sender_look(struct pool *p)
{
	if (!p->out_look.is_under_way) {
		weir_slot_bitmap_tx_read_posted(&p->out);
		p->out_look = (struct bitmap_read){ .is_under_way = true };
	} else if (p->out_look.words < p->words) {
		while (p->nr_posted && p->out.arrived < p->out.covered &&
		       p->posted[0] <= p->out.covered)
			land_one(p);
		look_step(&p->out_look, p, p->in_bits);
	} else {
		p->out_look.is_under_way = false;
		assert_true(weir_slot_bitmap_tx_read_done(&p->out, p->out_look.seen) >= 0);
	}
}

static void take(struct pool *p, uint32_t slot)
{
	uint64_t message = p->mirror[slot];

	assert_in_range(message, 1, p->sent); /* the message has arrived */
	assert_false(p->seen[message]); /* and was not taken before */
	p->seen[message] = true;
	p->taken++;
	p->held[p->nr_held++] = slot;
}

static void hear_one(struct pool *p)
{
	uint32_t slot = p->told[0], i;

	if (!p->nr_told)
		return;
	for (i = 1; i < p->nr_told; i++)
		p->told[i - 1] = p->told[i];
	p->nr_told--;
	assert_int_equal(weir_slot_bitmap_rx_slot_filled(&p->in, slot), 0);
	take(p, slot);
}

static void receiver_look(struct pool *p)
{
	int slot;

	if (!p->in_look.is_under_way) {
		p->in_look = (struct bitmap_read){ .is_under_way = true };
	} else if (p->in_look.words < p->words) {
		look_step(&p->in_look, p, p->out_bits);
	} else {
		p->in_look.is_under_way = false;
		assert_true(weir_slot_bitmap_rx_read_done(&p->in, p->in_look.seen) >= 0);
		while ((slot = weir_slot_bitmap_rx_next_full(&p->in)) >= 0)
			take(p, (uint32_t)slot);
	}
}

static void release_one(struct pool *p, uint64_t *random)
{
	uint32_t which;

	if (!p->nr_held)
		return;
	which = (uint32_t)random_below(random, p->nr_held);
	p->mirror[p->held[which]] = 0;
	weir_slot_bitmap_rx_release(&p->in, p->held[which]);
	p->held[which] = p->held[--p->nr_held];
}

static void step(struct pool *p, uint64_t *random, uint64_t messages)
{
	switch (random_below(random, 7)) {
	case 0:
	case 1:
		if (p->sent < messages)
			put_one(p, random_below(random, 2));
		break;
	case 2:
		land_one(p);
		break;
	case 3:
		sender_look(p);
		break;
	case 4:
		receiver_look(p);
		break;
	case 5:
		hear_one(p);
		break;
	default:
		release_one(p, random);
		if (random_below(random, 8) == 0)
			look_again(random_below(random, 2) ? &p->out_look : &p->in_look);
	}
}

static void run(uint64_t seed, uint32_t slots)
{
	const uint64_t messages = slots * 8ull;
	struct pool *p = calloc(1, sizeof(*p));
	uint64_t random = seed * 77 + 1, steps = 0;

	p->slots = slots;
	p->words = weir_slot_bitmap_words(slots);
	weir_slot_bitmap_tx_init(&p->out, slots, p->out_bits, p->out_memory);
	weir_slot_bitmap_rx_init(&p->in, slots, p->in_bits, p->in_memory);
	while (p->taken < messages || p->nr_held || p->out.freed < messages) {
		step(p, &random, messages);
		if (++steps > 4000000)
			fail_msg("no progress: seed %llu, %u slots", (unsigned long long)seed,
				 slots);
	}
	assert_int_equal(p->taken, messages);
	assert_int_equal(p->out.free, slots);
	free(p);
}

static void nothing_is_lost_or_doubled_in_any_interleaving(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 7, 63, 64, 65, 130, 200 };
	unsigned int i;
	uint64_t seed;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (seed = 0; seed < 40; seed++)
			run(seed, sizes[i]);
}

static void a_slot_is_not_found_before_a_look_has_followed_it(void **state)
{
	uint64_t bits[1] = { 0 }, memory[8] = { 0 }, none[1] = { 0 };
	struct weir_slot_bitmap_tx out;

	(void)state;
	weir_slot_bitmap_tx_init(&out, 4, bits, memory);
	/* posted before the write: the read proves nothing about it */
	weir_slot_bitmap_tx_read_posted(&out);
	weir_slot_bitmap_tx_commit(&out, (uint32_t)weir_slot_bitmap_tx_acquire(&out));
	assert_int_equal(weir_slot_bitmap_tx_read_done(&out, none), 0);
	assert_int_equal(bits[0], 0);
	weir_slot_bitmap_tx_read_posted(&out);
	assert_int_equal(weir_slot_bitmap_tx_read_done(&out, none), 0);
	assert_int_equal(bits[0], 1);
}

static void a_slot_that_is_told_of_is_shown_by_no_bit(void **state)
{
	uint64_t bits[1] = { 0 }, memory[8] = { 0 }, back[1] = { 1 };
	struct weir_slot_bitmap_tx out;

	(void)state;
	weir_slot_bitmap_tx_init(&out, 4, bits, memory);
	weir_slot_bitmap_tx_commit(&out, (uint32_t)weir_slot_bitmap_tx_acquire(&out));
	weir_slot_bitmap_tx_notified(&out);
	assert_int_equal(bits[0], 0);
	assert_true(weir_slot_bitmap_tx_is_full(&out, 0));
	assert_int_equal(weir_slot_bitmap_tx_read_done(&out, back),
			 1); /* a notified slot is given back like any other */
	assert_int_equal(bits[0], 0);
	assert_false(weir_slot_bitmap_tx_is_full(&out, 0));
	assert_int_equal(weir_slot_bitmap_tx_read_done(&out, bits), -EPROTO);
}

static void bits_out_of_turn_are_a_broken_rule(void **state)
{
	uint64_t bits[1] = { 0 }, memory[8] = { 0 }, first[1] = { 1 }, beyond[1] = { 16 };
	struct weir_slot_bitmap_tx out;
	struct weir_slot_bitmap_rx in;

	(void)state;
	weir_slot_bitmap_tx_init(&out, 4, bits, memory);
	assert_int_equal(weir_slot_bitmap_tx_read_done(&out, first), -EPROTO); /* was never full */
	assert_int_equal(weir_slot_bitmap_tx_slot_returned(&out, 0), -EPROTO);
	assert_int_equal(weir_slot_bitmap_tx_slot_returned(&out, 4), -EPROTO);
	weir_slot_bitmap_rx_init(&in, 4, bits, memory);
	assert_int_equal(weir_slot_bitmap_rx_read_done(&in, beyond), -EPROTO);
	assert_int_equal(weir_slot_bitmap_rx_read_done(&in, first), 1);
	first[0] = 0;
	assert_int_equal(weir_slot_bitmap_rx_read_done(&in, first),
			 -EPROTO); /* not given back yet */
	assert_int_equal(weir_slot_bitmap_rx_slot_filled(&in, 0), -EPROTO);
	assert_int_equal(weir_slot_bitmap_rx_slot_filled(&in, 4), -EPROTO);
}

static void an_acquired_slot_can_be_returned_unused(void **state)
{
	uint64_t bits[1] = { 0 }, memory[8] = { 0 };
	struct weir_slot_bitmap_tx out;

	(void)state;
	weir_slot_bitmap_tx_init(&out, 2, bits, memory);
	assert_int_equal(weir_slot_bitmap_tx_acquire(&out), 0);
	assert_int_equal(weir_slot_bitmap_tx_acquire(&out), 1);
	assert_int_equal(weir_slot_bitmap_tx_acquire(&out), -EAGAIN);
	weir_slot_bitmap_tx_abandon(&out, 0);
	assert_int_equal(weir_slot_bitmap_tx_acquire(&out), 0);
	weir_slot_bitmap_tx_commit(&out, 0);
	assert_false(weir_slot_bitmap_tx_is_held(&out, 0));
	assert_true(weir_slot_bitmap_tx_is_full(&out, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_or_doubled_in_any_interleaving),
		cmocka_unit_test(a_slot_is_not_found_before_a_look_has_followed_it),
		cmocka_unit_test(a_slot_that_is_told_of_is_shown_by_no_bit),
		cmocka_unit_test(bits_out_of_turn_are_a_broken_rule),
		cmocka_unit_test(an_acquired_slot_can_be_returned_unused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
