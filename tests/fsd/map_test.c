/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compares a map with an array that records the place of each block. Inserts random extents into
 * holes, carves ranges and pops ends, until leaves have split and joined many times.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/rng.h"
#include "fsd/data/map.h"

#define BLOCKS 4096
#define CHUNK_BLOCKS 64

static struct fsd_map map;
static uint64_t lies[BLOCKS]; /* block of the volume + 1, or 0 */
static uint64_t random_state;

static uint64_t roll(uint64_t below)
{
	return weir_rng_scale(weir_rng_next(&random_state), below);
}

static void check_range(const struct fsd_map *m, uint64_t first, uint64_t last, const uint64_t *all)
{
	struct fsd_map_cursor place = fsd_map_seek(m, first * FS_BLOCK);
	const struct wire_fs_extent *e = fsd_map_at(&place);

	for (uint64_t block = first; block < last; block++) {
		while (e && e->offset + e->length <= block * FS_BLOCK) {
			fsd_map_step(&place);
			e = fsd_map_at(&place);
		}
		if (e && e->offset <= block * FS_BLOCK)
			assert_int_equal(e->volume / FS_BLOCK + block - e->offset / FS_BLOCK + 1,
					 all[block]);
		else
			assert_int_equal(all[block], 0);
	}
}

static void check(void)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < BLOCKS; i++)
		bytes += lies[i] ? FS_BLOCK : 0;
	assert_int_equal(map.bytes, bytes);
	check_range(&map, 0, BLOCKS, lies);
	check_range(&map, roll(BLOCKS), BLOCKS, lies);
}

static void insert(uint64_t block, uint64_t want, uint64_t volume)
{
	struct wire_fs_extent e = { block * FS_BLOCK, volume * FS_BLOCK, 0 };

	for (; e.length < want * FS_BLOCK && block < BLOCKS && !lies[block]; block++) {
		if (e.length && volume % CHUNK_BLOCKS == 0)
			break;
		lies[block] = ++volume;
		e.length += FS_BLOCK;
	}
	if (e.length)
		assert_int_equal(fsd_map_insert(&map, &e, CHUNK_BLOCKS * FS_BLOCK), 0);
}

static void carve(uint64_t first, uint64_t last)
{
	struct fsd_map out = { 0 };
	uint64_t carved[BLOCKS] = { 0 };

	assert_int_equal(fsd_map_carve(&map, first * FS_BLOCK, last * FS_BLOCK, &out), 0);
	for (uint64_t i = first; i < last; i++) {
		carved[i] = lies[i];
		lies[i] = 0;
	}
	check_range(&out, 0, BLOCKS, carved);
	fsd_map_fini(&out);
}

static void pop(uint64_t blocks)
{
	struct wire_fs_extent e;

	if (!fsd_map_pop(&map, blocks * FS_BLOCK, &e)) {
		assert_int_equal(map.bytes, 0);
		return;
	}
	assert_in_range(e.length, FS_BLOCK, blocks * FS_BLOCK);
	for (uint64_t i = 0; i < e.length / FS_BLOCK; i++) {
		assert_int_equal(lies[e.offset / FS_BLOCK + i], e.volume / FS_BLOCK + i + 1);
		lies[e.offset / FS_BLOCK + i] = 0;
	}
}

static void random_changes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		random_state = seed;
		memset(lies, 0, sizeof(lies));
		for (int step = 0; step < 12000; step++) {
			uint64_t first = roll(BLOCKS), length = roll(20) ? roll(16) : roll(BLOCKS);

			if (roll(16))
				insert(first, 1 + roll(2), roll(1 << 20));
			else if (roll(8))
				carve(first, first + length < BLOCKS ? first + length : BLOCKS);
			else
				pop(1 + roll(4));
			if (step % 64 == 0)
				check();
		}
		check();
		fsd_map_fini(&map);
	}
}

static void many_extents_in_any_order(void **state)
{
	static const int orders[] = { 1, -1, 1021 };

	(void)state;
	for (unsigned int o = 0; o < 3; o++) {
		uint64_t block = 0;

		memset(lies, 0, sizeof(lies));
		for (unsigned int i = 0; i < BLOCKS; i++) {
			insert(block, 1, 2 * block); /* no two are adjacent in the volume */
			block = (block + BLOCKS + orders[o]) % BLOCKS;
		}
		check();
		carve(0, BLOCKS);
		assert_int_equal(map.nr, 0);
		fsd_map_fini(&map);
	}
}

static void adjacent_extents_are_merged_but_not_across_chunks(void **state)
{
	(void)state;
	memset(lies, 0, sizeof(lies));
	for (uint64_t i = 0; i < 2 * CHUNK_BLOCKS; i += 2)
		insert(i, 1, i);
	for (uint64_t i = 1; i < 2 * CHUNK_BLOCKS; i += 2)
		insert(i, 1, i);
	assert_int_equal(map.nr, 1);
	check();
	for (unsigned int i = 0; i < 2; i++) {
		struct fsd_map_cursor place = fsd_map_seek(&map, i * CHUNK_BLOCKS * FS_BLOCK);

		assert_int_equal(fsd_map_at(&place)->length, CHUNK_BLOCKS * FS_BLOCK);
	}
	fsd_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_changes),
		cmocka_unit_test(many_extents_in_any_order),
		cmocka_unit_test(adjacent_extents_are_merged_but_not_across_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
