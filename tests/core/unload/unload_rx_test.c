/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The target side of unloaded writes: copies and reports. */
#include "core/unload/unload_rx.h"
#include "tests/support/engine_bench.h"

#define OWNER 1u
#define TAG 7u
#define SLOTS 16u
#define TELL_MAX (SLOTS / 4)

struct unload_rx_target {
	struct weir_umtt_entry table[8];
	struct weir_umtt map;
	struct weir_unload_rx core;
	uint8_t memory[64];
};

static void target_init(struct unload_rx_target *t)
{
	struct weir_umtt_entry entry = { .tag = TAG, .owner = OWNER, .is_writable = true };

	memset(t, 0, sizeof(*t));
	entry.addr = (uintptr_t)t->memory;
	entry.length = sizeof(t->memory);
	assert_int_equal(weir_umtt_init(&t->map, t->table, 8), 0);
	assert_int_equal(weir_umtt_add(&t->map, &entry), 0);
	weir_unload_rx_init(&t->core, SLOTS);
}

static int copy(struct unload_rx_target *t, size_t at, uint8_t value)
{
	return weir_unload_rx_copy(&t->core, &t->map, OWNER, TAG, (uintptr_t)t->memory + at, &value,
				   1);
}

static void no_write_behind_a_refused_one_is_copied(void **state)
{
	struct unload_rx_target t;

	(void)state;
	target_init(&t);
	assert_int_equal(copy(&t, 3, 0xaa), 0);
	assert_int_equal(copy(&t, sizeof(t.memory), 0xbb), -EACCES);
	assert_int_equal(copy(&t, 4, 0xcc), -ECANCELED);
	assert_int_equal(t.memory[3], 0xaa);
	assert_int_equal(t.memory[4], 0);
	assert_int_equal(t.core.seen, 1);
}

static void a_checked_write_may_still_be_refused(void **state)
{
	struct unload_rx_target t;

	(void)state;
	target_init(&t);
	assert_int_equal(weir_unload_rx_check(&t.core, &t.map, OWNER, TAG, (uintptr_t)t.memory, 1),
			 0);
	assert_int_equal(weir_unload_rx_refuse(&t.core), -EACCES);
	assert_int_equal(copy(&t, 0, 0xcc), -ECANCELED);
	assert_int_equal(t.memory[0], 0);
	assert_true(weir_unload_rx_must_report(&t.core, true));
}

static void a_waiting_initiator_gets_its_return(void **state)
{
	struct unload_rx_target t;
	unsigned int i;

	(void)state;
	target_init(&t);
	assert_false(weir_unload_rx_must_report(&t.core, false));
	for (i = 0; i < TELL_MAX; i++) {
		assert_false(weir_unload_rx_must_report(&t.core, true));
		assert_int_equal(copy(&t, i, 1), 0);
		assert_true(weir_unload_rx_must_report(&t.core, false));
	}
	assert_true(weir_unload_rx_must_report(&t.core, true));
	weir_unload_rx_reported(&t.core);
	assert_false(weir_unload_rx_must_report(&t.core, false));
	assert_int_equal(copy(&t, 0, 2), 0);
	assert_false(weir_unload_rx_must_report(&t.core, true));
	assert_true(weir_unload_rx_must_report(&t.core, false));
}

static void a_refusal_is_told_at_once_and_once(void **state)
{
	struct unload_rx_target t;

	(void)state;
	target_init(&t);
	assert_int_equal(copy(&t, sizeof(t.memory), 1), -EACCES);
	assert_true(weir_unload_rx_must_report(&t.core, true));
	weir_unload_rx_reported(&t.core);
	assert_false(weir_unload_rx_must_report(&t.core, false));
}

/* Half of the reports are known to have arrived by the completion of the last of them. */
static void reports_in_flight_are_bounded(void **state)
{
	struct unload_rx_target t;
	uint32_t i;

	(void)state;
	target_init(&t);
	for (i = 1; i <= SLOTS; i++) {
		assert_int_equal(copy(&t, 0, 1), 0);
		assert_true(weir_unload_rx_must_report(&t.core, false));
		assert_int_equal(weir_unload_rx_reported(&t.core), i % (SLOTS / 2) == 0);
	}
	assert_int_equal(copy(&t, 0, 1), 0);
	assert_false(weir_unload_rx_must_report(&t.core, false));
	weir_unload_rx_report_arrived(&t.core);
	assert_true(weir_unload_rx_must_report(&t.core, false));
}

static void a_due_return_is_sent_without_writes(void **state)
{
	struct unload_rx_target t;

	(void)state;
	target_init(&t);
	t.core.owes = true;
	assert_false(weir_unload_rx_must_report(&t.core, true));
	assert_true(weir_unload_rx_must_report(&t.core, false));
	weir_unload_rx_reported(&t.core);
	assert_false(weir_unload_rx_must_report(&t.core, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("no write behind a refused write is copied",
		     no_write_behind_a_refused_one_is_copied),
		SAYS("a checked write may still be refused", a_checked_write_may_still_be_refused),
		SAYS("a waiting initiator gets a return; a sending one when enough is due",
		     a_waiting_initiator_gets_its_return),
		SAYS("a refusal is told at once, and once", a_refusal_is_told_at_once_and_once),
		SAYS("reports in flight are bounded", reports_in_flight_are_bounded),
		SAYS("a return that is due is sent without further writes",
		     a_due_return_is_sent_without_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
