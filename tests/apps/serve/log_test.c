/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: serve log; suites: serve */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "apps/serve/log.h"

static const struct {
	const char *name, *line, *text;
} cases[] = {
	{ "a word", "stopping", "msg=stopping" },
	{ "a word and pairs", "joined peer=1 client=[::1]:7", "msg=joined peer=1 client=[::1]:7" },
	{ "several words", "no memory tenant=0", "msg=\"no memory\" tenant=0" },
	{ "a reason", "refused client=a:1: wrong key",
	  "msg=refused client=a:1 reason=\"wrong key\"" },
	{ "a reason alone", "failed: why = because", "msg=failed reason=\"why = because\"" },
	{ "an address among the words", "gate a:1 channel=0 closed: x",
	  "msg=\"gate a:1\" channel=0 closed reason=\"x\"" },
	{ "what would break the line", "e: a\"b\\\n", "msg=e reason=\"a\\\"b\\\\?\"" },
	{ "nothing", "", "msg=" },
};

static void lines(void **state)
{
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		log_format(cases[i].line, text, sizeof(text));
		if (strcmp(text, cases[i].text))
			fail_msg("%s: %s", cases[i].name, text);
	}
}

static void a_line_that_is_too_long_is_cut(void **state)
{
	char text[8];

	(void)state;
	log_format("stopping all=1", text, sizeof(text));
	assert_string_equal(text, "msg=sto");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(a_line_that_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
