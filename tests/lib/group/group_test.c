/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib group; devices: softnic rxe; timeout: 180 */
/* Groups; each member is a thread of this process. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/group.h>

#include "tests/support/libweir_fixture.h"

#define SIZE 4
#define PART 3000 /* bytes; several slots */
#define PATIENCE_NS 120000000000ull

struct member_thread {
	pthread_t thread;
	unsigned int number;
	struct weir_exchange_options options;
	struct weir_exchange_listener *listener;
	void (*work)(struct weir_group *group);
};

static void done(struct weir_group *group)
{
	assert_int_equal(weir_group_wait(group, PATIENCE_NS), 0);
}

static void *run(void *arg)
{
	struct member_thread *m = arg;
	struct weir_group *group;
	struct weir_error error = { "" };
	int status;

	if (m->number == 0)
		status = weir_group_lead(m->listener, SIZE, PATIENCE_NS, &group, &error);
	else
		status = weir_group_join(weir_exchange_address(m->listener), fixture_address(),
					 m->number, SIZE, &m->options, &group, &error);
	if (status)
		print_error("member %u: %s\n", m->number, error.text);
	assert_int_equal(status, 0);
	assert_int_equal(weir_group_member(group), m->number);
	assert_int_equal(weir_group_size(group), SIZE);
	m->work(group);
	weir_group_close(group);
	return NULL;
}

static void together_with(void (*work)(struct weir_group *), enum weir_exchange_mode mode,
			  unsigned int slots)
{
	struct weir_exchange_options options = {
		.size = sizeof(options),
		.mode = mode,
		.slots = slots,
		.slot_bytes = 512,
		.timeout_ns = PATIENCE_NS,
		.key = fixture_key(),
	};
	struct weir_exchange_listener *listener;
	struct member_thread members[SIZE];
	char address[80];
	unsigned int i;

	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), 0);
	for (i = 0; i < SIZE; i++) {
		members[i] = (struct member_thread){
			.number = i, .options = options, .listener = listener, .work = work
		};
		assert_int_equal(pthread_create(&members[i].thread, NULL, run, &members[i]), 0);
	}
	for (i = 0; i < SIZE; i++)
		pthread_join(members[i].thread, NULL);
	weir_exchange_unlisten(listener);
}

static void together(void (*work)(struct weir_group *), enum weir_exchange_mode mode)
{
	together_with(work, mode, 4);
}

static void fill(unsigned char *bytes, unsigned int value)
{
	memset(bytes, (int)value, PART);
}

static void assert_filled(const unsigned char *bytes, unsigned int value)
{
	unsigned int i;

	for (i = 0; i < PART; i++)
		assert_int_equal(bytes[i], value);
}

/* Detects any other order of the sum. */
static void append(void *into, const void *from, size_t length, void *arg)
{
	unsigned char *sum = into;
	const unsigned char *part = from;
	size_t i;

	(void)arg;
	for (i = 0; i < length; i++)
		sum[i] = (unsigned char)(sum[i] * 3 + part[i]);
}

static unsigned int appended(unsigned int part)
{
	unsigned int sum = part, i;

	for (i = 1; i < SIZE; i++)
		sum = (sum * 3 + 10 * i + part) & 255;
	return sum;
}

static void all_operations(struct weir_group *group)
{
	unsigned int me = weir_group_member(group), turn, i;
	unsigned char mine[PART], all[SIZE * PART], sum[PART];

	for (turn = 0; turn < SIZE; turn++) {
		fill(mine, me == turn ? 200 + turn : 0);
		assert_int_equal(weir_group_broadcast(group, turn, mine, PART), 0);
		done(group);
		assert_filled(mine, 200 + turn);
		fill(mine, 10 * turn + me);
		assert_int_equal(weir_group_gather(group, turn, mine, PART, all), 0);
		done(group);
		for (i = 0; me == turn && i < SIZE; i++)
			assert_filled(all + i * PART, 10 * turn + i);
		assert_int_equal(weir_group_all_gather(group, mine, PART, all), 0);
		done(group);
		for (i = 0; i < SIZE; i++)
			assert_filled(all + i * PART, 10 * turn + i);
		for (i = 0; i < SIZE; i++)
			fill(all + i * PART, 10 * me + i);
		assert_int_equal(weir_group_reduce_scatter(group, all, PART, sum, append, NULL), 0);
		done(group);
		assert_filled(sum, appended(me));
		assert_int_equal(weir_group_barrier(group), 0);
		done(group);
	}
	assert_int_equal(weir_group_finish(group), 0);
	done(group);
	assert_int_equal(weir_group_failed(group), -1);
}

