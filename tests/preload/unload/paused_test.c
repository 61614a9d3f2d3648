/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload paused; devices: softnic rxe; timeout: 300 */
/*
 * A target with little CPU time tells its peer to pause unloading. So the path changes often, and
 * at moments that the program has not chosen.
 */
#include "tests/preload/unload/mix.h"

#include <stdlib.h>

#define SEEDS 2u
#define CPU_PERCENT "1"

/* 100 us of each 10 ms. */
static void a_target_out_of_cpu_time_makes_peers_write_by_the_device(void **state)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;
	struct diag_counters before, now;
	struct loopback_pair pair;

	(void)state;
	open_unloading_made(&pair, make_deep);
	before = said_now();
	do {
		assert_true(now_ns() < until);
		assert_true(write_list(&pair, pair.bytes + PAIR_BYTES, pair.mr->rkey, 0));
		now = said_now();
	} while (now.pauses == before.pauses ||
		 now.small - now.unloaded == before.small - before.unloaded);
	pair_close(&pair);
}

static void both_paths_mixed_equal_a_naive_memory(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++)
		mix(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_out_of_cpu_time_makes_peers_write_by_the_device),
		cmocka_unit_test(both_paths_mixed_equal_a_naive_memory),
	};

	setenv("WEIR_UNLOAD_CPU", CPU_PERCENT, 1);
	return cmocka_run_group_tests_name("unload paused", tests, NULL, NULL);
}
