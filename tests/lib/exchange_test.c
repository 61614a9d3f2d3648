/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exchanges: both ends in one process, in threads of their own where both must move. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define TIMEOUT_NS (60 * SECOND_NS)

struct pair {
	struct weir_exchange *a, *b; /* a has connected, b was accepted */
};

struct meeting {
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	int rc;
};

static enum weir_exchange_mode mode;

static void *accept_one(void *arg)
{
	struct meeting *m = arg;

	m->rc = weir_exchange_accept(m->listener, TIMEOUT_NS, &m->x, NULL);
	return NULL;
}

static struct weir_exchange_listener *listen_with(struct weir_exchange_options *options)
{
	struct weir_exchange_listener *listener;
	struct weir_error error = { "" };
	char address[80];

	options->key = fixture_key();
	options->mode = mode;
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	if (weir_exchange_listen(address, options, &listener, &error))
		fail_msg("cannot listen: %s", error.text);
	return listener;
}

static struct pair pair_of(struct weir_exchange_options a, struct weir_exchange_options b)
{
	struct meeting m = { .listener = listen_with(&b) };
	struct weir_error error = { "" };
	pthread_t thread;
	struct pair pair;

	a.key = fixture_key();
	a.mode = mode;
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &m), 0);
	if (weir_exchange_connect(weir_exchange_address(m.listener), &a, &pair.a, &error))
		fail_msg("cannot connect: %s", error.text);
	pthread_join(thread, NULL);
	assert_int_equal(m.rc, 0);
	pair.b = m.x;
	weir_exchange_unlisten(m.listener);
	return pair;
}

static void pair_close(struct pair *pair)
{
	weir_exchange_close(pair->a);
	weir_exchange_close(pair->b);
}

static void put_all(struct weir_exchange *x, const void *data, size_t length)
{
	assert_int_equal(weir_exchange_put(x, data, length, WEIR_EXCHANGE_FOREVER, NULL), 0);
}

static void expect(struct weir_exchange *x, const void *data, size_t length)
{
	char *got = malloc(length + 1);
	size_t got_length;

	assert_int_equal(weir_exchange_get(x, got, length + 1, &got_length, TIMEOUT_NS), 0);
	assert_int_equal(got_length, length);
	assert_memory_equal(got, data, length);
	free(got);
}

static void what_is_put_is_got(void **state)
{
	struct pair pair = pair_of((struct weir_exchange_options){ 0 },
				   (struct weir_exchange_options){ 0 });

	(void)state;
	put_all(pair.a, "to b", 5);
	put_all(pair.a, "", 0);
	put_all(pair.b, "to a", 5);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	assert_int_equal(weir_exchange_flush(pair.b, TIMEOUT_NS), 0);
	expect(pair.b, "to b", 5);
	expect(pair.b, "", 0);
	expect(pair.a, "to a", 5);
	pair_close(&pair);
}

#define MESSAGE_MAX 1000

/* A message's bytes and length follow from its number. */
static size_t message_fill(uint32_t number, char *data)
{
	uint64_t seed = number + 1;
	size_t length = 4 + random_next(&seed) % (MESSAGE_MAX - 4);

	memset(data, (int)(number * 7), length);
	memcpy(data, &number, 4);
	return length;
}

struct flood {
	struct weir_exchange *x;
	uint32_t count;
	bool sleepy;
	int rc;
};

static void *send_flood(void *arg)
{
	struct flood *f = arg;
	char data[MESSAGE_MAX];
	uint32_t i;

	for (i = 0; i < f->count && !f->rc; i++) {
		size_t length = message_fill(i, data);

		f->rc = weir_exchange_put(f->x, data, length, WEIR_EXCHANGE_FOREVER, NULL);
		if (!f->rc && f->sleepy && random_next(&(uint64_t){ i + 1 }) % 16 == 0) {
			f->rc = weir_exchange_flush(f->x, TIMEOUT_NS);
			usleep(random_next(&(uint64_t){ i + 9 }) % 2000);
		}
	}
	if (f->rc)
		return NULL;
	f->rc = weir_exchange_finish(f->x, TIMEOUT_NS);
	return NULL;
}

static void take_flood(struct weir_exchange *x, uint32_t count, bool sleepy)
{
	char want[MESSAGE_MAX], got[MESSAGE_MAX];
	size_t length, want_length;
	uint32_t i;

	for (i = 0; i < count; i++) {
		want_length = message_fill(i, want);
		assert_int_equal(weir_exchange_get(x, got, sizeof(got), &length, TIMEOUT_NS), 0);
		assert_int_equal(length, want_length);
		assert_memory_equal(got, want, length);
		if (sleepy && random_next(&(uint64_t){ i + 5 }) % 16 == 0)
			usleep(random_next(&(uint64_t){ i + 7 }) % 2000);
	}
	assert_int_equal(weir_exchange_get(x, got, sizeof(got), &length, TIMEOUT_NS), -ENOENT);
}

static void flood_through(unsigned int slots, size_t slot_bytes, uint32_t count, bool sleepy_sender,
			  bool sleepy_taker)
{
	const struct weir_exchange_options options = { .slots = slots, .slot_bytes = slot_bytes };
	struct pair pair = pair_of(options, options);
	struct flood flood = { .x = pair.a, .count = count, .sleepy = sleepy_sender };
	struct weir_exchange_info info;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_flood, &flood), 0);
	take_flood(pair.b, count, sleepy_taker);
	pthread_join(thread, NULL);
	assert_int_equal(flood.rc, 0);
	weir_exchange_info(pair.a, &info);
	assert_int_equal(info.arrived, info.put);
	assert_int_equal(info.released, info.put);
	weir_exchange_info(pair.b, &info);
	assert_true(info.taken >= count);
	assert_int_equal(info.put, 0);
	pair_close(&pair);
}

static void all_that_is_put_comes_once_and_in_order(void **state)
{
	(void)state;
	flood_through(256, 1024, (uint32_t)fixture_rounds(20000), false, false);
}

static void messages_longer_than_a_slot_come_whole(void **state)
{
	(void)state;
	flood_through(7, 64, (uint32_t)fixture_rounds(4000), false, false);
}

static void one_slot_is_enough(void **state)
{
	(void)state;
	flood_through(1, 100, (uint32_t)fixture_rounds(500), false, false);
}

static void a_slow_sender_wakes_the_receiver(void **state)
{
	(void)state;
	flood_through(16, 1024, (uint32_t)fixture_rounds(500), true, false);
}

static void a_slow_receiver_wakes_the_sender(void **state)
{
	(void)state;
	flood_through(16, 1024, (uint32_t)fixture_rounds(500), false, true);
}

static int skip_none(void **state)
{
	(void)state;
	return 0;
}

static int use_bitmap(void **state)
{
	mode = WEIR_EXCHANGE_BITMAP;
	return skip_none(state);
}

static int use_imm(void **state)
{
	mode = WEIR_EXCHANGE_IMM;
	return skip_none(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_got),
		cmocka_unit_test(all_that_is_put_comes_once_and_in_order),
		cmocka_unit_test(messages_longer_than_a_slot_come_whole),
		cmocka_unit_test(one_slot_is_enough),
		cmocka_unit_test(a_slow_sender_wakes_the_receiver),
		cmocka_unit_test(a_slow_receiver_wakes_the_sender),
	};
	int failed = cmocka_run_group_tests_name("bitmaps", tests, use_bitmap, NULL);

	return failed + cmocka_run_group_tests_name("immediates", tests, use_imm, NULL);
}
