/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount affinity; suites: fs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/fuse.h>
#include <unistd.h>

#include "apps/mount/fuse/affinity.h"

#define NOBODY 0u /* a thread id that /proc does not have */
#define CALLS 1000u

static int pipe_ends[2];
static cpu_set_t all;

static cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	return set;
}

static void stay_on(int cpu)
{
	const cpu_set_t set = only(cpu);

	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* The @number-th CPU that the test may use, or -1. */
static int cpu(int number)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET((unsigned int)i, &all) && !number--)
			return i;
	return -1;
}

static void calls(struct affinity *caller, uint32_t opcode, uint32_t tid, unsigned int times)
{
	const struct fuse_in_header call = { .opcode = opcode, .pid = tid };

	while (times--)
		affinity_follow(caller, &call);
}

/* Makes enough calls for this test's thread to be followed. */
static void be_followed(struct affinity *caller)
{
	calls(caller, FUSE_READ, (uint32_t)gettid(), 1 + AFFINITY_LONE_MIN);
	assert_int_equal(caller->cpu, sched_getcpu());
}

static void check_affinity(const cpu_set_t *expected)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_true(CPU_EQUAL(&set, expected));
}

static int setup(void **state)
{
	static struct affinity caller;

	if (pipe(pipe_ends) || sched_getaffinity(0, sizeof(all), &all))
		return -1;
	affinity_init(&caller, pipe_ends[0]);
	*state = &caller;
	return 0;
}

/* Resets this thread's affinity for the next test. */
static int teardown(void **state)
{
	struct affinity *caller = *state;

	calls(caller, FUSE_LOOKUP, NOBODY, 1);
	affinity_fini(caller);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	return sched_setaffinity(0, sizeof(all), &all);
}

static void a_lone_caller_is_followed(void **state)
{
	struct affinity *caller = *state;
	const cpu_set_t here = only(cpu(0));

	stay_on(cpu(0));
	be_followed(caller);
	check_affinity(&here);
	calls(caller, FUSE_WRITE, (uint32_t)gettid(), CALLS);
	assert_int_equal(caller->cpu, cpu(0));
}

static void a_few_calls_are_not_enough(void **state)
{
	struct affinity *caller = *state;

	calls(caller, FUSE_READ, (uint32_t)gettid(), AFFINITY_LONE_MIN);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
}

static void another_caller_frees(void **state)
{
	struct affinity *caller = *state;

	stay_on(cpu(0));
	be_followed(caller);
	calls(caller, FUSE_READ, NOBODY, 1);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
	check_affinity(&all);
}

static void two_alternating_callers_are_not_followed(void **state)
{
	struct affinity *caller = *state;

	for (unsigned int i = 0; i < CALLS; i++) {
		calls(caller, FUSE_READ, (uint32_t)gettid(), 1);
		calls(caller, FUSE_READ, NOBODY, 1);
		assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
	}
}

static void a_waiting_call_ends_following(void **state)
{
	struct affinity *caller = *state;

	stay_on(cpu(0));
	be_followed(caller);
	assert_int_equal(write(pipe_ends[1], "", 1), 1);
	calls(caller, FUSE_READ, (uint32_t)gettid(), AFFINITY_LONE_MIN);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
	calls(caller, FUSE_READ, (uint32_t)gettid(), CALLS);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
}

static void a_call_in_service_ends_following(void **state)
{
	struct affinity *caller = *state;

	stay_on(cpu(0));
	be_followed(caller);
	affinity_io_begin(caller);
	calls(caller, FUSE_READ, (uint32_t)gettid(), 1);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
	affinity_io_end(caller);
	be_followed(caller);
}

static void a_call_without_data_ends_following(void **state)
{
	struct affinity *caller = *state;

	stay_on(cpu(0));
	be_followed(caller);
	calls(caller, FUSE_LOOKUP, (uint32_t)gettid(), 1);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
}

static void a_caller_unknown_to_proc_is_not_followed(void **state)
{
	struct affinity *caller = *state;

	calls(caller, FUSE_READ, NOBODY, CALLS);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
}

static void a_caller_on_a_forbidden_cpu_is_not_followed(void **state)
{
	struct affinity *caller = *state;

	stay_on(cpu(0));
	CPU_CLR((unsigned int)cpu(0), &caller->all);
	calls(caller, FUSE_READ, (uint32_t)gettid(), CALLS);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
}

static void a_moving_caller_is_not_followed_for_long(void **state)
{
	struct affinity *caller = *state;

	if (cpu(1) < 0)
		skip();
	for (unsigned int i = 0; i < 2 * CALLS / AFFINITY_LONE_MIN; i++) {
		stay_on(cpu((int)(i & 1)));
		calls(caller, FUSE_READ, (uint32_t)gettid(), AFFINITY_LONE_MIN);
	}
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
	stay_on(cpu(0));
	calls(caller, FUSE_READ, (uint32_t)gettid(), CALLS);
	assert_int_equal(caller->cpu, AFFINITY_ANY_CPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lone_caller_is_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_few_calls_are_not_enough, setup, teardown),
		cmocka_unit_test_setup_teardown(another_caller_frees, setup, teardown),
		cmocka_unit_test_setup_teardown(two_alternating_callers_are_not_followed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_waiting_call_ends_following, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_in_service_ends_following, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_without_data_ends_following, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_caller_unknown_to_proc_is_not_followed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_caller_on_a_forbidden_cpu_is_not_followed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_moving_caller_is_not_followed_for_long, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
