/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib exchange; devices: softnic rxe; timeout: 180 */
/* Exchanges with both ends in one process, in separate threads where both must move. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"

#define TIMEOUT_NS (60 * SECOND_NS)

extern char **environ;

struct exchange_pair {
	struct weir_exchange *a, *b; /* a has connected, b was accepted */
};

struct exchange_meeting {
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	int rc;
};

static void *accept_one(void *arg)
{
	struct exchange_meeting *m = arg;

	m->rc = weir_exchange_accept(m->listener, TIMEOUT_NS, &m->x, NULL);
	return NULL;
}

static struct weir_exchange_listener *listen_with(struct weir_exchange_options *options)
{
	struct weir_exchange_listener *listener;
	struct weir_error error = { "" };
	char address[80];

	options->size = sizeof(*options);
	options->key = fixture_key();
	options->mode = fixture_mode;
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	if (weir_exchange_listen(address, options, &listener, &error))
		fail_msg("cannot listen: %s", error.text);
	return listener;
}

static struct exchange_pair pair_of(struct weir_exchange_options a, struct weir_exchange_options b)
{
	struct exchange_meeting m = { .listener = listen_with(&b) };
	struct weir_error error = { "" };
	pthread_t thread;
	struct exchange_pair pair;

	a.size = sizeof(a);
	a.key = fixture_key();
	a.mode = fixture_mode;
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &m), 0);
	if (weir_exchange_connect(weir_exchange_address(m.listener), &a, &pair.a, &error))
		fail_msg("cannot connect: %s", error.text);
	pthread_join(thread, NULL);
	assert_int_equal(m.rc, 0);
	pair.b = m.x;
	weir_exchange_unlisten(m.listener);
	return pair;
}

static void pair_close(struct exchange_pair *pair)
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

static void a_message_put_is_got(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });

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

/* Length and bytes of a message follow from its number. */
static size_t message_fill(uint32_t number, char *data)
{
	uint64_t seed = number + 1;
	size_t length = 4 + weir_rng_next(&seed) % (MESSAGE_MAX - 4);

	memset(data, (int)(number * 7), length);
	memcpy(data, &number, 4);
	return length;
}

struct exchange_flood {
	struct weir_exchange *x;
	uint32_t count;
	bool sleepy;
	int rc;
};

static void *send_flood(void *arg)
{
	struct exchange_flood *f = arg;
	char data[MESSAGE_MAX];
	uint32_t i;

	for (i = 0; i < f->count && !f->rc; i++) {
		size_t length = message_fill(i, data);

		f->rc = weir_exchange_put(f->x, data, length, WEIR_EXCHANGE_FOREVER, NULL);
		if (!f->rc && f->sleepy && weir_rng_next(&(uint64_t){ i + 1 }) % 16 == 0) {
			f->rc = weir_exchange_flush(f->x, TIMEOUT_NS);
			usleep(weir_rng_next(&(uint64_t){ i + 9 }) % 2000);
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
		if (sleepy && weir_rng_next(&(uint64_t){ i + 5 }) % 16 == 0)
			usleep(weir_rng_next(&(uint64_t){ i + 7 }) % 2000);
	}
	assert_int_equal(weir_exchange_get(x, got, sizeof(got), &length, TIMEOUT_NS), -ENOENT);
}

static void flood_through(unsigned int slots, size_t slot_bytes, uint32_t count, bool sleepy_sender,
			  bool sleepy_taker)
{
	const struct weir_exchange_options options = { .slots = slots, .slot_bytes = slot_bytes };
	struct exchange_pair pair = pair_of(options, options);
	struct exchange_flood flood = { .x = pair.a, .count = count, .sleepy = sleepy_sender };
	struct weir_exchange_info info;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_flood, &flood), 0);
	take_flood(pair.b, count, sleepy_taker);
	pthread_join(thread, NULL);
	assert_int_equal(flood.rc, 0);
	weir_exchange_info(pair.a, &info, sizeof(info));
	assert_int_equal(info.arrived, info.put);
	assert_int_equal(info.released, info.put);
	weir_exchange_info(pair.b, &info, sizeof(info));
	assert_true(info.taken >= count);
	assert_int_equal(info.put, 0);
	pair_close(&pair);
}

static void *take_all_and_leave(void *arg)
{
	struct weir_exchange *x = arg;
	char got[8];
	size_t length;

	while (!weir_exchange_get(x, got, sizeof(got), &length, TIMEOUT_NS))
		;
	weir_exchange_close(x);
	return NULL;
}

static void a_receiver_may_leave_after_taking_everything(void **state)
{
	struct weir_exchange_info info;
	struct exchange_pair pair;
	pthread_t thread;
	int i;

	(void)state;
	for (i = 0; i < fixture_rounds(30); i++) {
		pair = pair_of((struct weir_exchange_options){ 0 },
			       (struct weir_exchange_options){ 0 });
		assert_int_equal(pthread_create(&thread, NULL, take_all_and_leave, pair.b), 0);
		put_all(pair.a, "last", 5);
		assert_int_equal(weir_exchange_finish(pair.a, TIMEOUT_NS), 0);
		weir_exchange_info(pair.a, &info, sizeof(info));
		assert_int_equal(info.arrived, 1);
		pthread_join(thread, NULL);
		weir_exchange_close(pair.a);
	}
}

static void all_messages_come_once_and_in_order(void **state)
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

