// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic yield; devices: softnic; timeout: 120 */
/*
 * A program that spins for completions leaves its CPU to others while much is under way. Both ends
 * are in this process, and packets between them take the way to other hosts.
 */
#include <sys/syscall.h>

#include "tests/support/verbs_puppet.h"

enum { SMALL_BYTES = 8, LARGE_BYTES = 1 << 20, ROUNDS = 1000 };

static struct endpoint a, b;
static __thread uint32_t yields;

/* In place of libc's, for the preloaded library, too. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

static int connect_both(void **state)
{
	struct endpoint_name at_a, at_b;

	(void)state;
	end_open(&a, ALL_ACCESS);
	end_open_sharing(&b, &a);
	at_a = end_name(&a);
	at_b = end_name(&b);
	end_connect(&a, &at_b, &plain);
	end_connect(&b, &at_a, &plain);
	yields = 0;
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	end_close(&b);
	end_close(&a);
	return 0;
}

static void spin_for_a_write(uint32_t bytes)
{
	struct test_wr w;
	struct ibv_wc wc;

	assert_int_equal(post(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, bytes, 2 << 20)), 0);
	while (!ibv_poll_cq(a.cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void a_thread_that_waits_for_few_bytes_keeps_its_cpu(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < ROUNDS; i++)
		spin_for_a_write(SMALL_BYTES);
	assert_int_equal(yields, 0);
}

/* The engine may be faster than a few polls, so this may take several writes. */
static void a_thread_that_waits_for_many_bytes_yields(void **state)
{
	(void)state;
	while (!yields)
		spin_for_a_write(LARGE_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_that_waits_for_few_bytes_keeps_its_cpu,
						connect_both, close_both),
		cmocka_unit_test_setup_teardown(a_thread_that_waits_for_many_bytes_yields,
						connect_both, close_both),
	};

	setenv("WEIR_SOFTNIC", "near=0,encrypt=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
