/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/size.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void sizes_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "512b", 512 },
		{ "1K", 1024 },
		{ "4k", 4096 },
		{ "1.5K", 1536 },
		{ "512MiB", 512ull << 20 },
		{ "512 MB", 512ull << 20 },
		{ "4G", 4ull << 30 },
		{ "7E", 7ull << 60 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 1;

		assert_int_equal(size_parse(cases[i].text, &bytes), 0);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void nonsense_is_refused_and_writes_nothing(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{ "", -EINVAL },      { "G", -EINVAL },	   { "-1", -EINVAL },  { " 1", -EINVAL },
		{ "4X", -EINVAL },    { "4Gb!", -EINVAL }, { "4GG", -EINVAL }, { "0x10", -EINVAL },
		{ "inf", -EINVAL },   { "nan", -EINVAL },  { "8E", -ERANGE },  { "1e30", -ERANGE },
		{ "1 G 2", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 77;

		assert_int_equal(size_parse(cases[i].text, &bytes), cases[i].err);
		assert_int_equal(bytes, 77);
	}
}

static void sizes_are_shown_in_the_unit_that_fits(void **state)
{
	(void)state;
	assert_string_equal(size_format(0).text, "0 B");
	assert_string_equal(size_format(1023).text, "1023 B");
	assert_string_equal(size_format(1024).text, "1.0 KiB");
	assert_string_equal(size_format(3ull << 29).text, "1.5 GiB");
	assert_string_equal(size_format(UINT64_MAX).text, "16.0 EiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_read_as_people_write_them),
		cmocka_unit_test(nonsense_is_refused_and_writes_nothing),
		cmocka_unit_test(sizes_are_shown_in_the_unit_that_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
