/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The report at the initiator about the reach of its peers' translation caches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "core/unload/path.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/pressure.h"
#include "preload/unload/diag.h"

static char told[256];

void diag_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(told, sizeof(told), format, args);
	va_end(args);
}

static int begin(void **state)
{
	(void)state;
	pressure_forget();
	told[0] = '\0';
	return 0;
}

static void queue_pairs_are_counted_each_for_itself(void **state)
{
	static struct weir_path_selector first = {
		.config = { .policy = WEIR_PATH_POLICY_FREQUENCY, .hot_pages = 2 },
		.pages.histogram = { [2] = 1, [4] = 3 },
		.huge.histogram = { [3] = 1 },
		.decided = 90, .hot = 20,
	}, second = {
		.config = { .policy = WEIR_PATH_POLICY_MEASURED, .hot_pages = 2 },
		.pages.histogram = { [1] = 4 },
		.huge.histogram = { [1] = 1 },
		.decided = 10, .hot = 5,
	};

	(void)state;
	pressure_add(&first);
	pressure_add(&second);
	pressure_report();
	/* 8 of 14 writes, and 2 of 4. */
	assert_string_equal(told,
			    "of 100 small writes that could go either way, 25.0 % to hot pages; "
			    "lately 8 pages of 4 KiB, or 2 of 2 MiB: "
			    "a cache of 2 entries would hit 55.6 %, in huge pages 100.0 %");
}

static void a_program_without_counting_prints_nothing(void **state)
{
	static struct weir_path_selector route = {
		.config = { .policy = WEIR_PATH_POLICY_UNLOAD, .hot_pages = 2 },
		.decided = 100,
	};

	(void)state;
	pressure_add(&route);
	pressure_report();
	assert_string_equal(told, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(queue_pairs_are_counted_each_for_itself, begin),
		cmocka_unit_test_setup(a_program_without_counting_prints_nothing, begin),
	};

	return cmocka_run_group_tests_name("unload pressure", tests, NULL, NULL);
}
