/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The core's unit tests inside the kernel, when this module is loaded: the files of tests/core,
 * compiled as kernel code. A failed test makes loading fail. Each test runs in its own thread,
 * which ends at a failed assertion and then leaks its memory.
 */
#include <linux/module.h>

#include "tests/kernel/host/cmocka.h"

/* The programs: see Kbuild. */
#define PROGRAM(name) int name(void);
#include "programs.h"
#undef PROGRAM

static int (*const programs[])(void) = {
#define PROGRAM(name) name,
#include "programs.h"
#undef PROGRAM
};

struct completion weir_test_ended;

static struct kernel_run {
	const struct CMUnitTest *test;
	bool passed;
} run;

static unsigned int passed, failed;

static int run_test(void *arg)
{
	void *state = run.test->initial_state;

	if (run.test->setup_func && run.test->setup_func(&state))
		weir_test_fail(run.test->name, 0, "could not be set up");
	run.test->test_func(&state);
	if (run.test->teardown_func)
		run.test->teardown_func(&state);
	run.passed = true;
	kthread_complete_and_exit(&weir_test_ended, 0);
}

static bool passes(const struct CMUnitTest *test)
{
	struct task_struct *task;

	run.test = test;
	run.passed = false;
	init_completion(&weir_test_ended);
	task = kthread_run(run_test, NULL, "weir_test");
	if (IS_ERR(task))
		return false;
	wait_for_completion(&weir_test_ended);
	return run.passed;
}

int weir_test_group(const char *name, const struct CMUnitTest *tests, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (passes(&tests[i])) {
			passed++;
			continue;
		}
		failed++;
		pr_err("weir_test: %s: %s\n", name, tests[i].name);
	}
	return 0;
}

static int __init test_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(programs); i++)
		programs[i]();
	pr_info("weir_test: %u passed, %u failed\n", passed, failed);
	return failed ? -EINVAL : 0;
}
module_init(test_init);

static void __exit test_exit(void)
{
}
module_exit(test_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("weir: the core's tests, when it is loaded");