static void slots_are_filled_and_read_where_they_are(void **state)
{
	const struct weir_exchange_options options = { .slots = 8, .slot_bytes = 100 };
	struct exchange_pair pair = pair_of(options, options);
	struct weir_exchange_slot slots[9], got[9];
	int i, n;

	(void)state;
	assert_int_equal(weir_exchange_acquire(pair.a, slots, 9, 0), 8);
	assert_int_equal(weir_exchange_acquire(pair.a, slots + 8, 1, 0), -EAGAIN);
	assert_int_equal(weir_exchange_abandon(pair.a, slots + 6, 2), 0);
	assert_int_equal(weir_exchange_abandon(pair.a, slots + 7, 1), -EINVAL);
	for (i = 0; i < 6; i++) {
		memset(slots[i].data, i, 100);
		slots[i].length = 10 + i;
		slots[i].last = i % 2;
	}
	slots[5].length = 101;
	assert_int_equal(weir_exchange_commit(pair.a, slots, 6), -EMSGSIZE);
	slots[5].length = 15;
	slots[6] = slots[0];
	assert_int_equal(weir_exchange_commit(pair.a, slots, 7), -EINVAL);
	assert_int_equal(weir_exchange_commit(pair.a, slots, 6), 0);
	assert_int_equal(weir_exchange_commit(pair.a, slots, 6), -EINVAL);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	for (n = 0; n < 6; n += i) {
		i = weir_exchange_take(pair.b, got + n, 9 - n, TIMEOUT_NS);
		assert_true(i > 0);
	}
	for (i = 0; i < 6; i++) {
		assert_int_equal(got[i].length, 10 + i);
		assert_int_equal(got[i].last, i % 2);
		assert_int_equal(((char *)got[i].data)[9], i);
	}
	assert_int_equal(weir_exchange_take(pair.b, got, 9, 0), -EAGAIN);
	assert_int_equal(weir_exchange_release(pair.b, got, 6), 0);
	assert_int_equal(weir_exchange_release(pair.b, got, 1), -EINVAL);
	assert_int_equal(weir_exchange_release(pair.b, &(struct weir_exchange_slot){ .number = 8 },
					       1),
			 -EINVAL);
	pair_close(&pair);
}

static unsigned int acquire_all(struct weir_exchange *x, struct weir_exchange_slot *slots,
				unsigned int max)
{
	uint64_t timeout_ns = TIMEOUT_NS; /* of the first attempt */
	unsigned int count = 0;
	int n = 0;

	while (count < max) {
		n = weir_exchange_acquire(x, slots + count, max - count, timeout_ns);
		if (n < 0)
			break;
		count += (unsigned int)n;
		timeout_ns = 0;
	}
	assert_true(count);
	assert_true(count == max || n == -EAGAIN);
	return count;
}

/* The send queue is shorter than a large pool, and still has room for all acquired slots. */
static void all_slots_acquired_can_be_committed(void **state)
{
	const unsigned int most = fixture_mode == WEIR_EXCHANGE_IMM ? 4096 : 16384;
	const struct weir_exchange_options options = { .slots = most, .slot_bytes = 64 };
	struct weir_exchange_slot *slots = calloc(most, sizeof(*slots));
	struct exchange_pair pair = pair_of(options, options);
	unsigned int count, i, round;

	(void)state;
	for (round = 0; round < 2; round++) {
		count = acquire_all(pair.a, slots, most) - 1;
		assert_int_equal(weir_exchange_abandon(pair.a, slots + count, 1), 0);
		for (i = 0; i < count; i++) {
			memcpy(slots[i].data, &i, sizeof(i));
			slots[i].length = sizeof(i);
		}
		assert_int_equal(weir_exchange_commit(pair.a, slots, count), 0);
		assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
		for (i = 0; i < count; i++)
			expect(pair.b, &i, sizeof(i));
	}
	free(slots);
	pair_close(&pair);
}

static void a_full_pool_takes_part_of_a_message_and_then_the_rest(void **state)
{
	const struct weir_exchange_options options = { .slots = 3, .slot_bytes = 100 };
	struct exchange_pair pair = pair_of(options, options);
	char data[500], got[500];
	size_t done, more, length;
	int rc;

	(void)state;
	memset(data, 'x', sizeof(data));
	assert_int_equal(weir_exchange_put(pair.a, data, 500, 0, &done), -EAGAIN);
	assert_int_equal(done, 300);
	assert_int_equal(weir_exchange_finish(pair.a, 0), -EINVAL);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	/* Received parts make room for the rest, even if a get() waits only briefly. */
	while ((rc = weir_exchange_put(pair.a, data + done, 500 - done, 1000000, &more))) {
		assert_int_equal(rc, -ETIMEDOUT);
		done += more;
		assert_int_equal(weir_exchange_get(pair.b, got, 500, &length, 1000000), -ETIMEDOUT);
	}
	assert_int_equal(done + more, 500);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	assert_int_equal(weir_exchange_get(pair.b, got, 500, &length, TIMEOUT_NS), 0);
	assert_int_equal(length, 500);
	assert_memory_equal(got, data, 500);
	pair_close(&pair);
}

#define PARTS_MAX 500

/* Sends an endless message until stopped. */
struct trickle {
	struct weir_exchange *x;
	atomic_bool is_over;
	unsigned int parts;
	int rc;
};

static void *send_trickle(void *arg)
{
	struct trickle *t = arg;
	struct weir_exchange_slot slot;

	do {
		t->rc = weir_exchange_acquire(t->x, &slot, 1, TIMEOUT_NS) == 1 ? 0 : -1;
		slot.length = 1;
		*(char *)slot.data = 'x';
		slot.last = t->is_over || t->parts == PARTS_MAX;
		if (!t->rc)
			t->rc = weir_exchange_commit(t->x, &slot, 1);
		if (!t->rc)
			t->rc = weir_exchange_flush(t->x, TIMEOUT_NS);
		t->parts++;
		usleep(20000);
	} while (!t->rc && !slot.last);
	return NULL;
}

