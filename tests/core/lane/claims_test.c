/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Claims on pages of remote memory, by threads that post at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <pthread.h>

#include <cmocka.h>

#include "core/lane/claims.h"

#define PAGE ((uint64_t)1 << WEIR_CLAIMS_PAGE_SHIFT)
#define THREADS 4
#define ROUNDS 20000

#define SAYS(sentence, function)                         \
	{                                                \
		(sentence), (function), NULL, NULL, NULL \
	}

static struct weir_claims claims;

static void expect_free(void)
{
	unsigned int i;

	for (i = 0; i < WEIR_CLAIMS_WORDS; i++)
		assert_int_equal(claims.pages[i] | claims.lines[i], 0);
}

static void readers_share(void **state)
{
	(void)state;
	assert_true(weir_claims_take(&claims, 10 * PAGE, 100, false));
	assert_true(weir_claims_take(&claims, 10 * PAGE + 50, 100, false));
	assert_false(weir_claims_take(&claims, 10 * PAGE, 1, true));
	weir_claims_give(&claims, 10 * PAGE, 100, false);
	assert_false(weir_claims_take(&claims, 10 * PAGE, 1, true));
	weir_claims_give(&claims, 10 * PAGE + 50, 100, false);
	assert_true(weir_claims_take(&claims, 10 * PAGE, 1, true));
	weir_claims_give(&claims, 10 * PAGE, 1, true);
	expect_free();
}

static void a_writer_excludes_all(void **state)
{
	(void)state;
	assert_true(weir_claims_take(&claims, 7 * PAGE, PAGE, true));
	assert_false(weir_claims_take(&claims, 7 * PAGE + 9, 1, true));
	assert_false(weir_claims_take(&claims, 7 * PAGE + 9, 1, false));
	assert_false(weir_claims_take(&claims, 7 * PAGE, PAGE, false));
	assert_true(weir_claims_take(&claims, 8 * PAGE, 1, true));
	weir_claims_give(&claims, 8 * PAGE, 1, true);
	weir_claims_give(&claims, 7 * PAGE, PAGE, true);
	expect_free();
}

static void a_refused_claim_leaves_nothing(void **state)
{
	(void)state;
	assert_true(weir_claims_take(&claims, 5 * PAGE, 1, true));
	assert_false(weir_claims_take(&claims, 2 * PAGE, 4 * PAGE, true));
	assert_false(weir_claims_take(&claims, 2 * PAGE, 4 * PAGE, false));
	weir_claims_give(&claims, 5 * PAGE, 1, true);
	expect_free();
}

static void the_last_byte_counts(void **state)
{
	(void)state;
	assert_true(weir_claims_take(&claims, 3 * PAGE - 1, 2, true));
	assert_false(weir_claims_take(&claims, 2 * PAGE, 1, true));
	assert_false(weir_claims_take(&claims, 4 * PAGE - 1, 1, true));
	weir_claims_give(&claims, 3 * PAGE - 1, 2, true);
	assert_true(weir_claims_take(&claims, UINT64_MAX - 9, 10, true));
	assert_false(weir_claims_take(&claims, UINT64_MAX, 1, false));
	weir_claims_give(&claims, UINT64_MAX - 9, 10, true);
	expect_free();
}

static void small_requests_share_a_page(void **state)
{
	const uint64_t line = 1 << WEIR_CLAIMS_LINE_SHIFT;

	(void)state;
	assert_true(weir_claims_take(&claims, 9 * PAGE, line, true));
	assert_true(weir_claims_take(&claims, 9 * PAGE + line, 2 * line, true));
	assert_true(weir_claims_take(&claims, 9 * PAGE + 4 * line, 1, false));
	assert_true(weir_claims_take(&claims, 9 * PAGE + 4 * line, line, false));
	assert_false(weir_claims_take(&claims, 9 * PAGE + line - 1, 1, false));
	assert_false(weir_claims_take(&claims, 9 * PAGE + 2 * line, line, true));
	assert_false(weir_claims_take(&claims, 9 * PAGE + 4 * line, 1, true));
	weir_claims_give(&claims, 9 * PAGE, line, true);
	weir_claims_give(&claims, 9 * PAGE + line, 2 * line, true);
	weir_claims_give(&claims, 9 * PAGE + 4 * line, 1, false);
	weir_claims_give(&claims, 9 * PAGE + 4 * line, line, false);
	expect_free();
}

/* By their page: a large request has no lines. */
static void small_and_large_exclude_each_other(void **state)
{
	(void)state;
	assert_true(weir_claims_take(&claims, 6 * PAGE, 8, true));
	assert_false(weir_claims_take(&claims, 6 * PAGE, PAGE, false));
	assert_false(weir_claims_take(&claims, 6 * PAGE, PAGE, true));
	weir_claims_give(&claims, 6 * PAGE, 8, true);
	assert_true(weir_claims_take(&claims, 6 * PAGE, PAGE, false));
	assert_false(weir_claims_take(&claims, 6 * PAGE, 8, true));
	weir_claims_give(&claims, 6 * PAGE, PAGE, false);
	assert_true(weir_claims_take(&claims, 6 * PAGE - 4, 8, true)); /* on two pages */
	assert_false(weir_claims_take(&claims, 6 * PAGE + 100, 8, false));
	weir_claims_give(&claims, 6 * PAGE - 4, 8, true);
	expect_free();
}

#define WRITING (1u << 31)

static uint32_t inside; /* readers, and WRITING for a writer; atomic */
static unsigned int wrong; /* atomic */

static uint64_t length_of_all;

static void *claim_again_and_again(void *arg)
{
	uintptr_t number = (uintptr_t)arg;
	uint64_t length = length_of_all;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		bool modifies = (i + number) % 3 == 0;
		uint32_t mine = modifies ? WRITING : 1, before;

		if (!weir_claims_take(&claims, PAGE, length, modifies))
			continue;
		before = __atomic_fetch_add(&inside, mine, __ATOMIC_RELAXED);
		if (modifies ? before != 0 : before >= WRITING)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&inside, mine, __ATOMIC_RELAXED);
		weir_claims_give(&claims, PAGE, length, modifies);
	}
	return NULL;
}

static void expect_exclusion(uint64_t length)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	length_of_all = length;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, claim_again_and_again, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	expect_free();
}

static void threads_exclude_each_other(void **state)
{
	(void)state;
	expect_exclusion(2 * PAGE);
	expect_exclusion(WEIR_CLAIMS_SMALL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("readers share a page, and exclude a writer", readers_share),
		SAYS("a writer excludes all others", a_writer_excludes_all),
		SAYS("a refused claim leaves nothing claimed", a_refused_claim_leaves_nothing),
		SAYS("the pages of the first and the last byte count", the_last_byte_counts),
		SAYS("small requests share a page, and exclude each other by line",
		     small_requests_share_a_page),
		SAYS("small and large requests exclude each other",
		     small_and_large_exclude_each_other),
		SAYS("threads exclude each other", threads_exclude_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
