/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Groups: the hub and its members are threads of this process. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define SIZE 4
#define TIMEOUT_NS (60 * SECOND_NS)
#define BYTES 100000

static enum weir_exchange_mode mode;

typedef void act_fn(struct weir_group *group, unsigned int rank);

struct member {
	const char *hub;
	act_fn *act;
};

static struct weir_exchange_options options_of(void)
{
	return (struct weir_exchange_options){
		.key = fixture_key(), .mode = mode, .slots = 16, .slot_bytes = 4096,
	};
}

static void *be_member(void *arg)
{
	const struct weir_exchange_options options = options_of();
	const struct member *member = arg;
	struct weir_error error = { "" };
	struct weir_group *group;

	if (weir_group_join(member->hub, &options, TIMEOUT_NS, &group, &error))
		fail_msg("cannot join: %s", error.text);
	member->act(group, weir_group_rank(group));
	weir_group_close(group);
	return NULL;
}

static void all_do(act_fn *act)
{
	const struct weir_exchange_options options = options_of();
	struct weir_exchange_listener *listener;
	struct weir_error error = { "" };
	struct weir_group *group;
	struct member member;
	pthread_t threads[SIZE - 1];
	char address[80];
	int i;

	snprintf(address, sizeof(address), "%s:0", fixture_address());
	if (weir_exchange_listen(address, &options, &listener, &error))
		fail_msg("cannot listen: %s", error.text);
	member = (struct member){ weir_exchange_address(listener), act };
	for (i = 0; i < SIZE - 1; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_member, &member), 0);
	if (weir_group_host(listener, SIZE, TIMEOUT_NS, &group, &error))
		fail_msg("cannot host: %s", error.text);
	weir_exchange_unlisten(listener);
	act(group, 0);
	weir_group_close(group);
	for (i = 0; i < SIZE - 1; i++)
		pthread_join(threads[i], NULL);
}

static char *bytes_of(unsigned int rank, size_t length)
{
	char *data = malloc(length);
	size_t i;

	for (i = 0; i < length; i++)
		data[i] = (char)(i * 31 + rank * 7);
	return data;
}

static void broadcast(struct weir_group *group, unsigned int rank)
{
	char *want = bytes_of(9, BYTES), *data = rank ? calloc(1, BYTES) : bytes_of(9, BYTES);
	int i;

	for (i = 0; i < 5; i++)
		assert_int_equal(weir_group_broadcast(group, data, BYTES, TIMEOUT_NS), 0);
	assert_memory_equal(data, want, BYTES);
	assert_int_equal(weir_group_culprit(group), -1);
	free(want);
	free(data);
}

static void all_gather(struct weir_group *group, unsigned int rank)
{
	char *data = bytes_of(rank, BYTES), *all = malloc(SIZE * BYTES);
	unsigned int i;

	assert_int_equal(weir_group_all_gather(group, data, BYTES, all, TIMEOUT_NS), 0);
	for (i = 0; i < SIZE; i++) {
		char *want = bytes_of(i, BYTES);

		assert_memory_equal(all + i * BYTES, want, BYTES);
		free(want);
	}
	free(data);
	free(all);
}

static void reduce_scatter(struct weir_group *group, unsigned int rank)
{
	enum { COUNT = 1000 };
	double data[SIZE * COUNT], part[COUNT];
	unsigned int i;

	for (i = 0; i < SIZE * COUNT; i++)
		data[i] = i + rank * 0.5;
	assert_int_equal(weir_group_reduce_scatter(group, data, part, COUNT, WEIR_GROUP_F64,
						   TIMEOUT_NS), 0);
	for (i = 0; i < COUNT; i++)
		assert_true(part[i] == (rank * COUNT + i) * SIZE + 0.5 * (0 + 1 + 2 + 3));
}

static void one_is_missing(struct weir_group *group, unsigned int rank)
{
	char *all = malloc(SIZE * 8), data[8] = { 0 };

	if (!rank) {
		assert_int_equal(weir_group_gather(group, data, 8, all, TIMEOUT_NS), -ECONNRESET);
		assert_int_equal(weir_group_culprit(group), 2);
		assert_int_equal(weir_group_broadcast(group, data, 8, TIMEOUT_NS), -ECONNRESET);
	} else if (rank != 2) {
		assert_int_equal(weir_group_gather(group, data, 8, NULL, TIMEOUT_NS), 0);
	}
	free(all);
}

static void what_the_hub_has_reaches_all(void **state)
{
	(void)state;
	all_do(broadcast);
}

static void what_each_has_reaches_all(void **state)
{
	(void)state;
	all_do(all_gather);
}

static void numbers_are_added_up_and_shared_out(void **state)
{
	(void)state;
	all_do(reduce_scatter);
}

static void who_is_gone_is_named(void **state)
{
	(void)state;
	all_do(one_is_missing);
}

static int use_bitmap(void **state)
{
	(void)state;
	mode = WEIR_EXCHANGE_BITMAP;
	return 0;
}

static int use_imm(void **state)
{
	(void)state;
	mode = WEIR_EXCHANGE_IMM;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_hub_has_reaches_all),
		cmocka_unit_test(what_each_has_reaches_all),
		cmocka_unit_test(numbers_are_added_up_and_shared_out),
		cmocka_unit_test(who_is_gone_is_named),
	};
	int failed = cmocka_run_group_tests_name("bitmaps", tests, use_bitmap, NULL);

	return failed + cmocka_run_group_tests_name("immediates", tests, use_imm, NULL);
}
