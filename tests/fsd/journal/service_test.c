/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A file server whose disk crashes at each write: nothing is lost, and nothing happens twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/fsd/journal/world.h"

#define SEEDS 6
#define BATCHES 40

static struct crash_world world;

static void a_server_goes_on_after_a_crash_at_each_write(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t writes;

		world_run(&world, seed, 0, BATCHES);
		writes = world.writes;
		assert_true(writes > BATCHES);
		for (uint64_t at = 1; at <= writes; at++)
			world_run(&world, seed, at, BATCHES);
	}
}

static void a_full_log_becomes_a_checkpoint(void **state)
{
	(void)state;
	world_run(&world, 99, 0, 400);
	assert_true(world.checkpoints > 2);
	for (uint64_t at = 1, writes = world.writes; at <= writes; at += 1 + writes / 40)
		world_run(&world, 99, at, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_goes_on_after_a_crash_at_each_write),
		cmocka_unit_test(a_full_log_becomes_a_checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