/* Each part arrives before the timeout, and belongs to the message. */
static void a_message_that_comes_slowly_is_got_by_the_deadline_or_later(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	struct trickle trickle = { .x = pair.a };
	char got[PARTS_MAX + 1];
	size_t length;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, send_trickle, &trickle), 0);
	assert_int_equal(weir_exchange_get(pair.b, got, sizeof(got), &length, SECOND_NS / 5),
			 -ETIMEDOUT);
	trickle.is_over = true;
	assert_int_equal(weir_exchange_get(pair.b, got, sizeof(got), &length, TIMEOUT_NS), 0);
	pthread_join(thread, NULL);
	assert_int_equal(trickle.rc, 0);
	assert_in_range(trickle.parts, 1, PARTS_MAX);
	assert_int_equal(length, trickle.parts);
	pair_close(&pair);
}

#define FINISH_NS SECOND_NS

struct exchange_late {
	struct weir_exchange *x;
	uint64_t gave_ns;
};

/* Releases half a second late, then no more. */
static void *give_late(void *arg)
{
	struct weir_exchange_slot slot;
	struct exchange_late *l = arg;

	usleep(500000);
	l->gave_ns = now_ns();
	if (weir_exchange_take(l->x, &slot, 1, TIMEOUT_NS) == 1)
		weir_exchange_release(l->x, &slot, 1);
	return NULL;
}

/*
 * Return: ns from the first room for the end slot to the timeout of finish(); 0: timeout before
 * room.
 */
static uint64_t finish_late(void)
{
	const struct weir_exchange_options options = { .slots = 1 };
	struct exchange_pair pair = pair_of(options, options);
	struct exchange_late late = { .x = pair.b };
	pthread_t thread;
	uint64_t end_ns;

	put_all(pair.a, "x", 1);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	assert_int_equal(pthread_create(&thread, NULL, give_late, &late), 0);
	assert_int_equal(weir_exchange_finish(pair.a, FINISH_NS), -ETIMEDOUT);
	end_ns = now_ns();
	pthread_join(thread, NULL);
	pair_close(&pair);
	return end_ns > late.gave_ns ? end_ns - late.gave_ns : 0;
}

/* Both waits count against one timeout. A busy machine may add delay. */
static void finish_keeps_a_single_deadline(void **state)
{
	uint64_t late_ns = 0;
	int tries = 30;

	(void)state;
	while (tries-- && (!late_ns || late_ns >= FINISH_NS))
		late_ns = finish_late();
	assert_in_range(late_ns, 1, FINISH_NS - 1);
}

struct finish {
	struct weir_exchange *x;
	_Atomic bool is_done;
	int rc;
};

static void *finish_one(void *arg)
{
	struct finish *f = arg;

	f->rc = weir_exchange_finish(f->x, TIMEOUT_NS);
	f->is_done = true;
	return NULL;
}

static void expect_end(struct weir_exchange *x)
{
	struct weir_exchange_slot slot;

	assert_int_equal(weir_exchange_take(x, &slot, 1, TIMEOUT_NS), 0);
}

static void both_ends_may_finish_at_once(void **state)
{
	const struct weir_exchange_options options = { 0 };
	struct finish a;
	pthread_t thread;
	struct exchange_pair pair;
	int i;

	(void)state;
	for (i = 0; i < fixture_rounds(20); i++) {
		pair = pair_of(options, options);
		put_all(pair.a, "to b", 5);
		assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
		expect(pair.b, "to b", 5);
		a = (struct finish){ .x = pair.a };
		assert_int_equal(pthread_create(&thread, NULL, finish_one, &a), 0);
		assert_int_equal(weir_exchange_finish(pair.b, TIMEOUT_NS), 0);
		pthread_join(thread, NULL);
		assert_int_equal(a.rc, 0);
		expect_end(pair.a);
		expect_end(pair.b);
		pair_close(&pair);
	}
}

/*
 * b's finish() completes once a has taken everything from b, although b has not taken everything
 * from a. a's finish() waits for b's last take.
 */
static void finish_acknowledges_the_end_only_behind_untaken_slots(void **state)
{
	const struct weir_exchange_options options = { 0 };
	struct exchange_pair pair = pair_of(options, options);
	struct finish a = { .x = pair.a };
	pthread_t thread;

	(void)state;
	put_all(pair.a, "late", 4);
	assert_int_equal(pthread_create(&thread, NULL, finish_one, &a), 0);
	assert_int_equal(weir_exchange_finish(pair.b, TIMEOUT_NS), 0);
	assert_false(a.is_done);
	expect(pair.b, "late", 4);
	expect_end(pair.b);
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, 0);
	expect_end(pair.a);
	pair_close(&pair);
}

static void a_message_too_long_is_dropped_and_the_next_is_got(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	char got[4];
	size_t length;

	(void)state;
	put_all(pair.a, "too long", 8);
	put_all(pair.a, "fits", 4);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	assert_int_equal(weir_exchange_get(pair.b, got, 4, &length, TIMEOUT_NS), -EMSGSIZE);
	assert_int_equal(length, 8);
	expect(pair.b, "fits", 4);
	pair_close(&pair);
}

/* A waiter on the descriptor misses nothing. */
static void a_descriptor_tells_when_there_is_something(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	struct exchange_flood flood = { .x = pair.a,
					.count = (uint32_t)fixture_rounds(300),
					.sleepy = true };
	struct pollfd fd = { .fd = weir_exchange_fd(pair.b), .events = POLLIN };
	struct weir_exchange_slot slots[8];
	uint32_t taken = 0;
	pthread_t thread;
	int n;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, send_flood, &flood), 0);
	for (;;) {
		n = weir_exchange_take(pair.b, slots, 8, 0);
		if (!n)
			break;
		if (n > 0) {
			assert_int_equal(weir_exchange_release(pair.b, slots, (unsigned int)n), 0);
			taken += (uint32_t)n;
			continue;
		}
		assert_int_equal(n, -EAGAIN);
		n = weir_exchange_process(pair.b);
		assert_true(n >= 0);
		if (!n)
			assert_int_equal(poll(&fd, 1, 60000), 1);
	}
	pthread_join(thread, NULL);
	assert_int_equal(flood.rc, 0);
	assert_int_equal(taken, flood.count);
	pair_close(&pair);
}

