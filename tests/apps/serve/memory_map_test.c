/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: serve memory map; suites: serve */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "apps/serve/web/memory_map.h"

#define MIB (1u << 20)

static struct weir_holdings holdings;
static struct memory_map map;

static void add(enum weir_holding_kind kind, uint64_t client, uint64_t offset, uint64_t bytes)
{
	holdings.extent[holdings.nr_extents++] = (struct weir_holding){
		.kind = kind, .client = client, .offset = offset, .bytes = bytes
	};
}

static int setup(void **state)
{
	(void)state;
	holdings = (struct weir_holdings){ .bytes = 512 * MIB };
	holdings.extent = calloc(1000, sizeof(*holdings.extent));
	return holdings.extent ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	memory_map_free(&map);
	free(holdings.extent);
	return 0;
}

static void nobody_holds_an_empty_memory(void **state)
{
	(void)state;
	assert_int_equal(memory_map_make(&map, &holdings), 0);
	assert_int_equal(map.nr_holders, 0);
	assert_int_equal(map.nr_cells, 512);
	assert_int_equal(map.cell_bytes, MIB);
	for (unsigned int i = 0; i < map.nr_cells; i++)
		assert_int_equal(map.cell[i], -1);
}

static void the_largest_holder_is_first_and_its_extents_add_up(void **state)
{
	(void)state;
	add(WEIR_HOLDING_CLIENT, 1, 0, 2 * MIB);
	add(WEIR_HOLDING_CLIENT, 2, 2 * MIB, 3 * MIB);
	add(WEIR_HOLDING_CLIENT, 1, 8 * MIB, 2 * MIB);
	add(WEIR_HOLDING_ZEROING, 0, 20 * MIB, MIB);
	assert_int_equal(memory_map_make(&map, &holdings), 0);
	assert_int_equal(map.nr_holders, 3);
	assert_false(map.has_others);
	assert_int_equal(map.holder[0].of.client, 1);
	assert_int_equal(map.holder[0].bytes, 4 * MIB);
	assert_int_equal(map.holder[0].extents, 2);
	assert_int_equal(map.holder[1].of.client, 2);
	assert_int_equal(map.holder[2].of.kind, WEIR_HOLDING_ZEROING);
	assert_int_equal(map.cell[1], 0);
	assert_int_equal(map.cell[2], 1);
	assert_int_equal(map.cell[4], 1);
	assert_int_equal(map.cell[5], -1);
	assert_int_equal(map.cell[9], 0);
	assert_int_equal(map.cell[10], -1);
	assert_int_equal(map.cell[20], 2);
}

static void a_cell_has_the_holder_of_its_largest_extent(void **state)
{
	(void)state;
	add(WEIR_HOLDING_CLIENT, 1, 0, MIB / 4);
	add(WEIR_HOLDING_CLIENT, 2, MIB / 4, MIB / 2);
	add(WEIR_HOLDING_CLIENT, 1, MIB * 3 / 4, 8 * MIB);
	assert_int_equal(memory_map_make(&map, &holdings), 0);
	assert_int_equal(map.cell[0], 1);
	assert_int_equal(map.cell[1], 0);
}

static void a_memory_that_ends_within_a_cell_has_that_cell(void **state)
{
	(void)state;
	holdings.bytes = 512 * 4096 + 4096;
	add(WEIR_HOLDING_CLIENT, 1, 512 * 4096, 4096);
	assert_int_equal(memory_map_make(&map, &holdings), 0);
	assert_int_equal(map.cell_bytes, 8192);
	assert_int_equal(map.nr_cells, 257);
	assert_int_equal(map.cell[256], 0);
}

static void the_smallest_of_many_holders_are_counted_together(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		add(WEIR_HOLDING_CLIENT, i + 1, i * 2 * MIB, (200 - i) * 4096);
	assert_int_equal(memory_map_make(&map, &holdings), 0);
	assert_true(map.has_others);
	assert_int_equal(map.nr_holders, MAP_HOLDERS_MAX + 1);
	assert_int_equal(map.holder[MAP_HOLDERS_MAX].extents, 100 - MAP_HOLDERS_MAX);
	assert_int_equal(map.holder[0].of.client, 1);
	assert_int_equal(map.cell[0], 0);
	assert_int_equal(map.cell[198], MAP_HOLDERS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_holds_an_empty_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(the_largest_holder_is_first_and_its_extents_add_up,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_cell_has_the_holder_of_its_largest_extent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_memory_that_ends_within_a_cell_has_that_cell,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_smallest_of_many_holders_are_counted_together,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
