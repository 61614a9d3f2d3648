/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor holdings; suites: donor; devices: softnic; timeout: 120 */
/* Holders of the donor's memory: clients, names left behind, the application. */
#include "tests/support/donor_fixture.h"

#include <semaphore.h>

#include "lib/donor/view/holdings.h"

static struct donor_fixture f;
static struct raw_client a, b;
static struct weir_holdings holdings;
static sem_t copied;

static int setup(void **state)
{
	(void)state;
	sem_init(&copied, 0, 0);
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	assert_int_equal(raw_open(&b, f.info.address, &key_b), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	raw_close(&a);
	raw_close(&b);
	weir_holdings_free(&holdings);
	donor_fixture_stop(&f);
	sem_destroy(&copied);
	return 0;
}

static void copy(void *arg)
{
	(void)arg;
	weir_holdings_free(&holdings);
	(void)weir_holdings_copy(&holdings, f.donor);
	sem_post(&copied);
}

/* The bytes of a kind, tenant and client now. */
static uint64_t held(enum weir_holding_kind kind, unsigned int tenant, uint64_t client)
{
	uint64_t bytes = 0;

	assert_int_equal(weir_donor_after(f.donor, 0, copy, NULL), 0);
	while (sem_wait(&copied))
		;
	for (size_t i = 0; i < holdings.nr_extents; i++) {
		const struct weir_holding *extent = &holdings.extent[i];

		assert_true(extent->offset + extent->bytes <= holdings.bytes);
		if (extent->kind == kind && extent->tenant == tenant && extent->client == client)
			bytes += extent->bytes;
	}
	return bytes;
}

static void each_client_holds_its_own(void **state)
{
	struct wire_control_region r;

	(void)state;
	assert_int_equal(held(WEIR_HOLDING_CLIENT, 0, 1), 0);
	assert_int_equal(holdings.bytes, 16 * MIB);
	assert_int_equal(holdings.nr_clients, 2);
	assert_int_equal(holdings.client[0].id, 1);
	assert_int_equal(holdings.client[1].tenant, 1);
	assert_non_null(strchr(holdings.client[0].name, ':'));
	assert_int_equal(raw_create(&a, NULL, MIB, 0, &r), 0);
	assert_int_equal(raw_create(&a, "name", MIB, 0, &r), 0);
	assert_int_equal(raw_create(&b, NULL, 4096, 0, &r), 0);
	assert_int_equal(held(WEIR_HOLDING_CLIENT, 0, 1), 2 * MIB);
	assert_int_equal(held(WEIR_HOLDING_CLIENT, 1, 2), 4096);
}

static void a_name_outlives_its_creator_as_nobodys(void **state)
{
	struct wire_control_region r;

	(void)state;
	assert_int_equal(raw_create(&a, "stays", MIB, 0, &r), 0);
	raw_close(&a);
	assert_soon(held(WEIR_HOLDING_LEFT, 0, 0) == MIB);
	assert_int_equal(held(WEIR_HOLDING_CLIENT, 0, 1), 0);
	assert_int_equal(holdings.nr_clients, 1);
}

static void the_application_holds_what_it_took(void **state)
{
	struct weir_region_token token;
	void *memory;

	(void)state;
	assert_int_equal(weir_donor_region_create(f.donor, 1, MIB, &token, &memory), 0);
	assert_int_equal(held(WEIR_HOLDING_APPLICATION, 1, 0), MIB);
	weir_donor_region_destroy(f.donor, &token);
	assert_int_equal(held(WEIR_HOLDING_APPLICATION, 1, 0), 0);
	assert_soon(held(WEIR_HOLDING_ZEROING, 1, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_client_holds_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_outlives_its_creator_as_nobodys, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_application_holds_what_it_took, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