static void an_abandoned_slot_wakes_a_starved_sender(void **state)
{
	const struct weir_exchange_options options = { .slots = 1 };
	struct exchange_pair pair = pair_of(options, options);
	struct weir_exchange_slot slot;
	size_t done;

	(void)state;
	assert_int_equal(weir_exchange_acquire(pair.a, &slot, 1, TIMEOUT_NS), 1);
	assert_int_equal(weir_exchange_put(pair.a, "x", 1, 0, &done), -EAGAIN);
	assert_int_equal(weir_exchange_process(pair.a), 0);
	assert_int_equal(weir_exchange_abandon(pair.a, &slot, 1), 0);
	assert_int_equal(weir_exchange_process(pair.a), 1);
	assert_int_equal(weir_exchange_put(pair.a, "x", 1, 0, &done), 0);
	pair_close(&pair);
}

/* Asks after each message without waiting; the send queue must not fill up. */
static void asking_without_waiting_costs_nothing(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	uint32_t i;
	size_t done;
	int rc;

	(void)state;
	for (i = 0; i < 256; i++) {
		assert_int_equal(weir_exchange_put(pair.a, &i, sizeof(i), 0, &done), 0);
		rc = weir_exchange_flush(pair.a, 0);
		assert_true(!rc || rc == -EAGAIN);
		assert_true(weir_exchange_process(pair.a) >= 0);
	}
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	for (i = 0; i < 256; i++)
		expect(pair.b, &i, sizeof(i));
	pair_close(&pair);
}

/* After a request to be woken, calls post no bitmap reads. */
static void a_peer_to_be_woken_reads_no_bitmaps(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	struct pollfd fd = { .fd = weir_exchange_fd(pair.b), .events = POLLIN };
	struct weir_exchange_info before, after;
	struct weir_exchange_slot slot;
	int i;

	(void)state;
	assert_int_equal(weir_exchange_take(pair.b, &slot, 1, 0), -EAGAIN);
	do {
		assert_int_equal(weir_exchange_process(pair.b), 0);
	} while (poll(&fd, 1, 100));
	weir_exchange_info(pair.b, &before, sizeof(before));
	for (i = 0; i < 100; i++)
		assert_int_equal(weir_exchange_take(pair.b, &slot, 1, 0), -EAGAIN);
	weir_exchange_info(pair.b, &after, sizeof(after));
	assert_in_range(after.bitmap_reads - before.bitmap_reads, 0,
			2); /* one was in flight on a slow wire */
	put_all(pair.a, "hello", 5);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	expect(pair.b, "hello", 5);
	pair_close(&pair);
}

/*
 * A taker that holds most slots and waits for more, and a sender that waits for room, do not
 * block each other.
 */
static void a_waiting_taker_reports_even_a_little_room(void **state)
{
	const unsigned int count = 8;
	struct exchange_pair pair = pair_of((struct weir_exchange_options){ .slots = count },
					    (struct weir_exchange_options){ .slots = count });
	struct pollfd fd = { .fd = weir_exchange_fd(pair.a), .events = POLLIN };
	struct weir_exchange_slot slots[8];
	unsigned int i, held = 0;
	int n;

	(void)state;
	for (i = 0; i < count; i++)
		put_all(pair.a, &i, sizeof(i));
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	while (held < count) {
		n = weir_exchange_take(pair.b, &slots[held], count - held, TIMEOUT_NS);
		assert_true(n > 0);
		held += (unsigned int)n;
	}
	do
		assert_int_equal(weir_exchange_acquire(pair.a, &slots[0], 1, 0), -EAGAIN);
	while (weir_exchange_process(pair.a) || poll(&fd, 1, 100));
	assert_int_equal(weir_exchange_release(pair.b, &slots[7], 1), 0);
	assert_int_equal(weir_exchange_process(pair.b), 0);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	put_all(pair.a, "room", 4);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	expect(pair.b, "room", 4);
	pair_close(&pair);
}

/* Waits on the descriptor for a message and takes it. */
static struct weir_exchange_slot await_one(struct weir_exchange *x)
{
	struct pollfd fd = { .fd = weir_exchange_fd(x), .events = POLLIN };
	struct weir_exchange_slot slot;
	int n;

	while ((n = weir_exchange_take(x, &slot, 1, 0)) != 1) {
		assert_int_equal(n, -EAGAIN);
		n = weir_exchange_process(x);
		assert_true(n >= 0);
		if (!n)
			assert_int_equal(poll(&fd, 1, 60000), 1);
	}
	return slot;
}

/* Waits until the doorbell has reached the peer and the bitmap read behind it is back. */
static void await_rung(struct weir_exchange *x, unsigned int heard)
{
	struct weir_exchange_info info;

	do {
		assert_int_equal(weir_exchange_process(x), 0);
		usleep(1000); /* slow puts */
		weir_exchange_info(x, &info, sizeof(info));
	} while (info.completions < info.bitmap_reads + heard);
}

/*
 * Return: whether each of @count lone slots got its own notice without further action of the
 * sender.
 */
static bool are_told_of_alone(const struct exchange_pair *pair, unsigned int count)
{
	struct pollfd fd = { .fd = weir_exchange_fd(pair->b), .events = POLLIN };
	struct weir_exchange_slot slot;
	unsigned int i;

	for (i = 0; i < count; i++) {
		await_rung(pair->b, i);
		put_all(pair->a, &i, sizeof(i));
		while (weir_exchange_take(pair->b, &slot, 1, 0) != 1)
			if (!weir_exchange_process(pair->b) && !poll(&fd, 1, 5000))
				return false;
		assert_memory_equal(slot.data, &i, sizeof(i));
		assert_int_equal(weir_exchange_release(pair->b, &slot, 1), 0);
	}
	return true;
}

