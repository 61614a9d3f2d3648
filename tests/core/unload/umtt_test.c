/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The checks of the target's CPU, and the CPU budget. */
#include <stdlib.h>

#include "core/base/rng.h"
#include "core/unload/cpu_budget.h"
#include "core/unload/umtt.h"
#include "tests/support/engine_bench.h"

#define SIZE 64u
#define TAGS 256u
#define ROUNDS 200000

static struct weir_umtt_entry table[SIZE];

static struct weir_umtt umtt_new(void)
{
	struct weir_umtt m;

	memset(table, 0, sizeof(table));
	assert_int_equal(weir_umtt_init(&m, table, SIZE), 0);
	return m;
}

static void only_access_that_a_nic_allows_passes(void **state)
{
	static const struct {
		uint32_t owner, tag;
		uint64_t addr, length;
		int rc;
	} cases[] = {
		{ 1, 7, 4096, 8192, 0 },
		{ 1, 7, 4096, 1, 0 },
		{ 1, 7, 12287, 1, 0 },
		{ 1, 7, 4095, 1, -EACCES },
		{ 1, 7, 4095, 2, -EACCES },
		{ 1, 7, 12288, 1, -EACCES },
		{ 1, 7, 12287, 2, -EACCES },
		{ 1, 7, 4096, 8193, -EACCES },
		{ 1, 7, 4096, 0, -EACCES },
		{ 2, 7, 4096, 1, -EACCES },
		{ 1, 8, 4096, 1, -EACCES },
		{ 1, 0, 4096, 1, -EACCES },
		{ 1, 9, 4096, 1, -EACCES },
		{ 1, 7, 4097, UINT64_MAX, -EACCES },
		{ 1, 7, UINT64_MAX, 2, -EACCES },
		{ 1, 10, UINT64_MAX, 1, 0 },
		{ 1, 10, UINT64_MAX, 2, -EACCES },
		{ 1, 10, UINT64_MAX - 8, 10, -EACCES },
	};
	struct weir_umtt m = umtt_new();
	size_t i;

	(void)state;
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 4096, 8192, 7, 1, true }), 0);
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 4096, 8192, 9, 1, false }),
			 0);
	assert_int_equal(
		weir_umtt_add(&m, &(struct weir_umtt_entry){ UINT64_MAX - 9, 10, 10, 1, true }), 0);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(weir_umtt_check(&m, cases[i].owner, cases[i].tag, cases[i].addr,
						 cases[i].length),
				 cases[i].rc);
	weir_umtt_remove(&m, 7);
	assert_int_equal(weir_umtt_check(&m, 1, 7, 4096, 1), -EACCES);
}

static void invalid_settings_are_refused(void **state)
{
	struct weir_umtt m = umtt_new();
	uint32_t i;

	(void)state;
	assert_int_equal(weir_umtt_init(&m, table, 48), -EINVAL);
	assert_int_equal(weir_umtt_init(&m, NULL, SIZE), -EINVAL);
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 1, 0, 1, 0, true }), -EINVAL);
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 2, UINT64_MAX, 1, 0, true }),
			 -EINVAL);
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 1, 1, 1, 0, true }), 0);
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 9, 9, 1, 0, true }), -EEXIST);
	for (i = 2; i <= SIZE / 4 * 3; i++)
		assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 1, 1, i, 0, true }),
				 0);
	assert_int_equal(weir_umtt_add(&m, &(struct weir_umtt_entry){ 1, 1, 0, 0, true }), -ENOSPC);
}

