/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount map; suites: fs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "apps/mount/inode/map.h"

#define B FS_BLOCK

static int setup(void **state)
{
	static struct map map;

	map = (struct map){ 0 };
	*state = &map;
	return 0;
}

static int teardown(void **state)
{
	map_forget(*state);
	return 0;
}

static void learn(struct map *map, uint64_t offset, uint64_t volume, uint64_t blocks)
{
	const struct wire_fs_extent e = { offset * B, volume * B, blocks * B };

	assert_int_equal(map_learn(map, e.offset, e.offset + e.length, &e, 1), 0);
}

static void nothing_is_known_at_first(void **state)
{
	uint64_t volume, length = 1;

	assert_false(map_find(*state, 0, &volume, &length));
	assert_int_equal(length, UINT64_MAX);
	length = 1;
	assert_false(map_is_known(*state, 0, &length));
}

static void an_offset_within_an_extent_is_found(void **state)
{
	uint64_t volume, length;

	learn(*state, 2, 10, 3);
	assert_true(map_find(*state, 3 * B + 5, &volume, &length));
	assert_int_equal(volume, 11 * B + 5);
	assert_int_equal(length, 2 * B - 5);
	assert_false(map_find(*state, B, &volume, &length));
	assert_int_equal(length, B);
	assert_false(map_find(*state, 5 * B, &volume, &length));
}

static void neighbours_in_file_and_volume_become_one(void **state)
{
	struct map *map = *state;

	learn(map, 0, 10, 1);
	learn(map, 2, 12, 1);
	assert_int_equal(map->nr, 2);
	learn(map, 1, 11, 1);
	assert_int_equal(map->nr, 1);
	assert_int_equal(map->extent[0].length, 3 * B);
}

static void neighbours_in_the_file_alone_do_not(void **state)
{
	struct map *map = *state;

	learn(map, 0, 10, 1);
	learn(map, 1, 20, 1);
	assert_int_equal(map->nr, 2);
}

static void an_extent_learnt_twice_is_kept_once(void **state)
{
	struct map *map = *state;

	learn(map, 4, 10, 4);
	learn(map, 4, 10, 4);
	learn(map, 5, 11, 1);
	learn(map, 3, 9, 3);
	learn(map, 6, 12, 5);
	learn(map, 0, 6, 20);
	assert_int_equal(map->nr, 1);
	assert_int_equal(map->extent[0].offset, 0);
	assert_int_equal(map->extent[0].volume, 6 * B);
	assert_int_equal(map->extent[0].length, 20 * B);
}

static void a_gap_is_a_hole_where_the_answer_was_complete(void **state)
{
	const struct wire_fs_extent e = { 4 * B, 10 * B, B };
	uint64_t length = 100 * B;

	assert_int_equal(map_learn(*state, 2 * B, 8 * B, &e, 1), 0);
	assert_false(map_is_known(*state, B, &length));
	assert_true(map_is_known(*state, 3 * B, &length));
	assert_int_equal(length, 5 * B);
	assert_false(map_is_known(*state, 8 * B, &length));
	map_forget(*state);
	assert_false(map_is_known(*state, 3 * B, &length));
}

static void a_map_that_grows_too_large_is_forgotten(void **state)
{
	struct map *map = *state;
	uint64_t length = 1;

	for (uint64_t i = 0; i <= MAP_EXTENTS_MAX; i++)
		learn(map, 2 * i, 3 * i, 1);
	assert_in_range(map->nr, 1, MAP_EXTENTS_MAX);
	assert_false(map_is_known(map, 0, &length));
}

/* Compares a map with an array of the volume's block for each block. */
static void random_extents_agree_with_an_array(void **state)
{
	struct map *map = *state;
	bool have[512] = { false };

	srand(1);
	for (int round = 0; round < 2000; round++) {
		uint64_t offset = (uint64_t)rand() % 500;
		uint64_t blocks = 1 + (uint64_t)rand() % 12;
		/* Blocks 0 to 255 are contiguous; all others are separate. */
		uint64_t volume = offset < 256 ? 1000 + offset : 5000 + 2 * offset;

		if (offset >= 256)
			blocks = 1;
		else if (offset + blocks > 256)
			blocks = 256 - offset;
		learn(map, offset, volume, blocks);
		for (uint64_t i = offset; i < offset + blocks; i++)
			have[i] = true;
	}
	for (uint64_t i = 0; i < 512; i++) {
		uint64_t volume, length;

		assert_int_equal(map_find(map, i * B, &volume, &length), have[i]);
		if (have[i])
			assert_int_equal(volume, (i < 256 ? 1000 + i : 5000 + 2 * i) * B);
	}
	for (uint32_t i = 1; i < map->nr; i++)
		assert_true(map->extent[i - 1].offset + map->extent[i - 1].length <=
			    map->extent[i].offset);
}

struct map_answer {
	struct wire_fs_map map;
	struct wire_fs_extent extent[2];
};

static bool makes_sense(const struct map_answer *answer)
{
	struct wire_fs_map map;

	return map_makes_sense(answer, sizeof(*answer), B, &map);
}

static void an_answer_is_checked(void **state)
{
	const struct map_answer good = {
		.map = { .size = 9 * B, .end = 8 * B, .extents = 2 },
		.extent = { { 0, 10 * B, 2 * B }, { 2 * B, 20 * B, B } },
	};
	struct map_answer bad = good;
	struct wire_fs_map map;

	(void)state;
	assert_true(makes_sense(&good));
	assert_false(map_makes_sense(&good, sizeof(good) - 1, B, &map));
	assert_false(map_makes_sense(&good, sizeof(map) - 1, B, &map));
	assert_false(map_makes_sense(&good, sizeof(good), 8 * B, &map));
	bad.map.extents = 3;
	assert_false(makes_sense(&bad));
	bad = good;
	bad.map.size = UINT64_MAX;
	assert_false(makes_sense(&bad));
	bad = good;
	bad.extent[0].length = 3 * B; /* overlaps the next extent */
	assert_false(makes_sense(&bad));
	bad = good;
	bad.extent[1].length = -2 * (uint64_t)B; /* wraps around to its start */
	assert_false(makes_sense(&bad));
	bad = good;
	bad.extent[1].length = 0;
	assert_false(makes_sense(&bad));
	bad = good;
	bad.extent[1].volume++;
	assert_false(makes_sense(&bad));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_known_at_first),
		TEST(an_offset_within_an_extent_is_found),
		TEST(neighbours_in_file_and_volume_become_one),
		TEST(neighbours_in_the_file_alone_do_not),
		TEST(an_extent_learnt_twice_is_kept_once),
		TEST(a_gap_is_a_hole_where_the_answer_was_complete),
		TEST(a_map_that_grows_too_large_is_forgotten),
		TEST(random_extents_agree_with_an_array),
		TEST(an_answer_is_checked),
	};

	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
