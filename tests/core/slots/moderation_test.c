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
	weir_moderation_polled(&pace, 1, now_ns); /* a message after a long gap */
	assert_true(weir_moderation_is_due(&pace, now_ns));
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 200); /* five per microsecond */
	assert_false(weir_moderation_is_due(&pace, now_ns + 6400));
	/* time for 64 messages, and no longer */
	assert_true(weir_moderation_is_due(&pace, now_ns + 14000));
	weir_moderation_polled(&pace, 0, now_ns); /* no more messages */
	assert_true(weir_moderation_is_due(&pace, now_ns));
}

/* The other end is patient: empty reads of the bitmap become rarer, up to a bound. */
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
	/* a single message is not worth an immediate read */
	weir_moderation_polled(&pace, 1, now_ns);
	assert_int_equal(pace.gap_ns, WEIR_MODERATION_NS);
}

/* Messages too slow for a batch are read together after the longest gap. */
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
	assert_int_equal(pace.gap_ns / 10000, 25); /* time for 64 messages */
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 200000);
	assert_int_equal(pace.gap_ns, 512000);
	weir_moderation_init(&pace, 64, WEIR_MODERATION_NS, false);
	for (i = 0; i < 20; i++)
		weir_moderation_polled(&pace, 1, now_ns += 20000);
	/* at most one message comes in a gap: waiting does not pay */
	assert_int_equal(pace.gap_ns, 0);
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