/*
 * A lone slot for a waiting peer takes a single work request, and no bitmap read. If a bitmap
 * read took long because the machine stood still, notices are shared.
 */
static void a_lone_slot_gets_its_own_notice(void **state)
{
	const unsigned int count = 64; /* allowance of a doorbell */
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	struct weir_exchange_info sender, receiver;
	int tries = 10;

	(void)state;
	while (!are_told_of_alone(&pair, count)) {
		assert_true(--tries);
		pair_close(&pair);
		pair = pair_of((struct weir_exchange_options){ 0 },
			       (struct weir_exchange_options){ 0 });
	}
	weir_exchange_info(pair.a, &sender, sizeof(sender));
	weir_exchange_info(pair.b, &receiver, sizeof(receiver));
	assert_int_equal(sender.imm_writes, count);
	assert_int_equal(sender.writes, count);
	assert_int_equal(sender.bitmap_reads, 0);
	assert_int_equal(sender.wakeups, 0);
	assert_int_equal(receiver.wakeups, 1);
	assert_int_equal(receiver.bitmap_reads, 1);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	put_all(pair.a, "on", 2); /* the allowance is used up: the peer rings again */
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	expect(pair.b, "on", 2);
	pair_close(&pair);
}

/* Many slots put at once share a notice; a flush also notifies of slots waiting to be shown. */
static void many_slots_share_a_notice(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ 0 }, (struct weir_exchange_options){ 0 });
	struct weir_exchange_info sender, receiver;
	struct weir_exchange_slot slots[10];
	unsigned int i;

	(void)state;
	await_rung(pair.b, 0);
	assert_int_equal(weir_exchange_acquire(pair.a, slots, 10, TIMEOUT_NS), 10);
	for (i = 0; i < 10; i++) {
		memcpy(slots[i].data, &i, sizeof(i));
		slots[i].length = sizeof(i);
	}
	assert_int_equal(weir_exchange_commit(pair.a, slots, 10), 0);
	for (i = 0; i < 10; i++) {
		slots[0] = await_one(pair.b);
		assert_memory_equal(slots[0].data, &i, sizeof(i));
		assert_int_equal(weir_exchange_release(pair.b, &slots[0], 1), 0);
	}
	weir_exchange_info(pair.a, &sender, sizeof(sender));
	weir_exchange_info(pair.b, &receiver, sizeof(receiver));
	assert_int_equal(sender.imm_writes, 1);
	assert_int_equal(sender.bitmap_reads + sender.wakeups, 0);
	assert_int_equal(receiver.bitmap_reads, 1);
	for (i = 0; i < 10; i++)
		put_all(pair.a, &i, sizeof(i));
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	for (i = 0; i < 10; i++) {
		slots[0] = await_one(pair.b);
		assert_memory_equal(slots[0].data, &i, sizeof(i));
		assert_int_equal(weir_exchange_release(pair.b, &slots[0], 1), 0);
	}
	weir_exchange_info(pair.b, &receiver, sizeof(receiver));
	assert_int_equal(receiver.bitmap_reads, 1);
	pair_close(&pair);
}

/* Return: notices sent to a waiting peer for @count small messages in large slots. */
static uint64_t imm_writes_of_small_ones(unsigned int count)
{
	const struct weir_exchange_options options = { .slots = 64, .slot_bytes = 256 << 10 };
	struct exchange_pair pair = pair_of(options, options);
	struct weir_exchange_info sender;
	unsigned int i;

	await_rung(pair.b, 0);
	for (i = 0; i < count; i++)
		put_all(pair.a, &i, sizeof(i));
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	for (i = 0; i < count; i++)
		expect(pair.b, &i, sizeof(i));
	weir_exchange_info(pair.a, &sender, sizeof(sender));
	pair_close(&pair);
	return sender.imm_writes;
}

/* The size of the payload counts, not of the slot. A busy machine may slow the puts. */
static void small_messages_in_large_slots_share_a_notice(void **state)
{
	const unsigned int count = 48;
	uint64_t imm_writes = count;
	int tries = 30;

	(void)state;
	while (tries-- && imm_writes > count / 2)
		imm_writes = imm_writes_of_small_ones(count);
	assert_in_range(imm_writes, 0, count / 2);
}

/* Return: sleeps until four large slots were at the peer. */
static uint64_t sleeps_for_large_ones(void)
{
	const struct weir_exchange_options options = { .slots = 4, .slot_bytes = 4 * MIB };
	struct exchange_pair pair = pair_of(options, (struct weir_exchange_options){ 0 });
	struct weir_exchange_slot slots[4];
	struct weir_exchange_info info;

	assert_int_equal(weir_exchange_acquire(pair.a, slots, 4, TIMEOUT_NS), 4);
	assert_int_equal(weir_exchange_commit(pair.a, slots, 4), 0);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	weir_exchange_info(pair.a, &info, sizeof(info));
	pair_close(&pair);
	return info.sleeps;
}

/*
 * The bitmap read queues behind large writes. If the machine stood still, it may be back at
 * once.
 */
static void a_long_bitmap_read_is_slept_for(void **state)
{
	uint64_t sleeps = 0;
	int tries = 30;

	(void)state;
	while (tries-- && !sleeps)
		sleeps = sleeps_for_large_ones();
	assert_true(sleeps);
}

