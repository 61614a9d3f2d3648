/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux rate limit; suites: share */
/* The rate limit: sending advances a virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/mux/local/rate_limit.h"

#define SECOND 1000000000ull

static void without_a_limit_no_sender_waits(void **state)
{
	struct weir_mux_rate_limit r = { 0 };

	(void)state;
	weir_mux_rate_limit_charge(&r, 1 << 30, 5 * SECOND);
	assert_int_equal(weir_mux_rate_limit_due_ns(&r), 0);
}

static void sending_is_charged_in_time(void **state)
{
	struct weir_mux_rate_limit r = { .bytes_s = 1000000 };
	uint64_t now_ns = 10 * SECOND, due_ns;
	int i;

	(void)state;
	/* Unused time is kept, but not for long. */
	weir_mux_rate_limit_charge(&r, 1000000, now_ns);
	assert_int_equal(weir_mux_rate_limit_due_ns(&r), 11 * SECOND - WEIR_MUX_RATE_LIMIT_KEPT_NS);
	for (i = 0; i < 100; i++) {
		due_ns = weir_mux_rate_limit_due_ns(&r);
		weir_mux_rate_limit_charge(&r, 65536, due_ns);
		assert_int_equal(weir_mux_rate_limit_due_ns(&r), due_ns + 65536000);
	}
}

static void a_new_limit_applies_at_once(void **state)
{
	struct weir_mux_rate_limit r = { .bytes_s = 1000 };

	(void)state;
	weir_mux_rate_limit_charge(&r, 1000, 10 * SECOND);
	r.bytes_s = 0;
	assert_int_equal(weir_mux_rate_limit_due_ns(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_limit_no_sender_waits),
		cmocka_unit_test(sending_is_charged_in_time),
		cmocka_unit_test(a_new_limit_applies_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
