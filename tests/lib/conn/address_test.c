/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "lib/conn/address.h"

static const struct {
	const char *name; /* as written */
	const char *address; /* the parsed address; NULL: refused */
} cases[] = {
	{ "127.0.0.1", "127.0.0.1:7474" },
	{ "127.0.0.1:80", "127.0.0.1:80" },
	{ "127.0.0.1:0", "127.0.0.1:0" },
	{ "::1", "[::1]:7474" },
	{ "[::1]", "[::1]:7474" },
	{ "[::1]:65535", "[::1]:65535" },
	{ "[::ffff:127.0.0.1]:80", "127.0.0.1:80" },
	{ "::ffff:7f00:1", "127.0.0.1:7474" },
	{ "[::127.0.0.1]:80", "[::127.0.0.1]:80" },
	{ ":99", "10.1.2.3:99" },
	{ "", "10.1.2.3:7474" },
	{ "127.0.0.1:", NULL },
	{ "127.0.0.1:65536", NULL },
	{ "127.0.0.1:1x", NULL },
	{ "127.0.0.1:-1", NULL },
	{ "[::1", NULL },
	{ "[::1]80", NULL },
};

static void names_mean_addresses(void **in)
{
	char text[WEIR_ADDRESS_MAX];
	struct addrinfo *list;
	size_t i;

	(void)in;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = weir_address_resolve(cases[i].name, "10.1.2.3", &list, NULL);

		if (!cases[i].address) {
			assert_int_equal(rc, -EINVAL);
			continue;
		}
		assert_int_equal(rc, 0);
		weir_address_format(list->ai_addr, text);
		assert_string_equal(text, cases[i].address);
		freeaddrinfo(list);
	}
}

static void addresses_in_numbers_are_read_without_asking(void **in)
{
	struct weir_error error = { "" };
	char text[WEIR_ADDRESS_MAX];
	struct addrinfo *list;

	(void)in;
	assert_int_equal(weir_address_parse_numeric("[::1]:99", &list, NULL), 0);
	weir_address_format(list->ai_addr, text);
	assert_string_equal(text, "[::1]:99");
	freeaddrinfo(list);
	assert_int_equal(weir_address_parse_numeric("localhost:99", &list, &error), -EINVAL);
	assert_non_null(strstr(error.text, "localhost"));
	assert_int_equal(weir_address_parse_numeric(":99", &list, NULL), -EINVAL);
}

static void who_has_no_default_names_a_host(void **in)
{
	struct weir_error error;
	struct addrinfo *list;

	(void)in;
	assert_int_equal(weir_address_resolve(":99", NULL, &list, &error), -EINVAL);
	assert_non_null(strstr(error.text, "':99'"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_mean_addresses),
		cmocka_unit_test(addresses_in_numbers_are_read_without_asking),
		cmocka_unit_test(who_has_no_default_names_a_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
