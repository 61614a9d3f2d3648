// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic option; devices: softnic */
/* Valid settings of WEIR_SOFTNIC, and the messages for mistakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/control/option.h"

static void valid_settings_are_accepted(void **state)
{
	static const struct {
		const char *text;
		enum softnic_option option;
		uint64_t value;
	} cases[] = {
		{ "", OPTION_DEVICES, 1 },
		{ "", OPTION_ERROR_AFTER, OPTION_NEVER },
		{ "devices=8", OPTION_DEVICES, 8 },
		{ "devices=2,ports=3", OPTION_PORTS, 3 },
		{ "ports=3,ports=4", OPTION_PORTS, 4 },
		{ "strict=2,strict_leaks=1", OPTION_STRICT, 2 },
		{ "error_after=0", OPTION_ERROR_AFTER, 0 },
		{ "error_after=3,error_after=never", OPTION_ERROR_AFTER, OPTION_NEVER },
		{ "mr_bytes_max=64K", OPTION_MR_BYTES_MAX, 64 << 10 },
		{ "mr_bytes_max=3G", OPTION_MR_BYTES_MAX, 3ull << 30 },
		{ "rnr=100", OPTION_RNR, OPTION_PPM },
		{ "rnr=12.5", OPTION_RNR, 125000 },
		{ "error=0.0001", OPTION_ERROR, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct softnic_options o;
		char why[512];

		option_defaults(&o);
		if (option_parse(cases[i].text, OPTION_DEVICES, &o, why, sizeof(why)))
			fail_msg("'%s': %s", cases[i].text, why);
		if (o.value[cases[i].option] != cases[i].value)
			fail_msg("'%s' has the wrong value", cases[i].text);
	}
}

static void a_mistake_is_named_with_its_value_and_the_remedy(void **state)
{
	static const struct {
		const char *text, *name, *remedy;
	} cases[] = {
		{ "device=2", "'device'", "devices" },
		{ "devices", "devices=", "from 1 to 8" },
		{ "devices=", "devices=", "from 1 to 8" },
		{ "devices=0", "devices=0", "from 1 to 8" },
		{ "strict=3", "strict=3", "from 0 to 2" },
		{ "strict=abort", "strict=abort", "from 0 to 2" },
		{ "devices=9", "devices=9", "from 1 to 8" },
		{ "devices=-1", "devices=-1", "from 1 to 8" },
		{ "devices= 1", "devices= 1", "from 1 to 8" },
		{ "devices=never", "devices=never", "from 1 to 8" },
		{ "devices=1x", "devices=1x", "from 1 to 8" },
		{ "delay_us=99999999999999999999999", "delay_us=9", "from 0 to 10000000" },
		{ "mr_bytes_max=18014398509481984K", "mr_bytes_max=18", "from 0" },
		{ "rnr=100.1", "rnr=100.1", "from 0 to 100" },
		{ "rnr=1e1", "rnr=1e1", "from 0 to 100" },
		{ "rnr=99999999999999999999999999", "rnr=9", "from 0 to 100" },
		{ "devices=1,,ports=1", "''", "devices" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct softnic_options o;
		char why[512] = "";

		option_defaults(&o);
		if (option_parse(cases[i].text, OPTION_DEVICES, &o, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s' was taken", cases[i].text);
		if (!strstr(why, cases[i].name) || !strstr(why, cases[i].remedy))
			fail_msg("'%s': %s", cases[i].text, why);
	}
}

static void settings_fixed_at_the_start_are_no_fault(void **state)
{
	struct softnic_options o;
	char why[16];

	(void)state;
	option_defaults(&o);
	assert_int_equal(option_parse("ports=2", OPTION_FIRST_FAULT, &o, why, sizeof(why)),
			 -EINVAL);
	assert_int_equal(o.value[OPTION_PORTS], 1);
	assert_int_equal(o.given, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_settings_are_accepted),
		cmocka_unit_test(a_mistake_is_named_with_its_value_and_the_remedy),
		cmocka_unit_test(settings_fixed_at_the_start_are_no_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
