/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib span settings */
/* The variables of OpenTelemetry, one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/span/settings.h"
#include "tests/support/cmocka_all.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"

/* An environment: NAME, VALUE, NAME, VALUE, ..., NULL. */
static const char *const *environment;

static char *get(const char *name)
{
	for (const char *const *pair = environment; *pair; pair += 2)
		if (!strcmp(*pair, name))
			return (char *)pair[1];
	return NULL;
}

static struct weir_span_settings read_settings(const char *const *pairs, const char *warned)
{
	struct weir_span_settings settings;
	struct weir_error warning = { "left" };

	environment = pairs;
	weir_span_settings_read(&settings, get, &warning);
	if (!strstr(warning.text, warned) || !*warned != !*warning.text)
		fail_msg("'%s' instead of '%s'", warning.text, warned);
	return settings;
}

static void the_endpoint_decides_whether_spans_are_on(void **state)
{
	static const struct {
		const char *pairs[8], *endpoint, *warned;
	} cases[] = {
		{ { NULL }, "", "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "" }, "", "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318" }, "http://h:4318/v1/traces",
		  "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "https://h/a//" }, "https://h/a/v1/traces", "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		    "http://g/x/" },
		  "http://g/x/", "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_SDK_DISABLED", "True" }, "",
		  "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_TRACES_EXPORTER", "none" }, "",
		  "" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "file:///etc/passwd" }, "",
		  "expected http://" },
		{ { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h\r\nx" }, "", "line breaks" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_string_equal(read_settings(cases[i].pairs, cases[i].warned).endpoint,
				    cases[i].endpoint);
}

static void an_endpoint_that_is_too_long_is_none(void **state)
{
	char url[600] = "http://";
	const char *pairs[] = { "OTEL_EXPORTER_OTLP_ENDPOINT", url, NULL };

	(void)state;
	memset(url + 7, 'h', sizeof(url) - 8);
	for (size_t length = 480; length < sizeof(url); length++) {
		struct weir_span_settings settings;

		url[length] = '\0';
		environment = pairs;
		weir_span_settings_read(&settings, get, NULL);
		if (*settings.endpoint)
			assert_string_equal(settings.endpoint + length, "/v1/traces");
		else
			assert_true(length + strlen("/v1/traces") >= sizeof(settings.endpoint));
		url[length] = 'h';
	}
}

#define ON "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"

static void the_service_has_a_name(void **state)
{
	static const char *const by_attribute[] = { ON, "OTEL_RESOURCE_ATTRIBUTES",
						    "a=b,service.name=my%20own", NULL };
	static const char *const by_name[] = { ON, "OTEL_RESOURCE_ATTRIBUTES",
					       "service.name=one", "OTEL_SERVICE_NAME", "two",
					       NULL };

	(void)state;
	assert_string_equal(read_settings(by_attribute, "").service, "my own");
	assert_string_equal(read_settings(by_name, "").service, "two");
}

/* How many of 1000 traces are recorded; the ids are spread evenly. */
static unsigned int sampled(const struct weir_span_settings *settings)
{
	unsigned int count = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		const uint64_t bits = (2 * i + 1) * ((1ull << 56) / 2000);
		const uint64_t trace[2] = { 1, 0xff00000000000000ull | bits };

		count += weir_span_settings_sample(settings, trace);
	}
	return count;
}

