/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/support/cmocka_all.h"
#include "wire/group.h"

static struct wire_group_hello good(void)
{
	return (struct wire_group_hello){ WIRE_GROUP_MAGIC, 2, 4, "127.0.0.1:7475" };
}

static void test_a_hello_of_a_member_above_is_taken(void **state)
{
	struct wire_group_hello hello = good();

	(void)state;
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 4, 0), 0);
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 4, 1), 0);
}

static void test_a_hello_that_makes_no_sense_is_refused(void **state)
{
	struct wire_group_hello hello = good();

	(void)state;
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello) - 1, 4, 0), -EPROTO);
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello) + 1, 4, 0), -EPROTO);
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 5, 0), -EPROTO);
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 4, 2), -EPROTO);
	hello.member = 4;
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 4, 0), -EPROTO);
	hello = good();
	hello.magic++;
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 4, 0), -EPROTO);
	hello = good();
	memset(hello.address, 'x', sizeof(hello.address));
	assert_int_equal(wire_group_hello_check(&hello, sizeof(hello), 4, 0), -EPROTO);
}

static void test_addresses_are_as_many_as_members_and_end(void **state)
{
	char addresses[3][WIRE_GROUP_ADDRESS] = { "", "127.0.0.1:1", "[::1]:2" };

	(void)state;
	assert_int_equal(wire_group_addresses_check(addresses, sizeof(addresses), 3), 0);
	assert_int_equal(wire_group_addresses_check(addresses, sizeof(addresses) - 1, 3), -EPROTO);
	assert_int_equal(wire_group_addresses_check(addresses, sizeof(addresses), 2), -EPROTO);
	memset(addresses[1], 'x', WIRE_GROUP_ADDRESS);
	assert_int_equal(wire_group_addresses_check(addresses, sizeof(addresses), 3), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_hello_of_a_member_above_is_taken),
		cmocka_unit_test(test_a_hello_that_makes_no_sense_is_refused),
		cmocka_unit_test(test_addresses_are_as_many_as_members_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
