/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that wait for replies: each event in each state of a call. */
#include "core/link/call_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define COUNT 4

static struct weir_call_entry entries[COUNT];
static struct weir_call_table table;

static int set_up(void **state)
{
	(void)state;
	weir_call_table_init(&table, entries, COUNT);
	return 0;
}

static int reply_of(uint64_t tag, uint16_t kind, int status, uint64_t hold, unsigned int *index)
{
	const struct wire_control_region region = { .hold = hold };
	const struct wire_control_head head = {
		.kind = kind,
		.status = status,
		.tag = tag,
		.length = hold ? sizeof(region) : 0,
	};

	return weir_call_table_reply(&table, &head, &region, index);
}

static int reply(uint64_t tag, uint64_t hold)
{
	unsigned int index;

	return reply_of(tag, WIRE_CONTROL_REPLY, 0, hold, &index);
}

static void a_reply_reaches_its_call_once(void **state)
{
	unsigned int index = COUNT;
	int first = weir_call_table_begin(&table, 10, 0),
	    second = weir_call_table_begin(&table, 10, 0);
	uint64_t tag = entries[second].tag;

	(void)state;
	assert_int_not_equal(first, second);
	assert_int_equal(reply_of(tag, WIRE_APP_REPLY, 0, 0, &index), 0);
	assert_int_equal(index, second);
	assert_int_equal(reply(tag, 0), -EPROTO); /* a duplicate */
	assert_int_equal(entries[first].state, WEIR_CALL_WAITING);
}

static void a_reply_to_no_call_is_refused(void **state)
{
	int index = weir_call_table_begin(&table, 10, 0);
	uint64_t past, tag = entries[index].tag;

	(void)state;
	assert_int_equal(reply(0, 0), -EPROTO);
	assert_int_equal(reply(tag + 1, 0), -EPROTO);
	assert_int_equal(reply(tag + COUNT, 0), -EPROTO); /* of the future */
	assert_int_equal(reply(UINT64_MAX, 0), -EPROTO);
	assert_int_equal(reply(tag, 0), 0);
	past = tag;
	index = weir_call_table_begin(&table, 10, 0);
	assert_int_not_equal(entries[index].tag, past);
	assert_int_equal(reply(past, 0), -EPROTO);
}

static void the_table_has_room_for_so_many(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < COUNT; i++)
		assert_true(weir_call_table_begin(&table, 10, 0) >= 0);
	assert_int_equal(weir_call_table_begin(&table, 10, 0), -EAGAIN);
	weir_call_table_cancel(&table, 2);
	assert_int_equal(weir_call_table_begin(&table, 10, 0), 2);
}

static void calls_expire_in_the_order_of_their_deadlines(void **state)
{
	int late = weir_call_table_begin(&table, 30, 0),
	    soon = weir_call_table_begin(&table, 10, 0),
	    between = weir_call_table_begin(&table, 20, 0);

	(void)state;
	assert_int_equal(weir_call_table_expire(&table, 9), -1);
	assert_int_equal(weir_call_table_expire(&table, 20), soon);
	assert_int_equal(weir_call_table_expire(&table, 20), between);
	assert_int_equal(weir_call_table_expire(&table, 20), -1);
	assert_int_equal(weir_call_table_expire(&table, UINT64_MAX), late);
	assert_int_equal(weir_call_table_expire(&table, UINT64_MAX), -1);
}

static void an_expired_call_keeps_its_entry_until_the_reply(void **state)
{
	int i, index = weir_call_table_begin(&table, 10, 0);
	uint64_t tag = entries[index].tag;

	(void)state;
	assert_int_equal(weir_call_table_expire(&table, 10), index);
	assert_false(weir_call_table_abandon(&table, index));
	for (i = 1; i < COUNT; i++)
		weir_call_table_begin(&table, 20, 0);
	assert_int_equal(weir_call_table_begin(&table, 20, 0), -EAGAIN);
	assert_int_equal(reply(tag, 0), -ESTALE);
	assert_int_equal(weir_call_table_begin(&table, 20, 0), index);
}

