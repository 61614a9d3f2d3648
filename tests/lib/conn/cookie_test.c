/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib cookie */
/* A cookie belongs to one address, for a time. */
#include "lib/conn/cookie.h"
#include "tests/support/cmocka_all.h"

static const uint8_t here[WIRE_GID] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

static void a_cookie_holds_for_its_address_alone(void **state)
{
	struct weir_cookies cookies = { 0 };
	uint8_t cookie[WIRE_COOKIE], there[WIRE_GID];
	unsigned int bit;

	(void)state;
	weir_cookie_make(&cookies, here, 1, cookie);
	assert_true(wire_handshake_has_cookie(cookie));
	assert_true(weir_cookie_holds(&cookies, here, 2, cookie));
	for (bit = 0; bit < 8 * WIRE_GID; bit++) {
		memcpy(there, here, sizeof(there));
		there[bit / 8] ^= 1 << bit % 8;
		assert_false(weir_cookie_holds(&cookies, there, 2, cookie));
	}
	for (bit = 0; bit < 8 * WIRE_COOKIE; bit++) {
		cookie[bit / 8] ^= 1 << bit % 8;
		assert_false(weir_cookie_holds(&cookies, here, 2, cookie));
		cookie[bit / 8] ^= 1 << bit % 8;
	}
}

static void a_cookie_outlives_its_secret_once(void **state)
{
	struct weir_cookies cookies = { 0 };
	uint8_t first[WIRE_COOKIE], second[WIRE_COOKIE];
	const uint64_t now_ns = 5;

	(void)state;
	weir_cookie_make(&cookies, here, now_ns, first);
	weir_cookie_make(&cookies, here, now_ns + WEIR_COOKIE_NS, second);
	assert_memory_not_equal(first, second, sizeof(first));
	assert_true(weir_cookie_holds(&cookies, here, now_ns + 2 * WEIR_COOKIE_NS - 1, first));
	assert_false(weir_cookie_holds(&cookies, here, now_ns + 2 * WEIR_COOKIE_NS, first));
	assert_true(weir_cookie_holds(&cookies, here, now_ns + 2 * WEIR_COOKIE_NS, second));
	/* No request renewed the secrets in the meantime. */
	assert_false(weir_cookie_holds(&cookies, here, now_ns + 9 * WEIR_COOKIE_NS, second));
}

static void each_listener_has_secrets_of_its_own(void **state)
{
	static const uint8_t zero[WEIR_COOKIE_SECRET];
	struct weir_cookies a = { 0 }, b = { 0 };
	uint8_t cookie[WIRE_COOKIE];

	(void)state;
	weir_cookie_make(&a, here, 1, cookie);
	assert_false(weir_cookie_holds(&b, here, 1, cookie));
	/* Also the earlier secret of a listener that has had none. */
	assert_memory_not_equal(a.secrets[1], zero, sizeof(zero));
	assert_memory_not_equal(a.secrets[1], b.secrets[1], sizeof(zero));
	weir_cookies_fini(&a);
	assert_memory_equal(a.secrets[0], zero, sizeof(zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cookie_holds_for_its_address_alone),
		cmocka_unit_test(a_cookie_outlives_its_secret_once),
		cmocka_unit_test(each_listener_has_secrets_of_its_own),
	};

	return cmocka_run_group_tests_name("cookie", tests, NULL, NULL);
}
