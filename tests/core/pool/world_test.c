/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: core pool world; suites: core pool; timeout: 120 */
/* The hunt's pool (sim/hunt/pool) in many short worlds, and with mistakes that it must find. */
#include "sim/hunt/pool/pool_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#ifndef STEPS
#define STEPS 600
#endif
#ifndef WORLDS
#define WORLDS 120u
#endif
#ifndef WORLDS_MAX
#define WORLDS_MAX 10000u /* until a mistake is found */
#endif

static void a_pool_keeps_what_was_written(void **state)
{
	struct pool_world *w = calloc(1, sizeof(*w));
	struct pool_counts counts = { 0 };

	(void)state;
	for (uint32_t seed = 0; seed < WORLDS; seed++) {
		pool_world_begin(w, seed, &counts);
		pool_world_run(w, STEPS);
		if (!w->why)
			pool_world_calm_down(w);
		if (w->why)
			fail_msg("seed %u: %s", seed, w->why);
	}
	free(w);
	assert_true(counts.writes > WORLDS);
	assert_true(counts.lost > 0);
	assert_true(counts.renewed > 0);
	assert_true(counts.promoted > WORLDS);
	assert_true(counts.drained > WORLDS);
	assert_true(counts.refused > 0);
	assert_true(counts.moved > WORLDS);
	assert_true(counts.rebuilt > WORLDS);
	assert_true(counts.fenced > 0);
	assert_true(counts.taken_over > WORLDS / 4);
	assert_true(counts.deposed > WORLDS / 8);
	assert_true(counts.outages > WORLDS / 4);
}

static bool finds(struct pool_world *w, enum pool_mistake mistake)
{
	struct pool_counts counts = { 0 };

	for (uint32_t seed = 0; seed < WORLDS_MAX; seed++) {
		pool_world_begin(w, seed, &counts);
		w->mistake = mistake;
		pool_world_run(w, STEPS);
		if (w->why)
			return true;
	}
	return false;
}

static void each_mistake_of_clients_and_donors_loses_a_write(void **state)
{
	struct pool_world *w = calloc(1, sizeof(*w));

	(void)state;
	for (int mistake = POOL_NO_MISTAKE + 1; mistake < POOL_NR_MISTAKES; mistake++)
		if (!finds(w, (enum pool_mistake)mistake))
			fail_msg("mistake %d is not found", mistake);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_keeps_what_was_written),
		cmocka_unit_test(each_mistake_of_clients_and_donors_loses_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
