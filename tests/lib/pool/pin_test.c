/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib pool pin; suites: lib pool */
/* The identity that a client of a pool demands: by the map, within what the key's file allows. */
#include "lib/conn/handshake.h"
#include "lib/pool/pin.h"
#include "tests/support/cmocka_all.h"

static const uint8_t a[WIRE_KEY] = { 1 }, b[WIRE_KEY] = { 2 };

static void the_map_decides_if_the_file_names_no_donor(void **state)
{
	const struct weir_key key = { .length = 16 };

	(void)state;
	assert_int_equal(weir_pool_pin("d", a, &key, NULL), 0);
	assert_int_equal(weir_pool_pin("d", a, NULL, NULL), 0);
	assert_int_equal(weir_pool_pin("d", NULL, &key, NULL), 0);
}

static void a_file_that_names_donors_trusts_no_other(void **state)
{
	struct weir_key key = { .length = 16, .nr_donors = 2 };
	struct weir_error error;

	(void)state;
	memcpy(key.donors[1], a, sizeof(a));
	key.donors[0][5] = 9;
	assert_int_equal(weir_pool_pin("d", a, &key, &error), 0);
	assert_int_equal(weir_pool_pin("donor7", b, &key, &error), -EKEYREJECTED);
	assert_non_null(strstr(error.text, "donor7"));
	/* The handshake compares with the file's donors. */
	assert_int_equal(weir_pool_pin("d", NULL, &key, &error), 0);
}

static void a_donor_without_an_identity_is_not_pinned(void **state)
{
	struct weir_pool_donor donor = { .identity = { 3 } };

	(void)state;
	assert_null(weir_pool_identity(&donor));
	donor.has_identity = true;
	assert_ptr_equal(weir_pool_identity(&donor), donor.identity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_map_decides_if_the_file_names_no_donor),
		cmocka_unit_test(a_file_that_names_donors_trusts_no_other),
		cmocka_unit_test(a_donor_without_an_identity_is_not_pinned),
	};

	return cmocka_run_group_tests_name("pin", tests, NULL, NULL);
}
