/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The part of cmocka that the core's tests use, in the kernel; implemented in run.c. */
#ifndef WEIR_TESTS_KERNEL_HOST_CMOCKA_H
#define WEIR_TESTS_KERNEL_HOST_CMOCKA_H

#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/string.h>
#include <linux/types.h>

struct CMUnitTest {
	const char *name;
	void (*test_func)(void **state);
	int (*setup_func)(void **state);
	int (*teardown_func)(void **state);
	void *initial_state;
};

/* The program's entry point; Kbuild gives each program's its own name. */
int main(void);

int weir_test_group(const char *name, const struct CMUnitTest *tests, size_t count);
extern struct completion weir_test_ended;

/* Ends the test. Inline, because objtool must see that the function does not return. */
static inline __noreturn void weir_test_fail(const char *file, int line, const char *why)
{
	pr_err("weir_test: %s:%d: %s\n", file, line, why);
	kthread_complete_and_exit(&weir_test_ended, 1);
}

/* A long test never sleeps, so each assertion gives other threads a chance to run. */
static inline void weir_test_compare(u64 a, u64 b, bool equal, const char *file, int line)
{
	cond_resched();
	if ((a == b) == equal)
		return;
	pr_err("weir_test: %#llx, %#llx\n", a, b);
	weir_test_fail(file, line, equal ? "they differ" : "they are the same");
}

#define cmocka_unit_test(function)                    \
	{                                             \
#function, function, NULL, NULL, NULL \
	}
#define cmocka_unit_test_setup_teardown(function, setup, teardown) \
	{                                                          \
#function, function, setup, teardown, NULL         \
	}
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
	weir_test_group(name, tests, ARRAY_SIZE(tests))
#define cmocka_run_group_tests(tests, setup, teardown) \
	weir_test_group(KBUILD_BASENAME, tests, ARRAY_SIZE(tests))

#define fail() weir_test_fail(__FILE__, __LINE__, "failure")
#define fail_msg(...) (pr_err(__VA_ARGS__), fail())
#define print_error(...) pr_err(__VA_ARGS__)
#define assert_true(condition) \
	(cond_resched(), (condition) ? (void)0 : weir_test_fail(__FILE__, __LINE__, #condition))
#define assert_false(condition) assert_true(!(condition))
#define assert_null(pointer) assert_true(!(pointer))
#define assert_non_null(pointer) assert_true(pointer)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b) weir_test_compare((u64)(a), (u64)(b), true, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) weir_test_compare((u64)(a), (u64)(b), false, __FILE__, __LINE__)
#define assert_memory_equal(a, b, bytes) assert_true(!memcmp(a, b, bytes))
#define assert_string_equal(a, b) assert_true(!strcmp(a, b))
#define assert_in_range(value, from, to) assert_true((value) >= (from) && (value) <= (to))

#endif
