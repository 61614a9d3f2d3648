/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor arena; suites: wire; timeout: 120 */
/* The donor's memory: extents never overlap and are zero, whatever came before. */
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/huge_map.h"
#include "lib/donor/arena.h"
#include "tests/support/cmocka_all.h"

#define MIB (1u << 20)
#define TAKEN_MAX 64

static struct weir_arena arena;

static void arena_make(uint64_t length)
{
	assert_int_equal(weir_arena_init(&arena, length, false, NULL), 0);
}

/* As the worker does, in one slice. */
static void give(struct weir_arena_extent *extent)
{
	weir_arena_give(&arena, extent);
	weir_arena_zero(&arena, extent->addr, extent->length);
	weir_arena_free(&arena, extent);
}

static bool is_zero(const struct weir_arena_extent *extent)
{
	uint64_t i;

	for (i = 0; i < extent->length; i++)
		if (extent->addr[i])
			return false;
	return true;
}

static void all_of_it_can_be_taken_and_no_more(void **state)
{
	struct weir_arena_extent *a, *b, *c;

	(void)state;
	arena_make(8 * MIB);
	assert_int_equal(weir_arena_take(&arena, 8 * MIB, &a), 0);
	assert_int_equal(arena.taken, 8 * MIB);
	assert_int_equal(weir_arena_take(&arena, 1, &b), -ENOSPC);
	give(a);
	assert_int_equal(weir_arena_take(&arena, 8 * MIB + 1, &b), -ENOSPC);
	assert_int_equal(weir_arena_take(&arena, UINT64_MAX, &b), -ENOSPC);
	assert_int_equal(weir_arena_take(&arena, 4 * MIB, &a), 0);
	assert_int_equal(weir_arena_take(&arena, 4 * MIB, &b), 0);
	assert_int_equal(weir_arena_take(&arena, 4096, &c), -ENOSPC);
	give(b);
	give(a);
	assert_int_equal(weir_arena_take(&arena, 8 * MIB, &a), 0);
	weir_arena_fini(&arena);
}

static void dirty_memory_is_lent_only_after_it_is_zeroed(void **state)
{
	struct weir_arena_extent *a, *b;

	(void)state;
	arena_make(4 * MIB);
	assert_int_equal(weir_arena_take(&arena, 3 * MIB, &a), 0);
	memset(a->addr, 0xa5, a->length);
	weir_arena_give(&arena, a);
	assert_int_equal(arena.taken, 0);
	assert_int_equal(weir_arena_take(&arena, 2 * MIB, &b), -EAGAIN);
	assert_int_equal(weir_arena_take(&arena, 4 * MIB + 1, &b), -ENOSPC);
	weir_arena_zero(&arena, a->addr, a->length);
	weir_arena_free(&arena, a);
	assert_int_equal(weir_arena_take(&arena, 4 * MIB, &b), 0);
	assert_true(is_zero(b));
	weir_arena_fini(&arena);
}

static void one_byte_takes_a_page(void **state)
{
	struct weir_arena_extent *a;

	(void)state;
	arena_make(MIB);
	assert_int_equal(weir_arena_take(&arena, 1, &a), 0);
	assert_int_equal(a->length, WEIR_ARENA_PAGE);
	assert_int_equal(arena.taken, WEIR_ARENA_PAGE);
	weir_arena_fini(&arena);
}

static void what_is_given_back_comes_out_zero(void **state)
{
	static const uint64_t lengths[] = { 4096, 65536 - 4096, 65536, MIB + 4096, 4 * MIB };
	struct weir_arena_extent *a;
	size_t i;

	(void)state;
	arena_make(4 * MIB);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(weir_arena_take(&arena, lengths[i], &a), 0);
		assert_true(is_zero(a));
		memset(a->addr, 0xa5, a->length);
		give(a);
		assert_int_equal(weir_arena_take(&arena, 4 * MIB, &a), 0);
		assert_true(is_zero(a));
		give(a);
	}
	weir_arena_fini(&arena);
}

static void extents_never_overlap_in_any_order(void **state)
{
	struct weir_arena_extent *taken[TAKEN_MAX] = { NULL }, *whole;
	uint32_t seed = 7;
	uint64_t sum = 0;
	int i, n;

	(void)state;
	arena_make(16 * MIB);
	for (n = 0; n < 20000; n++) {
		seed = seed * 1664525 + 1013904223;
		i = (seed >> 8) % TAKEN_MAX;
		if (taken[i]) {
			/* Only the holder has written to the extent. */
			assert_int_equal((unsigned char)taken[i]->addr[0], i + 1);
			assert_int_equal((unsigned char)taken[i]->addr[taken[i]->length - 1],
					 i + 1);
			sum -= taken[i]->length;
			give(taken[i]);
			taken[i] = NULL;
		} else if (!weir_arena_take(&arena, (seed >> 16) * 64 + 1, &taken[i])) {
			assert_int_equal(taken[i]->addr[0], 0);
			assert_int_equal(taken[i]->addr[taken[i]->length - 1], 0);
			taken[i]->addr[0] = taken[i]->addr[taken[i]->length - 1] = i + 1;
			sum += taken[i]->length;
		}
		assert_int_equal(arena.taken, sum);
	}
	for (i = 0; i < TAKEN_MAX; i++)
		if (taken[i])
			give(taken[i]);
	assert_int_equal(weir_arena_take(&arena, 16 * MIB, &whole), 0);
	weir_arena_fini(&arena);
}

