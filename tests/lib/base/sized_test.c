/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib sized */
/* Structs that have grown between the program's version and the library's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/sized.h"

struct older {
	size_t size;
	uint64_t first;
};

struct known {
	size_t size;
	uint64_t first, second;
};

struct newer {
	size_t size;
	uint64_t first, second, third;
};

static struct known known;
static struct weir_error error;

static int take_in(const void *given)
{
	memset(&known, 0xff, sizeof(known));
	error.text[0] = '\0';
	return weir_sized_in(&known, sizeof(known), given, "weir_thing", &error);
}

static void fields_that_the_program_does_not_know_are_zero(void **state)
{
	struct {
		struct older given;
		uint64_t beyond;
	} const program = { { .size = sizeof(struct older), .first = 1 }, .beyond = 7 };

	(void)state;
	assert_int_equal(take_in(&program.given), 0);
	assert_int_equal(known.size, sizeof(known));
	assert_int_equal(known.first, 1);
	assert_int_equal(known.second, 0);
}

static void no_options_are_all_zero(void **state)
{
	(void)state;
	assert_int_equal(take_in(NULL), 0);
	assert_int_equal(known.size, sizeof(known));
	assert_int_equal(known.first, 0);
	assert_int_equal(known.second, 0);
}

static void a_newer_field_must_be_zero(void **state)
{
	struct newer given = { .size = sizeof(given), .first = 1, .second = 2 };

	(void)state;
	assert_int_equal(take_in(&given), 0);
	assert_int_equal(known.size, sizeof(known));
	assert_int_equal(known.second, 2);
	given.third = (uint64_t)1 << 56;
	assert_int_equal(take_in(&given), -E2BIG);
	assert_non_null(strstr(error.text, "struct weir_thing"));
	assert_non_null(strstr(error.text, "newer libweir"));
}

static void a_size_that_cannot_be_is_refused_with_the_remedy(void **state)
{
	static const size_t sizes[] = { 0, sizeof(void *), 4097, SIZE_MAX };
	struct known given = { .first = 1 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		given.size = sizes[i];
		assert_int_equal(take_in(&given), -EINVAL);
		assert_non_null(strstr(error.text, "set .size = sizeof(struct weir_thing)"));
	}
}

static void information_fills_what_the_program_has_room_for(void **state)
{
	const struct known info = { .first = 1, .second = 2 };
	struct older shorter[2] = { [1] = { .size = 7 } };
	struct newer longer = { .third = 9 };

	(void)state;
	assert_int_equal(weir_sized_out(shorter, sizeof(shorter[0]), &info, sizeof(info)), 0);
	assert_int_equal(shorter[0].size, sizeof(shorter[0]));
	assert_int_equal(shorter[0].first, 1);
	assert_int_equal(shorter[1].size, 7);
	assert_int_equal(weir_sized_out(&longer, sizeof(longer), &info, sizeof(info)), 0);
	assert_int_equal(longer.size, sizeof(info));
	assert_int_equal(longer.second, 2);
	assert_int_equal(longer.third, 9);
	assert_int_equal(weir_sized_out(&longer, sizeof(void *), &info, sizeof(info)), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_the_program_does_not_know_are_zero),
		cmocka_unit_test(no_options_are_all_zero),
		cmocka_unit_test(a_newer_field_must_be_zero),
		cmocka_unit_test(a_size_that_cannot_be_is_refused_with_the_remedy),
		cmocka_unit_test(information_fills_what_the_program_has_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
