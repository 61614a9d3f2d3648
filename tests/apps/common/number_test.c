/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/number.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void digits_within_the_bounds_are_a_number(void **state)
{
	static const struct {
		const char *text;
		uint64_t min, max, number;
	} good[] = {
		{ "0", 0, 0, 0 },
		{ "7", 7, 7, 7 },
		{ "007", 1, 7, 7 },
		{ "18446744073709551615", 1, UINT64_MAX, UINT64_MAX },
	};
	static const char *const wrong[] = {
		"",   " 7",  "+7", "-7", "-18446744073709551609", "7 ",
		"7x", "0x7", "2",  "9",	 "18446744073709551623",
	};
	uint64_t number = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(number_parse(good[i].text, good[i].min, good[i].max, &number));
		assert_int_equal(number, good[i].number);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (number_parse(wrong[i], 3, 8, &number))
			fail_msg("'%s' is no number from 3 to 8", wrong[i]);
	assert_int_equal(number, UINT64_MAX); /* as before */
}

static void a_long_number_is_not_cut(void **state)
{
	unsigned int number = 1;

	(void)state;
	assert_false(number_parse_uint("4294967298", 0, UINT32_MAX, &number));
	assert_int_equal(number, 1);
	assert_true(number_parse_uint("4294967295", 0, UINT32_MAX, &number));
	assert_int_equal(number, UINT32_MAX);
}

static void a_quantile_is_the_nearest_rank(void **state)
{
	(void)state;
	assert_int_equal(number_quantile(1, 50), 0);
	assert_int_equal(number_quantile(1, 99), 0);
	assert_int_equal(number_quantile(10, 50), 4);
	assert_int_equal(number_quantile(10, 99), 9);
	assert_int_equal(number_quantile(100, 99), 98);
	assert_int_equal(number_quantile(101, 99), 99);
	assert_int_equal(number_quantile(1000000, 100), 999999);
}

static void fractions_within_the_bounds_are_a_number(void **state)
{
	static const char *const wrong[] = { "", "x", "1s", "0.09", "10.1", "nan", "inf", "-1" };
	double number = 0;

	(void)state;
	assert_true(number_parse_double("0.1", 0.1, 10, &number));
	assert_true(fabs(number - 0.1) < 1e-9);
	assert_true(number_parse_double("1e1", 0.1, 10, &number));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (number_parse_double(wrong[i], 0.1, 10, &number))
			fail_msg("'%s' is no number from 0.1 to 10", wrong[i]);
	assert_true(fabs(number - 10) < 1e-9); /* as before */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits_within_the_bounds_are_a_number),
		cmocka_unit_test(a_long_number_is_not_cut),
		cmocka_unit_test(a_quantile_is_the_nearest_rank),
		cmocka_unit_test(fractions_within_the_bounds_are_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
