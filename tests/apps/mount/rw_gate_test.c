/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount rw gate; suites: fs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apps/mount/inode/rw_gate.h"

static unsigned int granted;

static void grant(struct rw_gate_pass *pass)
{
	(void)pass;
	granted++;
}

static struct rw_gate_pass together(void)
{
	return (struct rw_gate_pass){ .granted = grant };
}

static struct rw_gate_pass alone(void)
{
	return (struct rw_gate_pass){ .alone = true, .granted = grant };
}

static int setup(void **state)
{
	static struct rw_gate gate;

	rw_gate_init(&gate);
	granted = 0;
	*state = &gate;
	return 0;
}

static void transfers_pass_together(void **state)
{
	struct rw_gate_pass a = together(), b = together();

	assert_true(rw_gate_enter(*state, &a));
	assert_true(rw_gate_enter(*state, &b));
}

static void an_exclusive_pass_waits_for_all(void **state)
{
	struct rw_gate_pass a = together(), b = together(), cut = alone();

	assert_true(rw_gate_enter(*state, &a));
	assert_true(rw_gate_enter(*state, &b));
	assert_false(rw_gate_enter(*state, &cut));
	assert_null(rw_gate_leave(*state));
	assert_ptr_equal(rw_gate_leave(*state), &cut);
	assert_null(cut.next);
}

static void an_exclusive_pass_excludes_all(void **state)
{
	struct rw_gate_pass cut = alone(), a = together(), other = alone();

	assert_true(rw_gate_enter(*state, &cut));
	assert_false(rw_gate_enter(*state, &a));
	assert_false(rw_gate_enter(*state, &other));
	assert_ptr_equal(rw_gate_leave(*state), &a);
	assert_ptr_equal(rw_gate_leave(*state), &other);
	assert_null(rw_gate_leave(*state));
}

static void a_waiter_is_not_overtaken(void **state)
{
	struct rw_gate_pass a = together(), cut = alone(), b = together();

	assert_true(rw_gate_enter(*state, &a));
	assert_false(rw_gate_enter(*state, &cut));
	assert_false(rw_gate_enter(*state, &b));
	assert_ptr_equal(rw_gate_leave(*state), &cut);
	assert_ptr_equal(rw_gate_leave(*state), &b);
}

static void all_compatible_waiters_enter(void **state)
{
	struct rw_gate_pass cut = alone(), a = together(), b = together(), last = alone();

	assert_true(rw_gate_enter(*state, &cut));
	assert_false(rw_gate_enter(*state, &a));
	assert_false(rw_gate_enter(*state, &b));
	assert_false(rw_gate_enter(*state, &last));
	rw_gate_call_granted(rw_gate_leave(*state));
	assert_int_equal(granted, 2);
	assert_null(rw_gate_leave(*state));
	rw_gate_call_granted(rw_gate_leave(*state));
	assert_int_equal(granted, 3);
}

static void a_waiter_that_withdraws_holds_nobody_up(void **state)
{
	struct rw_gate_pass a = together(), cut = alone(), b = together(), last = alone();
	struct rw_gate_pass *now;

	assert_true(rw_gate_enter(*state, &a));
	assert_false(rw_gate_enter(*state, &cut));
	assert_false(rw_gate_enter(*state, &b));
	assert_true(rw_gate_withdraw(*state, &cut, &now));
	assert_ptr_equal(now, &b);
	assert_null(now->next);
	assert_false(rw_gate_withdraw(*state, &b, &now));
	assert_false(rw_gate_enter(*state, &cut));
	assert_true(rw_gate_withdraw(*state, &cut, &now));
	assert_null(now);
	assert_false(rw_gate_enter(*state, &last));
	assert_null(rw_gate_leave(*state));
	assert_ptr_equal(rw_gate_leave(*state), &last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(transfers_pass_together, setup),
		cmocka_unit_test_setup(an_exclusive_pass_waits_for_all, setup),
		cmocka_unit_test_setup(an_exclusive_pass_excludes_all, setup),
		cmocka_unit_test_setup(a_waiter_is_not_overtaken, setup),
		cmocka_unit_test_setup(all_compatible_waiters_enter, setup),
		cmocka_unit_test_setup(a_waiter_that_withdraws_holds_nobody_up, setup),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