/* A reused slot precedes a slot used once in the bitmap: it is found first, but comes later. */
static void find_two(bool unordered, const char *first, const char *second)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ .slots = 2 },
			(struct weir_exchange_options){ .slots = 2, .unordered = unordered });
	struct weir_exchange_slot slots[2];
	int n;

	put_all(pair.a, "0", 1);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	while ((n = weir_exchange_take(pair.b, slots, 1, 0)) == -EAGAIN)
		;
	assert_int_equal(n, 1);
	put_all(pair.a, "1", 1);
	assert_int_equal(weir_exchange_release(pair.b, slots, 1), 0);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	put_all(pair.a, "2", 1);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	for (n = 0; n < 2; n++)
		while (weir_exchange_take(pair.b, &slots[n], 1, 0) != 1)
			;
	assert_memory_equal(slots[0].data, first, 1);
	assert_memory_equal(slots[1].data, second, 1);
	pair_close(&pair);
}

static void unordered_slots_are_taken_as_found(void **state)
{
	(void)state;
	find_two(false, "1", "2");
	find_two(true, "2", "1");
}

static void without_order_nothing_is_lost_or_doubled_and_the_end_comes_last(void **state)
{
	const uint32_t count = (uint32_t)fixture_rounds(3000);
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ .slots = 16, .slot_bytes = MESSAGE_MAX },
			(struct weir_exchange_options){ .unordered = true });
	struct exchange_flood flood = { .x = pair.a, .count = count, .sleepy = true };
	bool *seen = calloc(count, sizeof(*seen));
	char want[MESSAGE_MAX], got[MESSAGE_MAX];
	uint32_t i, number;
	pthread_t thread;
	size_t length;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, send_flood, &flood), 0);
	for (i = 0; i < count; i++) {
		assert_int_equal(weir_exchange_get(pair.b, got, sizeof(got), &length, TIMEOUT_NS),
				 0);
		memcpy(&number, got, sizeof(number));
		assert_true(number < count && !seen[number]);
		seen[number] = true;
		assert_int_equal(length, message_fill(number, want));
		assert_memory_equal(got, want, length);
	}
	assert_int_equal(weir_exchange_get(pair.b, got, sizeof(got), &length, TIMEOUT_NS), -ENOENT);
	pthread_join(thread, NULL);
	assert_int_equal(flood.rc, 0);
	free(seen);
	pair_close(&pair);
}

static void without_order_a_message_has_one_slot(void **state)
{
	struct exchange_pair pair =
		pair_of((struct weir_exchange_options){ .slot_bytes = 100 },
			(struct weir_exchange_options){ .unordered = true, .slot_bytes = 100 });
	struct weir_exchange_slot slot;
	char data[101] = "x";

	(void)state;
	assert_int_equal(weir_exchange_put(pair.a, data, 101, WEIR_EXCHANGE_FOREVER, NULL),
			 -EMSGSIZE);
	assert_int_equal(weir_exchange_acquire(pair.a, &slot, 1, 0), 1);
	slot.last = false;
	assert_int_equal(weir_exchange_commit(pair.a, &slot, 1), -EMSGSIZE);
	slot.last = true;
	assert_int_equal(weir_exchange_commit(pair.a, &slot, 1), 0);
	put_all(pair.b, data, 101); /* this direction is ordered */
	assert_int_equal(weir_exchange_flush(pair.b, TIMEOUT_NS), 0);
	expect(pair.a, data, 101);
	pair_close(&pair);
}

/* One of two ends that send to each other; @step: 0 puts, 1 flushes, 2 finishes, 3 has finished */
struct stepped_end {
	struct weir_exchange *x;
	uint32_t put, taken, count;
	int step;
	bool is_over;
};

static bool is_done(const struct stepped_end *e)
{
	return e->step == 3 && e->is_over;
}

/* Return: whether any step was possible. */
static bool send_on(struct stepped_end *e)
{
	size_t done;
	int rc = -EAGAIN;

	switch (e->step) {
	case 0:
		rc = weir_exchange_put(e->x, &e->put, sizeof(e->put), 0, &done);
		e->put += !rc;
		e->step += e->put % 16 == 0 || e->put == e->count;
		break;
	case 1:
		rc = weir_exchange_flush(e->x, 0);
		if (!rc)
			e->step = e->put == e->count ? 2 : 0;
		break;
	case 2:
		rc = weir_exchange_finish(e->x, 0);
		e->step += !rc;
		break;
	}
	assert_true(!rc || rc == -EAGAIN);
	return !rc;
}

static bool take_on(struct stepped_end *e)
{
	struct weir_exchange_slot slot;
	int n = e->is_over ? -EAGAIN : weir_exchange_take(e->x, &slot, 1, 0);

	assert_true(n >= 0 || n == -EAGAIN);
	if (n == 1) {
		assert_memory_equal(slot.data, &e->taken, sizeof(e->taken));
		e->taken++;
		assert_int_equal(weir_exchange_release(e->x, &slot, 1), 0);
	}
	e->is_over |= !n;
	return n >= 0;
}

/* Does all steps now possible; a refused step is retried only when the exchange says so. */
static void go_on(struct stepped_end *e)
{
	bool moved;
	int rc;

	do {
		moved = send_on(e);
		moved |= take_on(e);
		rc = moved ? 1 : weir_exchange_process(e->x);
	} while (rc == 1);
	assert_int_equal(rc, 0);
}

static void two_ends_run_on_descriptors_alone(void **state)
{
	const struct weir_exchange_options options = { .slots = 7, .slot_bytes = 64 };
	struct exchange_pair pair = pair_of(options, options);
	uint32_t count = (uint32_t)fixture_rounds(3000);
	struct stepped_end a = { .x = pair.a, .count = count }, b = { .x = pair.b, .count = count };
	struct pollfd fds[] = {
		{ .fd = weir_exchange_fd(pair.a), .events = POLLIN },
		{ .fd = weir_exchange_fd(pair.b), .events = POLLIN },
	};

	(void)state;
	while (!is_done(&a) || !is_done(&b)) {
		go_on(&a);
		go_on(&b);
		if (!is_done(&a) || !is_done(&b))
			assert_true(poll(fds, 2, 60000) > 0);
	}
	assert_int_equal(a.taken, count);
	assert_int_equal(b.taken, count);
	pair_close(&pair);
}