static void samplers_record_their_share(void **state)
{
	static const struct {
		const char *sampler, *argument, *flag;
		unsigned int expected;
		const char *warned;
	} cases[] = {
		{ NULL, NULL, NULL, 1000, "" },
		{ NULL, NULL, "1", 1000, "" },
		{ NULL, NULL, "0", 0, "" },
		{ "always_on", NULL, "0", 1000, "" },
		{ "always_off", NULL, "1", 0, "" },
		{ "parentbased_always_off", NULL, NULL, 0, "" },
		{ "parentbased_always_off", NULL, "1", 1000, "" },
		{ "traceidratio", "0.25", NULL, 250, "" },
		{ "traceidratio", "0", NULL, 0, "" },
		{ "traceidratio", "1", NULL, 1000, "" },
		{ "traceidratio", NULL, NULL, 1000, "" },
		{ "traceidratio", "1.5", NULL, 1000, "expected 0 to 1" },
		{ "traceidratio", "nan", NULL, 1000, "expected 0 to 1" },
		{ "traceidratio", "0.5x", NULL, 1000, "expected 0 to 1" },
		{ "traceidratio", "0.1", "1", 100, "" },
		{ "parentbased_traceidratio", "0.1", NULL, 100, "" },
		{ "parentbased_traceidratio", "0.1", "1", 1000, "" },
		{ "parentbased_traceidratio", "0.1", "0", 0, "" },
		{ "sometimes", NULL, "0", 0, "OTEL_TRACES_SAMPLER=sometimes" },
		{ "parentbased_sometimes", NULL, NULL, 1000, "OTEL_TRACES_SAMPLER=" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char parent[64];
		const char *pairs[] = { ON,
					"OTEL_TRACES_SAMPLER",
					cases[i].sampler ? cases[i].sampler : "",
					"OTEL_TRACES_SAMPLER_ARG",
					cases[i].argument ? cases[i].argument : "",
					cases[i].flag ? "TRACEPARENT" : "NONE",
					parent,
					NULL };
		struct weir_span_settings settings;

		snprintf(parent, sizeof(parent), "%s%s", PARENT,
			 cases[i].flag ? cases[i].flag : "");
		settings = read_settings(pairs, cases[i].warned);
		if (sampled(&settings) != cases[i].expected)
			fail_msg("case %zu: %u", i, sampled(&settings));
	}
}

static void a_parent_is_taken_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *text;
		bool is_taken;
	} cases[] = {
		{ PARENT "1", true },
		{ PARENT "0", true },
		{ PARENT "1-more", false }, /* of version 00 */
		{ "01" PARENT "1", false },
		{ "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true },
		{ "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
		{ "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01", false },
		{ "00-00000000000000000000000000000000-b7ad6b7169203331-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false },
		{ "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
		{ "x", false },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		const char *pairs[] = { ON, "TRACEPARENT", cases[i].text, NULL };
		struct weir_span_settings settings =
			read_settings(pairs, cases[i].is_taken ? "" : "TRACEPARENT=");

		assert_int_equal(settings.has_parent, cases[i].is_taken);
		if (!cases[i].is_taken)
			continue;
		assert_true(settings.trace[0] == 0x0af7651916cd43ddull);
		assert_true(settings.trace[1] == 0x8448eb211c80319cull);
		assert_true(settings.parent == 0xb7ad6b7169203331ull);
	}
}

static void lists_of_pairs_are_decoded_and_never_end_a_header(void **state)
{
	const char *list = "a=b, c = d%20e ,,=x,f,g%3dh=%2C,i=%0d%0aEvil:1,j=%2,k=";
	static const char *const expected[][2] = {
		{ "a", "b" }, { "c", "d e" }, { "g=h", "," }, { "k", "" }
	};
	char name[16], value[16];

	(void)state;
	for (size_t i = 0; i < LENGTH(expected); i++) {
		assert_true(weir_span_settings_pair(&list, name, value, sizeof(name)));
		assert_string_equal(name, expected[i][0]);
		assert_string_equal(value, expected[i][1]);
	}
	assert_false(weir_span_settings_pair(&list, name, value, sizeof(name)));
	list = "a=0123456789abcdef,b=0123456789abcde";
	assert_true(weir_span_settings_pair(&list, name, value, sizeof(name)));
	assert_string_equal(name, "b");
	assert_false(weir_span_settings_pair(&list, name, value, sizeof(name)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_endpoint_decides_whether_spans_are_on),
		cmocka_unit_test(an_endpoint_that_is_too_long_is_none),
		cmocka_unit_test(the_service_has_a_name),
		cmocka_unit_test(samplers_record_their_share),
		cmocka_unit_test(a_parent_is_taken_whole_or_not_at_all),
		cmocka_unit_test(lists_of_pairs_are_decoded_and_never_end_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
