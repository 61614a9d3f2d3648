/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void containers_nest_and_text_is_escaped(void **state)
{
	char *text;
	size_t length;
	struct json json;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	json_begin(&json, out);
	json_string(&json, "name", "a\"b\\c\nd\x01");
	json_open_array(&json, "list");
	json_open_object(&json, NULL);
	json_uint(&json, "big", UINT64_MAX);
	json_close(&json);
	json_open_object(&json, NULL);
	json_int(&json, "small", -1);
	json_close(&json);
	json_close(&json);
	json_boolean(&json, "yes", true);
	json_double(&json, "us", 1.5);
	json_end(&json);
	fclose(out);
	assert_string_equal(text, "{\n"
				  "  \"name\": \"a\\\"b\\\\c\\nd\\u0001\",\n"
				  "  \"list\": [\n"
				  "    {\n"
				  "      \"big\": 18446744073709551615\n"
				  "    },\n"
				  "    {\n"
				  "      \"small\": -1\n"
				  "    }\n"
				  "  ],\n"
				  "  \"yes\": true,\n"
				  "  \"us\": 1.500\n"
				  "}\n");
	free(text);
}

static void a_line_is_one(void **state)
{
	char *text;
	size_t length;
	struct json json;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	json_begin_line(&json, out);
	json_uint(&json, "one", 1);
	json_open_array(&json, "two");
	json_string(&json, NULL, "\n");
	json_close(&json);
	json_end(&json);
	fclose(out);
	assert_string_equal(text, "{ \"one\": 1, \"two\": [ \"\\n\" ] }\n");
	free(text);
}

/* json-c prints blanks in an empty container, or none: it depends on its version. */
static void empty_containers_are_printed(void **state)
{
	char *text, *to;
	size_t length;
	struct json json;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	json_begin(&json, out);
	json_open_object(&json, "object");
	json_close(&json);
	json_open_array(&json, "list");
	json_close(&json);
	json_end(&json);
	fclose(out);
	to = text;
	for (const char *from = text; *from; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
	*to = '\0';
	assert_string_equal(text, "{\"object\":{},\"list\":[]}");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_nest_and_text_is_escaped),
		cmocka_unit_test(empty_containers_are_printed),
		cmocka_unit_test(a_line_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