/* Runs this program as a peer that will be killed: see act(). */
static pid_t spawn(const char *act, const char *address)
{
	char mode_text[2] = { (char)('0' + fixture_mode), '\0' };
	char *argv[] = { "peer", (char *)act, (char *)address, mode_text, NULL };
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	return pid;
}

/* A peer in another process, until killed. */
static int act(char **argv)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .mode = argv[3][0] - '0',
						 .slots = 16 };
	struct weir_exchange *x;
	int i;

	options.key = fixture_key();
	if (weir_exchange_connect(argv[2], &options, &x, NULL))
		return 1;
	for (i = 0; i < 10; i++)
		if (weir_exchange_put(x, &i, sizeof(i), WEIR_EXCHANGE_FOREVER, NULL))
			return 1;
	if (weir_exchange_flush(x, TIMEOUT_NS))
		return 1;
	pause();
	return 1;
}

static struct weir_exchange *with_peer(pid_t *pid)
{
	struct weir_exchange_options options = { .slots = 16 };
	struct weir_exchange_listener *listener = listen_with(&options);
	struct weir_error error = { "" };
	struct weir_exchange *x;

	*pid = spawn("put", weir_exchange_address(listener));
	if (weir_exchange_accept(listener, TIMEOUT_NS, &x, &error))
		fail_msg("nobody: %s", error.text);
	weir_exchange_unlisten(listener);
	return x;
}

static void kill_peer(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The same moment as in arrived_slots_outlive_their_sender(), but the peer closes. */
static void a_peer_that_closes_is_not_said_to_be_lost(void **state)
{
	struct exchange_pair pair = pair_of((struct weir_exchange_options){ 0 },
					    (struct weir_exchange_options){ 0 });
	char got[8];
	size_t length;

	(void)state;
	put_all(pair.a, "one", 4);
	assert_int_equal(weir_exchange_flush(pair.a, TIMEOUT_NS), 0);
	expect(pair.b, "one", 4);
	weir_exchange_close(pair.a);
	assert_int_equal(weir_exchange_get(pair.b, got, sizeof(got), &length, TIMEOUT_NS),
			 -ENOTCONN);
	assert_int_equal(weir_exchange_put(pair.b, "x", 1, WEIR_EXCHANGE_FOREVER, NULL),
			 -ENOTCONN);
	assert_int_equal(weir_exchange_finish(pair.b, TIMEOUT_NS), -ENOTCONN);
	weir_exchange_close(pair.b);
}

static void *close_it(void *x)
{
	weir_exchange_close(x);
	return NULL;
}

static void a_waiting_end_hears_that_its_peer_closes(void **state)
{
	struct exchange_pair pair = pair_of((struct weir_exchange_options){ 0 },
					    (struct weir_exchange_options){ 0 });
	pthread_t thread;
	char got[8];
	size_t length;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, close_it, pair.b), 0);
	assert_int_equal(weir_exchange_get(pair.a, got, sizeof(got), &length, TIMEOUT_NS),
			 -ENOTCONN);
	pthread_join(thread, NULL);
	weir_exchange_close(pair.a);
}

static void arrived_slots_outlive_their_sender(void **state)
{
	struct weir_exchange_info info;
	struct weir_exchange *x;
	size_t length;
	pid_t pid;
	int i, got;

	(void)state;
	x = with_peer(&pid);
	for (i = 0; i < 10; i++) { /* all have arrived */
		assert_int_equal(weir_exchange_get(x, &got, 4, &length, TIMEOUT_NS), 0);
		assert_int_equal(got, i);
	}
	kill_peer(pid);
	assert_int_equal(weir_exchange_get(x, &got, 4, &length, TIMEOUT_NS), -ECONNRESET);
	weir_exchange_info(x, &info, sizeof(info));
	assert_int_equal(info.taken, 10);
	weir_exchange_close(x);
}

static void a_sender_hears_that_its_peer_is_dead(void **state)
{
	struct weir_exchange_info info;
	struct weir_exchange *x;
	size_t done;
	pid_t pid;
	int rc;

	(void)state;
	x = with_peer(&pid);
	do { /* takes nothing */
		rc = weir_exchange_put(x, "x", 1, 0, &done);
	} while (!rc);
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(weir_exchange_flush(x, TIMEOUT_NS), 0);
	kill_peer(pid);
	assert_int_equal(weir_exchange_put(x, "x", 1, WEIR_EXCHANGE_FOREVER, NULL), -ECONNRESET);
	assert_int_equal(weir_exchange_finish(x, TIMEOUT_NS), -ECONNRESET);
	weir_exchange_info(x, &info, sizeof(info));
	assert_int_equal(info.put, 16);
	assert_int_equal(info.arrived, 16);
	assert_int_equal(info.released, 0);
	weir_exchange_close(x);
}

/* Return: the result of connecting to a listener with options @b; a matching connect follows. */
static int refusal_of(struct weir_exchange_options a, struct weir_exchange_options b, char *text)
{
	const struct weir_exchange_options fits = { .size = sizeof(fits),
						    .key = fixture_key(),
						    .mode = fixture_mode,
						    .slots = 1,
						    .slot_bytes = 64 };
	struct exchange_meeting m = { .listener = listen_with(&b) };
	struct weir_error error = { "" };
	struct weir_exchange *x;
	pthread_t thread;
	int rc;

	a.size = sizeof(a);
	a.key = fixture_key();
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &m), 0);
	rc = weir_exchange_connect(weir_exchange_address(m.listener), &a, &x, &error);
	assert_int_equal(weir_exchange_connect(weir_exchange_address(m.listener), &fits, &x, NULL),
			 0);
	pthread_join(thread, NULL);
	assert_int_equal(m.rc, 0);
	weir_exchange_close(x);
	weir_exchange_close(m.x);
	weir_exchange_unlisten(m.listener);
	strcpy(text, error.text);
	return rc;
}

