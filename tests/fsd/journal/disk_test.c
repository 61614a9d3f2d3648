/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sums and pages of a disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "fsd/journal/disk.h"

#define LONG_BYTES ((2ull << 30) + 4096) /* no int holds them */

static void a_sum_covers_more_bytes_than_an_int_counts(void **state)
{
	uint8_t *zeroes = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t sum, half;

	(void)state;
	assert_true(zeroes != MAP_FAILED);
	sum = fsd_disk_sum(zeroes, LONG_BYTES, ~0u);
	half = fsd_disk_sum(zeroes, LONG_BYTES / 2, ~0u);
	assert_int_equal(fsd_disk_sum(zeroes, LONG_BYTES / 2, half), sum);
	zeroes[LONG_BYTES - 1] = 1;
	assert_int_not_equal(fsd_disk_sum(zeroes, LONG_BYTES, ~0u), sum);
	munmap(zeroes, LONG_BYTES);
}

static void pages_are_within_bytes_or_hold_them(void **state)
{
	(void)state;
	assert_int_equal(fsd_disk_within(0), 0);
	assert_int_equal(fsd_disk_within(FSD_DISK_PAGE - 1), 0);
	assert_int_equal(fsd_disk_within(FSD_DISK_PAGE), FSD_DISK_PAGE);
	assert_int_equal(fsd_disk_holding(0), 0);
	assert_int_equal(fsd_disk_holding(1), FSD_DISK_PAGE);
	assert_int_equal(fsd_disk_holding(FSD_DISK_PAGE), FSD_DISK_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sum_covers_more_bytes_than_an_int_counts),
		cmocka_unit_test(pages_are_within_bytes_or_hold_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
