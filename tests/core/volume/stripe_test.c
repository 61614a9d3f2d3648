/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every page of a volume has a place of its own, and neighbours go to different extents. */
#include <stdlib.h>

#include "tests/support/engine_bench.h"
#include "core/volume/stripe.h"

/* Walks the volume run by run; no place may be used twice. */
static void walk(const struct weir_stripe *s, uint64_t pages)
{
	uint64_t extents = weir_stripe_extents(s, pages), page = 0;
	uint8_t *used = calloc(extents * s->extent, 1);
	uint32_t last = UINT32_MAX;

	assert_non_null(used);
	while (page < pages) {
		struct weir_stripe_place at = weir_stripe_at(s, page);

		assert_true(at.pages && at.extent < extents);
		assert_true(at.page + at.pages <= s->extent);
		assert_int_equal(at.pages, s->unit);
		assert_int_equal(weir_stripe_page(s, at.extent, at.page), page);
		assert_true(s->width == 1 || at.extent != last);
		for (uint32_t i = 0; i < at.pages; i++)
			assert_int_equal(used[(uint64_t)at.extent * s->extent + at.page + i]++, 0);
		last = at.extent;
		page += at.pages;
	}
	free(used);
}

static void each_page_has_a_place_of_its_own(void **state)
{
	static const struct weir_stripe stripes[] = {
		{ 1, 1, 1 }, { 1, 3, 4 }, { 4, 1, 16 }, { 4, 2, 16 }, { 64, 5, 64 }, { 64, 3, 256 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(stripes) / sizeof(*stripes); i++) {
		walk(&stripes[i], 1);
		walk(&stripes[i], (uint64_t)stripes[i].width * stripes[i].extent);
		walk(&stripes[i], 5 * (uint64_t)stripes[i].width * stripes[i].extent + 1);
	}
}

static void a_page_inside_a_unit_follows_the_one_before(void **state)
{
	static const struct weir_stripe s = { 8, 3, 32 };

	(void)state;
	for (uint64_t page = 0; page < 400; page++) {
		struct weir_stripe_place at = weir_stripe_at(&s, page);
		struct weir_stripe_place next = weir_stripe_at(&s, page + 1);

		if (at.pages == 1)
			continue;
		assert_int_equal(next.extent, at.extent);
		assert_int_equal(next.page, at.page + 1);
		assert_int_equal(next.pages, at.pages - 1);
	}
}

static void extents_come_in_whole_sets(void **state)
{
	static const struct weir_stripe s = { 8, 3, 32 };

	(void)state;
	assert_int_equal(weir_stripe_extents(&s, 1), 3);
	assert_int_equal(weir_stripe_extents(&s, 96), 3);
	assert_int_equal(weir_stripe_extents(&s, 97), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_page_has_a_place_of_its_own),
		cmocka_unit_test(a_page_inside_a_unit_follows_the_one_before),
		cmocka_unit_test(extents_come_in_whole_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
