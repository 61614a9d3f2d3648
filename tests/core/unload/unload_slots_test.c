/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The initiator's side of unloaded writes: slots, and the target's reports. */
#include "core/unload/unload_slots.h"
#include "tests/support/engine_bench.h"

#define SLOTS 8u
#define NUMBERS 65536u /* writes are numbered modulo this */

static uint16_t take(struct weir_unload_slots *s)
{
	bool is_signalled;

	return weir_unload_slots_take(s, &is_signalled);
}

static void slots_are_taken_in_order_for_ever(void **state)
{
	struct weir_unload_slots s;
	uint32_t i;

	(void)state;
	weir_unload_slots_init(&s, SLOTS);
	for (i = 0; i < NUMBERS + 3; i++) {
		assert_int_equal(take(&s), i % SLOTS);
		assert_int_equal(weir_unload_slots_open(&s), 1);
		assert_int_equal(weir_unload_slots_returned(&s, (uint16_t)(i + 1), 1), 1);
	}
}

static void one_report_covers_many_writes(void **state)
{
	struct weir_unload_slots s;
	uint32_t i;

	(void)state;
	weir_unload_slots_init(&s, SLOTS);
	for (i = 0; i < SLOTS; i++)
		take(&s);
	assert_int_equal(weir_unload_slots_returned(&s, 3, SLOTS), 3);
	assert_int_equal(weir_unload_slots_open(&s), SLOTS - 3);
	assert_int_equal(weir_unload_slots_returned(&s, 3, SLOTS - 3), 0);
	assert_int_equal(weir_unload_slots_returned(&s, SLOTS, SLOTS - 3), SLOTS - 3);
	assert_int_equal(weir_unload_slots_open(&s), 0);
}

static void a_report_of_more_than_was_written_changes_nothing(void **state)
{
	struct weir_unload_slots s;

	(void)state;
	weir_unload_slots_init(&s, SLOTS);
	take(&s);
	take(&s);
	assert_int_equal(weir_unload_slots_returned(&s, 3, 2), -EPROTO);
	assert_int_equal(weir_unload_slots_returned(&s, (uint16_t)-1, 2), -EPROTO);
	assert_int_equal(weir_unload_slots_returned(&s, 0, -1), -EPROTO);
	assert_int_equal(weir_unload_slots_open(&s), 2);
	assert_int_equal(weir_unload_slots_returned(&s, 2, 2), 2);
}

static void a_write_that_was_not_sent_leaves_its_slot(void **state)
{
	struct weir_unload_slots s;

	(void)state;
	weir_unload_slots_init(&s, SLOTS);
	take(&s);
	assert_int_equal(take(&s), 1);
	weir_unload_slots_untake(&s);
	assert_int_equal(weir_unload_slots_open(&s), 1);
	assert_int_equal(take(&s), 1);
}

static void a_write_that_was_not_sent_leaves_its_turn_to_ask(void **state)
{
	struct weir_unload_slots s;
	bool is_signalled;
	uint32_t i;

	(void)state;
	weir_unload_slots_init(&s, SLOTS);
	for (i = 1; i <= 2 * SLOTS; i++) {
		weir_unload_slots_take(&s, &is_signalled);
		weir_unload_slots_untake(&s);
		weir_unload_slots_take(&s, &is_signalled);
		assert_int_equal(is_signalled, i % (SLOTS / 2) == 0);
	}
}

static void two_sends_of_a_round_ask_for_a_completion(void **state)
{
	struct weir_unload_slots s;
	bool is_signalled;
	uint32_t i;

	(void)state;
	weir_unload_slots_init(&s, SLOTS);
	for (i = 1; i <= 4 * SLOTS; i++) {
		weir_unload_slots_take(&s, &is_signalled);
		assert_int_equal(is_signalled, i % weir_unload_slots_signal_every(&s) == 0);
		assert_int_equal(is_signalled, i % (SLOTS / 2) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("slots are taken in order for ever", slots_are_taken_in_order_for_ever),
		SAYS("one report covers many writes", one_report_covers_many_writes),
		SAYS("a report of more than was written changes nothing",
		     a_report_of_more_than_was_written_changes_nothing),
		SAYS("a write that was not sent leaves its slot",
		     a_write_that_was_not_sent_leaves_its_slot),
		SAYS("a write that was not sent leaves its turn to ask",
		     a_write_that_was_not_sent_leaves_its_turn_to_ask),
		SAYS("two sends of a round ask for a completion",
		     two_sends_of_a_round_ask_for_a_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