static unsigned int slots_of(struct weir_exchange_options options)
{
	struct exchange_pair pair = pair_of(options, (struct weir_exchange_options){ .slots = 1 });
	struct weir_exchange_info info;

	weir_exchange_info(pair.a, &info, sizeof(info));
	pair_close(&pair);
	return info.slots;
}

static void pools_are_as_large_as_their_memory_lets_them_be(void **state)
{
	struct weir_exchange_options options = { 0 };

	(void)state;
	assert_int_equal(slots_of(options), 256);
	options.slot_bytes = MIB / 16 - 64;
	options.pool_bytes = 40 * MIB / 16;
	assert_int_equal(slots_of(options), 20); /* as many in the mirror of a like pool */
	options.exchanges = 2;
	assert_int_equal(slots_of(options), 10);
	options.exchanges = 100;
	assert_int_equal(slots_of(options), 8);
	options.slots = 3;
	assert_int_equal(slots_of(options), 3);
}

static void a_mismatched_peer_learns_the_reason(void **state)
{
	struct weir_exchange_options a = { .mode = !fixture_mode }, b = { 0 };
	struct weir_exchange *x;
	char text[512];

	(void)state;
	assert_int_equal(refusal_of(a, b, text), -EPROTO);
	assert_non_null(strstr(text, "same mode"));
	a.mode = fixture_mode;
	b.receive_bytes_max = 4096;
	assert_int_equal(refusal_of(a, b, text), -EDQUOT);
	assert_non_null(strstr(text, "256 slots of 4096 bytes"));
	a.slots = WEIR_EXCHANGE_SLOTS_MAX + 1;
	assert_int_equal(weir_exchange_connect("127.0.0.1:1", &a, &x, NULL), -EINVAL);
	a = (struct weir_exchange_options){ .size = sizeof(a), .percent_min = 100 };
	assert_int_equal(weir_exchange_connect("127.0.0.1:1", &a, &x, NULL), -EINVAL);
	a = (struct weir_exchange_options){ .size = sizeof(a),
					    .encryption = WEIR_ENCRYPTION_REQUIRED };
	assert_int_equal(weir_exchange_connect("127.0.0.1:1", &a, &x, NULL), -EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest by_bitmaps[] = {
		cmocka_unit_test(a_lone_slot_gets_its_own_notice),
		cmocka_unit_test(many_slots_share_a_notice),
		cmocka_unit_test(small_messages_in_large_slots_share_a_notice),
		cmocka_unit_test(unordered_slots_are_taken_as_found),
	};
	const struct CMUnitTest on_slow_wires[] = {
		cmocka_unit_test(a_long_bitmap_read_is_slept_for),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_put_is_got),
		cmocka_unit_test(a_receiver_may_leave_after_taking_everything),
		cmocka_unit_test(all_messages_come_once_and_in_order),
		cmocka_unit_test(messages_longer_than_a_slot_come_whole),
		cmocka_unit_test(one_slot_is_enough),
		cmocka_unit_test(a_slow_sender_wakes_the_receiver),
		cmocka_unit_test(a_slow_receiver_wakes_the_sender),
		cmocka_unit_test(slots_are_filled_and_read_where_they_are),
		cmocka_unit_test(all_slots_acquired_can_be_committed),
		cmocka_unit_test(a_full_pool_takes_part_of_a_message_and_then_the_rest),
		cmocka_unit_test(a_message_that_comes_slowly_is_got_by_the_deadline_or_later),
		cmocka_unit_test(finish_keeps_a_single_deadline),
		cmocka_unit_test(both_ends_may_finish_at_once),
		cmocka_unit_test(finish_acknowledges_the_end_only_behind_untaken_slots),
		cmocka_unit_test(a_message_too_long_is_dropped_and_the_next_is_got),
		cmocka_unit_test(a_descriptor_tells_when_there_is_something),
		cmocka_unit_test(an_abandoned_slot_wakes_a_starved_sender),
		cmocka_unit_test(asking_without_waiting_costs_nothing),
		cmocka_unit_test(a_peer_to_be_woken_reads_no_bitmaps),
		cmocka_unit_test(a_waiting_taker_reports_even_a_little_room),
		cmocka_unit_test(two_ends_run_on_descriptors_alone),
		cmocka_unit_test(without_order_nothing_is_lost_or_doubled_and_the_end_comes_last),
		cmocka_unit_test(without_order_a_message_has_one_slot),
		cmocka_unit_test(a_peer_that_closes_is_not_said_to_be_lost),
		cmocka_unit_test(a_waiting_end_hears_that_its_peer_closes),
		cmocka_unit_test(arrived_slots_outlive_their_sender),
		cmocka_unit_test(a_sender_hears_that_its_peer_is_dead),
		cmocka_unit_test(pools_are_as_large_as_their_memory_lets_them_be),
		cmocka_unit_test(a_mismatched_peer_learns_the_reason),
	};

	if (argc == 4)
		return act(argv);
	if (argc == 2 &&
	    cmocka_run_group_tests_name("what slow wires alone show", on_slow_wires, NULL, NULL))
		return 1;
	return cmocka_run_group_tests_name("what bitmaps alone do", by_bitmaps, NULL, NULL) +
	       fixture_run_modes(tests, sizeof(tests) / sizeof(tests[0]));
}
