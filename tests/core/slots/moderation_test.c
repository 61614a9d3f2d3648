/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/support/engine_bench.h"
#include "core/slots/moderation.h"

static void a_lone_message_is_looked_for_at_once_and_many_together(void **state)
{
	struct weir_moderation pace;
	uint64_t now_ns = 1000000000;
	int i;

	(void)state;
	weir_moderation_init(&pace, 64, WEIR_MODERATION_NS, false);
	assert_true(weir_moderation_is_due(&pace, now_ns));
	weir_moderation_polled(&pace, 1, now_ns); /* one after a long time */
	assert_true(weir_moderation_is_due(&pace, now_ns));
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 200); /* five a microsecond */
	assert_false(weir_moderation_is_due(&pace, now_ns + 6400));
	assert_true(weir_moderation_is_due(&pace, now_ns + 14000)); /* 64 of them, and no longer */
	weir_moderation_polled(&pace, 0, now_ns); /* nothing any more */
	assert_true(weir_moderation_is_due(&pace, now_ns));
}

/* Nobody waits: what finds nothing is done ever more rarely, up to a bound. */
static void the_patient_look_ever_more_rarely(void **state)
{
	struct weir_moderation pace;
	uint64_t now_ns = 1000000000, last = 0;
	int i;

	(void)state;
	weir_moderation_init(&pace, 64, WEIR_MODERATION_NS, true);
	for (i = 0; i < 20; i++) {
		weir_moderation_polled(&pace, 0, now_ns);
		assert_true(pace.gap_ns > last || pace.gap_ns == 8 * WEIR_MODERATION_NS);
		last = pace.gap_ns;
	}
	assert_int_equal(last, 8 * WEIR_MODERATION_NS);
	weir_moderation_polled(&pace, 1, now_ns); /* one more is not worth a look at once */
	assert_int_equal(pace.gap_ns, WEIR_MODERATION_NS);
}

/* What comes too slowly for a batch is looked for in what there is after the longest gap. */
static void the_gap_is_as_long_as_it_may_be(void **state)
{
	struct weir_moderation pace;
	uint64_t now_ns = 1000000000;
	int i;

	(void)state;
	weir_moderation_init(&pace, 64, 512000, true);
	assert_true(weir_moderation_is_due(&pace, now_ns));
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 4000);
	assert_int_equal(pace.gap_ns / 10000, 25); /* 64 of them */
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 200000);
	assert_int_equal(pace.gap_ns, 512000);
	weir_moderation_init(&pace, 64, WEIR_MODERATION_NS, false);
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 20000);
	assert_int_equal(pace.gap_ns, 0); /* one is there or none is: it is not worth waiting for */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_message_is_looked_for_at_once_and_many_together),
		cmocka_unit_test(the_patient_look_ever_more_rarely),
		cmocka_unit_test(the_gap_is_as_long_as_it_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
