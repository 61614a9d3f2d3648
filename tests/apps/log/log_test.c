/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: log; suites: serve */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "apps/log/log_fields.h"

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
		log_fields_text(cases[i].line, text, sizeof(text));
		if (strcmp(text, cases[i].text))
			fail_msg("%s: %s", cases[i].name, text);
	}
}

static void a_line_that_is_too_long_is_cut(void **state)
{
	char text[8];

	(void)state;
	log_fields_text("stopping all=1", text, sizeof(text));
	assert_string_equal(text, "msg=sto");
}

static const struct log_entry entry = { .level = WEIR_LOG_WARNING,
					.time = "2026-01-31T12:00:00.000Z",
					.text = "msg=e" };

static const struct {
	const char *name, *line, *json, *journal;
} forms[] = {
	{ "an event", "stopping", "\"msg\": \"stopping\" }", "WEIR_EVENT=stopping\n" },
	{ "pairs", "no memory tenant=0 bytes=4096 id=W204: full",
	  "\"msg\": \"no memory\", \"tenant\": \"0\", \"bytes\": \"4096\", \"id\": \"W204\", "
	  "\"reason\": \"full\" }",
	  "WEIR_EVENT=no memory\nWEIR_TENANT=0\nWEIR_BYTES=4096\nWEIR_ID=W204\n"
	  "WEIR_REASON=full\n" },
	{ "a word after a value", "conn a:1 channel=0 closed: x",
	  "\"msg\": \"conn a:1\", \"channel\": \"0 closed\", \"reason\": \"x\" }",
	  "WEIR_EVENT=conn a:1\nWEIR_CHANNEL=0 closed\nWEIR_REASON=x\n" },
	{ "a newline that would begin another field", "e a=1\nPRIORITY=0: \"b\nc\"",
	  "\"msg\": \"e\", \"a\": \"1?PRIORITY=0\", \"reason\": \"\\\"b?c\\\"\" }",
	  "WEIR_EVENT=e\nWEIR_A=1?PRIORITY=0\nWEIR_REASON=\"b?c\"\n" },
	{ "a name that the journal would refuse", "e a-b.c=1", "\"msg\": \"e\", \"a-b.c\": \"1\" }",
	  "WEIR_EVENT=e\nWEIR_A_B_C=1\n" },
	{ "a reason with an equals sign", "failed: why = because",
	  "\"msg\": \"failed\", \"reason\": \"why = because\" }",
	  "WEIR_EVENT=failed\nWEIR_REASON=why = because\n" },
};

static void other_forms(void **state)
{
	char *json, *journal, wanted[512];
	size_t length;
	FILE *out;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		out = open_memstream(&json, &length);
		log_fields_json(&entry, forms[i].line, out);
		fclose(out);
		snprintf(wanted, sizeof(wanted), "{ \"ts\": \"%s\", \"level\": \"warning\", %s\n",
			 entry.time, forms[i].json);
		assert_string_equal(json, wanted);
		free(json);
		out = open_memstream(&journal, &length);
		log_fields_journal(&entry, forms[i].line, "weir-serve", out);
		fclose(out);
		snprintf(wanted, sizeof(wanted),
			 "MESSAGE=msg=e\nPRIORITY=4\nSYSLOG_IDENTIFIER=weir-serve\n%s",
			 forms[i].journal);
		assert_string_equal(journal, wanted);
		free(journal);
	}
}

static void a_line_has_a_bounded_number_of_pairs(void **state)
{
	struct log_fields fields;
	char line[512] = "e";

	(void)state;
	for (int i = 0; i < 2 * LOG_PAIRS_MAX; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " k%d=%d", i, i);
	log_fields_parse(&fields, line);
	assert_int_equal(fields.nr_pairs, LOG_PAIRS_MAX);
	assert_string_equal(fields.pair[1].value, "1");
}

static void a_source_that_floods_is_cut_short(void **state)
{
	static struct log_entry entries[LOG_TAIL_MAX];
	struct log_source source = { .name = "test" };
	size_t count;

	(void)state;
	for (int i = 0; i < WEIR_RATE_LIMIT_MAX + 9; i++)
		log_limited(&source, WEIR_LOG_INFO, "again");
	count = log_tail(entries);
	assert_int_equal(count, WEIR_RATE_LIMIT_MAX);
	assert_string_equal(entries[count - 1].text, "msg=again");
	source.limit.since_ns = 0;
	log_limited(&source, WEIR_LOG_INFO, "later");
	count = log_tail(entries);
	assert_string_equal(entries[count - 2].text, "msg=suppressed lines=9 of=test id=W107");
	assert_string_equal(entries[count - 1].text, "msg=later");
	assert_int_equal(entries[count - 1].number, WEIR_RATE_LIMIT_MAX + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(a_line_that_is_too_long_is_cut),
		cmocka_unit_test(other_forms),
		cmocka_unit_test(a_line_has_a_bounded_number_of_pairs),
		cmocka_unit_test(a_source_that_floods_is_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