static void long_extents_begin_on_a_huge_page(void **state)
{
	struct weir_arena_extent *a, *b;

	(void)state;
	assert_int_equal(weir_arena_init(&arena, 8 * MIB, true, NULL), 0);
	assert_int_equal((uintptr_t)arena.base % WEIR_HUGE_BYTES, 0);
	assert_int_equal(weir_arena_take(&arena, 4096, &a), 0);
	assert_int_equal(weir_arena_take(&arena, 2 * MIB, &b), 0);
	assert_int_equal((uintptr_t)b->addr % WEIR_HUGE_BYTES, 0);
	give(a);
	give(b);
	assert_int_equal(weir_arena_take(&arena, 8 * MIB, &a), 0);
	weir_arena_fini(&arena);
}

/* A page given back, and not yet taken again, returns to the system. */
static void what_lies_in_a_file_goes_back_to_the_system(void **state)
{
	struct weir_arena_extent *extent;
	struct stat before, after;

	(void)state;
	arena_make(4 * MIB);
	if (arena.fd < 0)
		skip(); /* no memfd here */
	assert_int_equal(fcntl(arena.fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
	assert_int_equal(weir_arena_take(&arena, 2 * MIB + 4096, &extent), 0);
	assert_int_equal(weir_arena_populate(extent->addr, extent->length), 0);
	assert_int_equal(fstat(arena.fd, &before), 0);
	assert_true(before.st_blocks >= (2 * MIB + 4096) / 512);
	give(extent);
	assert_int_equal(fstat(arena.fd, &after), 0);
	assert_true(before.st_blocks - after.st_blocks >= 2 * MIB / 512);
	assert_int_equal(weir_arena_take(&arena, 4 * MIB, &extent), 0);
	assert_true(is_zero(extent));
	weir_arena_fini(&arena);
}

static void reserved_memory_stays_until_it_is_released(void **state)
{
	struct weir_arena_extent *extent;
	struct stat now;

	(void)state;
	arena_make(8 * MIB);
	if (arena.fd < 0)
		skip(); /* no memfd here */
	assert_int_equal(weir_arena_reserve(&arena, NULL), 0);
	assert_int_equal(fstat(arena.fd, &now), 0);
	assert_true(now.st_blocks >= 8 * MIB / 512);
	assert_int_equal(weir_arena_take(&arena, 4 * MIB, &extent), 0);
	memset(extent->addr, 0xa5, extent->length);
	give(extent);
	assert_true(is_zero(extent));
	assert_int_equal(fstat(arena.fd, &now), 0);
	assert_true(now.st_blocks >= 8 * MIB / 512);
	assert_int_equal(weir_arena_take(&arena, 2 * MIB, &extent), 0);
	memset(extent->addr, 0xa5, extent->length);
	weir_arena_release(&arena, 0, 8 * MIB);
	assert_int_equal(fstat(arena.fd, &now), 0);
	assert_in_range(now.st_blocks, 2 * MIB / 512, 4 * MIB / 512);
	assert_int_equal(extent->addr[2 * MIB - 1], (char)0xa5);
	weir_arena_fini(&arena);
}

static void more_than_the_machine_has_is_refused_with_both_numbers(void **state)
{
	struct weir_error error;

	(void)state;
	assert_int_equal(weir_arena_init(&arena, 1ull << 60, true, &error), -ENOMEM);
	assert_non_null(strstr(error.text, "cannot lend 1.0 EiB: this machine has "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it_can_be_taken_and_no_more),
		cmocka_unit_test(dirty_memory_is_lent_only_after_it_is_zeroed),
		cmocka_unit_test(one_byte_takes_a_page),
		cmocka_unit_test(what_is_given_back_comes_out_zero),
		cmocka_unit_test(extents_never_overlap_in_any_order),
		cmocka_unit_test(long_extents_begin_on_a_huge_page),
		cmocka_unit_test(what_lies_in_a_file_goes_back_to_the_system),
		cmocka_unit_test(reserved_memory_stays_until_it_is_released),
		cmocka_unit_test(more_than_the_machine_has_is_refused_with_both_numbers),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