/* Compared with an array indexed by tag. The seed is fixed, so failures repeat. */
static void it_is_a_map_however_tags_come_and_go(void **state)
{
	struct weir_umtt_entry naive[TAGS] = { 0 };
	struct weir_umtt m = umtt_new();
	uint64_t rng_state = 1;
	uint32_t i, count = 0;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		struct weir_umtt_entry *at, entry = { .length = 16, .is_writable = true };
		uint64_t random = weir_rng_next(&rng_state);

		entry.tag = (random >> 33) % TAGS;
		entry.addr = random >> 40;
		entry.owner = (random >> 60) & 1;
		at = &naive[entry.tag];
		if (random >> 62) { /* three in four look up or add; the rest remove */
			assert_int_equal(weir_umtt_check(&m, 0, entry.tag, at->addr, 1),
					 at->length && !at->owner ? 0 : -EACCES);
			if (!at->length && count < SIZE / 4 * 3) {
				assert_int_equal(weir_umtt_add(&m, &entry), 0);
				*at = entry;
				count++;
			}
		} else {
			weir_umtt_remove(&m, entry.tag);
			count -= at->length > 0;
			at->length = 0;
		}
		assert_int_equal(m.count, count);
	}
}

static void a_ceiling_holds_however_often_it_is_asked(void **state)
{
	static const uint32_t percents[] = { 1, 20, 50, 99 };
	static const uint64_t steps_ns[] = { 700, 30000, 4 * WEIR_CPU_BUDGET_PERIOD_NS };
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(percents) / sizeof(*percents); i++)
		for (j = 0; j < sizeof(steps_ns) / sizeof(*steps_ns); j++) {
			struct weir_cpu_budget c;
			uint64_t now = 12345, cpu = 0, pause, end;

			weir_cpu_budget_init(&c, percents[i]);
			weir_cpu_budget_pause(&c, cpu, now);
			end = now + 1000 * steps_ns[j];
			while (now < end) { /* the thread takes all the allowed time */
				now += steps_ns[j];
				cpu += steps_ns[j];
				pause = weir_cpu_budget_pause(&c, cpu, now);
				now += pause;
			}
			/* The budget starts full, so add a period's share, and a step. */
			assert_true(cpu <= now / 100 * percents[i] + steps_ns[j] +
						   WEIR_CPU_BUDGET_PERIOD_NS / 100 * percents[i] +
						   now % 100);
			/* Nor less, except for the rest of the budget. */
			assert_true(cpu + steps_ns[j] + (c.kept_ns > 0 ? (uint64_t)c.kept_ns : 0) >=
				    now / 100 * percents[i]);
		}
}

static void below_its_ceiling_a_thread_is_wanted(void **state)
{
	uint64_t now = 5 * WEIR_CPU_BUDGET_PERIOD_NS, cpu = 77,
		 share = WEIR_CPU_BUDGET_PERIOD_NS / 5;
	struct weir_cpu_budget c;

	(void)state;
	weir_cpu_budget_init(&c, 20);
	assert_int_equal(weir_cpu_budget_pause(&c, cpu, now), 0);
	/* After a long sleep a burst may take one period's share, and no more. */
	now += 1000 * WEIR_CPU_BUDGET_PERIOD_NS;
	assert_int_equal(weir_cpu_budget_pause(&c, cpu, now), 0);
	assert_int_equal(weir_cpu_budget_pause(&c, cpu += share, now), 0);
	assert_int_equal(weir_cpu_budget_pause(&c, cpu += 2, now), 10);
	assert_int_equal(weir_cpu_budget_pause(&c, cpu, now + 10), 0);
	weir_cpu_budget_init(&c, 100);
	assert_int_equal(weir_cpu_budget_pause(&c, cpu += 9 * share, now), 0);
	assert_int_equal(weir_cpu_budget_pause(&c, cpu + 9 * share, now), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("only an access that a NIC allows passes",
		     only_access_that_a_nic_allows_passes),
		SAYS("invalid settings are refused", invalid_settings_are_refused),
		SAYS("it is a map, however tags come and go", it_is_a_map_however_tags_come_and_go),
		SAYS("a ceiling holds however often it is asked",
		     a_ceiling_holds_however_often_it_is_asked),
		SAYS("below its ceiling a thread is wanted", below_its_ceiling_a_thread_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