static void test_all_operations_with_bitmaps(void **state)
{
	(void)state;
	together(all_operations, WEIR_EXCHANGE_BITMAP);
}

static void test_all_operations_with_immediates(void **state)
{
	(void)state;
	together(all_operations, WEIR_EXCHANGE_IMM);
}

static void send_and_finish(struct weir_group *group)
{
	unsigned char bytes[PART];

	fill(bytes, weir_group_member(group) ? 0 : 7);
	assert_int_equal(weir_group_broadcast(group, 0, bytes, PART), 0);
	done(group);
	assert_filled(bytes, 7);
	assert_int_equal(weir_group_finish(group), 0);
	done(group);
}

/* More slots than can be acquired at once. */
static void test_a_group_of_many_slots_finishes(void **state)
{
	(void)state;
	together_with(send_and_finish, WEIR_EXCHANGE_BITMAP, 4097);
}

static pthread_barrier_t all_have_met;

/* Member 1 leaves after the setup: members waiting for it get an error, each time. */
static void one_leaves(struct weir_group *group)
{
	unsigned char mine[1] = { 0 }, all[SIZE];

	assert_int_equal(weir_group_barrier(group), 0);
	done(group);
	pthread_barrier_wait(&all_have_met);
	if (weir_group_member(group) == 1)
		return;
	assert_int_equal(weir_group_all_gather(group, mine, 1, all), 0);
	assert_int_equal(weir_group_wait(group, PATIENCE_NS), -ENOTCONN);
	assert_in_range(weir_group_failed(group), 0, SIZE - 1);
	assert_int_equal(weir_group_barrier(group), -ECONNRESET);
	assert_int_equal(weir_group_wait(group, 0), -ENOTCONN);
}

static void test_a_member_that_leaves_ends_the_group(void **state)
{
	(void)state;
	pthread_barrier_init(&all_have_met, NULL, SIZE);
	together(one_leaves, WEIR_EXCHANGE_BITMAP);
	pthread_barrier_destroy(&all_have_met);
}

static void nonsense(struct weir_group *group)
{
	unsigned char mine[1] = { 0 };

	assert_int_equal(weir_group_broadcast(group, SIZE, mine, 1), -EINVAL);
	assert_int_equal(weir_group_broadcast(group, 0, NULL, 1), -EINVAL);
	assert_int_equal(weir_group_gather(group, weir_group_member(group), mine, 1, NULL),
			 -EINVAL);
	assert_int_equal(weir_group_reduce_scatter(group, mine, 0, NULL, NULL, NULL), -EINVAL);
	assert_null(weir_group_exchange(group, SIZE));
	assert_null(weir_group_exchange(group, weir_group_member(group)));
	assert_int_equal(weir_group_barrier(group), 0);
	assert_int_equal(weir_group_barrier(group), -EBUSY);
	done(group);
	assert_int_equal(weir_group_finish(group), 0);
	done(group);
}

static void test_nonsense_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	together(nonsense, WEIR_EXCHANGE_BITMAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_operations_with_bitmaps),
		cmocka_unit_test(test_all_operations_with_immediates),
		cmocka_unit_test(test_a_group_of_many_slots_finishes),
		cmocka_unit_test(test_a_member_that_leaves_ends_the_group),
		cmocka_unit_test(test_nonsense_is_refused_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