static void a_region_granted_late_is_kept_until_returned(void **state)
{
	int index = weir_call_table_begin(&table, 10, 0);

	(void)state;
	assert_true(weir_call_table_abandon(&table, index));
	assert_int_equal(reply(entries[index].tag, 77), -ESTALE);
	assert_int_equal(weir_call_table_granted(&table), 77);
	assert_false(weir_call_table_broken(&table, index));
	/* The call that returns it is lost, times out, and is answered. */
	assert_int_equal(weir_call_table_begin(&table, 10, 77), index);
	assert_int_equal(weir_call_table_granted(&table), 0);
	assert_true(weir_call_table_broken(&table, index));
	assert_int_equal(weir_call_table_granted(&table), 77);
	assert_int_equal(weir_call_table_begin(&table, 10, 77), index);
	weir_call_table_cancel(&table, index);
	assert_int_equal(weir_call_table_granted(&table), 77);
	assert_int_equal(weir_call_table_begin(&table, 10, 77), index);
	assert_int_equal(weir_call_table_expire(&table, 10), index);
	assert_int_equal(reply(entries[index].tag, 0), -ESTALE);
	assert_int_equal(weir_call_table_granted(&table), 0);
	assert_int_equal(entries[index].state, WEIR_CALL_FREE);
}

static void a_table_full_of_late_regions_has_room_to_return_them(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < COUNT; i++) {
		assert_int_equal(weir_call_table_begin(&table, 10, 0), i);
		weir_call_table_abandon(&table, i);
		assert_int_equal(reply(entries[i].tag, 70 + i), -ESTALE);
	}
	assert_int_equal(weir_call_table_begin(&table, 10, 0), -EAGAIN);
	assert_int_equal(weir_call_table_begin(&table, 10, weir_call_table_granted(&table)), 0);
	assert_int_equal(reply(entries[0].tag, 0), 0);
	assert_int_equal(weir_call_table_begin(&table, 10, 0), 0);
}

static void only_a_granting_reply_of_weirs_own_is_kept(void **state)
{
	const struct {
		uint16_t kind;
		int status;
		uint64_t hold;
	} replies[] = {
		{ WIRE_APP_REPLY, 0, 77 },
		{ WIRE_CONTROL_REPLY, -ENOMEM, 77 },
		{ WIRE_CONTROL_REPLY, 0, 0 },
	};
	unsigned int i, got;

	(void)state;
	for (i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		int index = weir_call_table_begin(&table, 10, 0);

		weir_call_table_abandon(&table, index);
		assert_int_equal(reply_of(entries[index].tag, replies[i].kind, replies[i].status,
					  replies[i].hold, &got),
				 -ESTALE);
		assert_int_equal(weir_call_table_granted(&table), 0);
	}
}

static void a_lost_channel_ends_all_calls_that_were_sent(void **state)
{
	int kept = weir_call_table_begin(&table, 10, 0),
	    sent = weir_call_table_begin(&table, 10, 0), late = weir_call_table_begin(&table, 5, 0);

	(void)state;
	assert_int_equal(weir_call_table_expire(&table, 5), late);
	weir_call_table_keep(&table, entries[kept].tag);
	weir_call_table_keep(&table, 0); /* a message that expects no reply */
	assert_true(weir_call_table_broken(&table, sent));
	assert_false(weir_call_table_broken(&table, kept));
	assert_false(weir_call_table_broken(&table, late));
	assert_int_equal(entries[kept].state, WEIR_CALL_WAITING);
	assert_int_equal(entries[late].state, WEIR_CALL_FREE);
	assert_true(weir_call_table_broken(&table, kept)); /* the next time it was sent */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, NULL)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reply_reaches_its_call_once),
		TEST(a_reply_to_no_call_is_refused),
		TEST(the_table_has_room_for_so_many),
		TEST(calls_expire_in_the_order_of_their_deadlines),
		TEST(an_expired_call_keeps_its_entry_until_the_reply),
		TEST(a_region_granted_late_is_kept_until_returned),
		TEST(a_table_full_of_late_regions_has_room_to_return_them),
		TEST(only_a_granting_reply_of_weirs_own_is_kept),
		TEST(a_lost_channel_ends_all_calls_that_were_sent),
	};

	return cmocka_run_group_tests_name("call_table", tests, NULL, NULL);
}
