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
		assert_int_equal(claims.words[i], 0);
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

static uint32_t inside; /* readers, and WEIR_CLAIMS_WRITER for a writer; atomic */
static unsigned int wrong; /* atomic */

static void *claim_again_and_again(void *arg)
{
	uintptr_t number = (uintptr_t)arg;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		bool modifies = (i + number) % 3 == 0;
		uint32_t mine = modifies ? WEIR_CLAIMS_WRITER : 1, before;

		if (!weir_claims_take(&claims, PAGE, 2 * PAGE, modifies))
			continue;
		before = __atomic_fetch_add(&inside, mine, __ATOMIC_RELAXED);
		if (modifies ? before != 0 : before >= WEIR_CLAIMS_WRITER)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&inside, mine, __ATOMIC_RELAXED);
		weir_claims_give(&claims, PAGE, 2 * PAGE, modifies);
	}
	return NULL;
}

static void threads_exclude_each_other(void **state)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, claim_again_and_again, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	expect_free();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("readers share a page, and exclude a writer", readers_share),
		SAYS("a writer excludes all others", a_writer_excludes_all),
		SAYS("a refused claim leaves nothing claimed", a_refused_claim_leaves_nothing),
		SAYS("the pages of the first and the last byte count", the_last_byte_counts),
		SAYS("threads exclude each other", threads_exclude_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
