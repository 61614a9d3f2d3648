/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux ring; suites: wire */
/* The byte ring: bytes come out as they went in, and corrupt positions are detected. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/mux/ring.h"

#define SIZE 4096u
#define TELLS (1u << 19) /* bytes; a wake-up for each 16 */
#define TOTAL (1u << 22)

struct ring_pair {
	struct weir_mux_ring ring;
	char bytes[SIZE];
	struct weir_mux_ring_end writer, reader;
};

static struct ring_pair *pair_new(void)
{
	struct ring_pair *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);

	assert_non_null(p);
	memset(p, 0, sizeof(*p));
	p->writer = (struct weir_mux_ring_end){ &p->ring, p->bytes, SIZE, 0 };
	p->reader = p->writer;
	return p;
}

static void a_full_ring_has_no_room_and_an_empty_one_nothing(void **state)
{
	struct ring_pair *p = pair_new();
	char data[SIZE] = { 1 };
	uint32_t room;
	uint64_t tail;

	(void)state;
	assert_int_equal(weir_mux_ring_readable(&p->reader, &tail), 0);
	assert_int_equal(tail, 0);
	assert_int_equal(weir_mux_ring_writable(&p->writer, &room), 0);
	assert_int_equal(room, SIZE);
	weir_mux_ring_write(&p->writer, data, SIZE);
	assert_int_equal(weir_mux_ring_readable(&p->reader, &tail), 0);
	assert_int_equal(tail, 0); /* not published */
	weir_mux_ring_publish_tail(&p->writer);
	assert_int_equal(weir_mux_ring_readable(&p->reader, &tail), 0);
	assert_int_equal(tail, SIZE);
	assert_int_equal(weir_mux_ring_writable(&p->writer, &room), 0);
	assert_int_equal(room, 0);
	free(p);
}

/* Positions beyond the ring, before the last read, or about to wrap. */
static void impossible_positions_are_detected(void **state)
{
	static const uint64_t lies[] = { SIZE + 1, 2 * SIZE, UINT64_MAX, 1ull << 32, 1ull << 63 };
	struct ring_pair *p = pair_new();
	uint64_t tail = 77;
	uint32_t room = 77;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		p->ring.tail = p->reader.position + lies[i];
		p->ring.head = p->writer.position - lies[i];
		assert_int_equal(weir_mux_ring_readable(&p->reader, &tail), -EPROTO);
		assert_int_equal(weir_mux_ring_writable(&p->writer, &room), -EPROTO);
	}
	p->ring.head = p->writer.position + 1;
	assert_int_equal(weir_mux_ring_writable(&p->writer, &room), -EPROTO);
	p->reader.position = 10;
	p->ring.tail = 9;
	assert_int_equal(weir_mux_ring_readable(&p->reader, &tail), -EPROTO);
	assert_int_equal(tail, 77);
	assert_int_equal(room, 77);
	free(p);
}

static unsigned char byte_at(uint64_t position)
{
	return (unsigned char)(position * 2654435761u >> 13);
}

static void *write_all(void *arg)
{
	struct weir_mux_ring_end *end = arg;
	unsigned char data[SIZE];
	uint32_t room = 0, n, i;

	while (end->position < TOTAL) {
		assert_int_equal(weir_mux_ring_writable(end, &room), 0);
		n = (uint32_t)(end->position * 31 % 1500) + 1;
		n = n > room ? room : n;
		n = n > TOTAL - end->position ? (uint32_t)(TOTAL - end->position) : n;
		for (i = 0; i < n; i++)
			data[i] = byte_at(end->position + i);
		weir_mux_ring_write(end, data, n);
		weir_mux_ring_publish_tail(end);
	}
	return NULL;
}

static void bytes_pass_between_two_threads(void **state)
{
	struct ring_pair *p = pair_new();
	unsigned char data[SIZE];
	pthread_t writer;
	uint64_t tail = 0;
	uint32_t i;

	(void)state;
	assert_int_equal(pthread_create(&writer, NULL, write_all, &p->writer), 0);
	while (p->reader.position < TOTAL) {
		assert_int_equal(weir_mux_ring_readable(&p->reader, &tail), 0);
		weir_mux_ring_peek(&p->reader, p->reader.position, data,
				   (uint32_t)(tail - p->reader.position));
		for (i = 0; p->reader.position < tail; i++, p->reader.position++)
			if (data[i] != byte_at(p->reader.position))
				fail_msg("byte %lu is wrong", (unsigned long)p->reader.position);
		weir_mux_ring_publish_head(&p->reader);
	}
	pthread_join(writer, NULL);
	free(p);
}

static void an_armed_waiter_is_woken_once(void **state)
{
	struct ring_pair *p = pair_new();

	(void)state;
	assert_int_equal(weir_mux_ring_disarm(&p->ring), 0);
	assert_int_equal(weir_mux_ring_arm(&p->ring, 1, 0), 1);
	assert_int_equal(weir_mux_ring_arm(&p->ring, 2, 0), 3);
	assert_int_equal(weir_mux_ring_disarm(&p->ring), 3);
	assert_int_equal(weir_mux_ring_disarm(&p->ring), 0);
	free(p);
}

static void a_waiter_for_much_is_not_woken_for_less(void **state)
{
	struct ring_pair *p = pair_new();

	(void)state;
	assert_int_equal(weir_mux_ring_disarm_at(&p->ring, 1000), 0);
	assert_int_equal(weir_mux_ring_arm(&p->ring, 1, 500), 1);
	assert_int_equal(weir_mux_ring_disarm_at(&p->ring, 499), 0);
	assert_int_equal(weir_mux_ring_disarm_at(&p->ring, 500), 1);
	assert_int_equal(weir_mux_ring_disarm_at(&p->ring, 501), 0);
	assert_int_equal(weir_mux_ring_arm(&p->ring, 1, 500), 1);
	assert_int_equal(weir_mux_ring_disarm(&p->ring), 1);
	free(p);
}

/* A writer waits for room in a ring that has never been full. */
static void a_position_before_the_first_has_been_reached(void **state)
{
	struct ring_pair *p = pair_new();

	(void)state;
	weir_mux_ring_arm(&p->ring, 2, 10 - (uint64_t)SIZE);
	assert_int_equal(weir_mux_ring_disarm_at(&p->ring, 0), 2);
	free(p);
}

static void *publish_bytes(void *arg)
{
	struct weir_mux_ring_end *end = arg;

	while (end->position < TELLS) {
		uint32_t room = 0;

		assert_int_equal(weir_mux_ring_writable(end, &room), 0);
		if (!room) {
			sched_yield();
			continue;
		}
		end->position += room < 16 ? room : 16;
		weir_mux_ring_publish_tail(end);
		weir_mux_ring_disarm_at(end->ring, end->position);
	}
	return NULL;
}

/* A reader that sleeps whenever armed reaches the end. */
static void no_wake_up_is_lost(void **state)
{
	struct ring_pair *p = pair_new();
	struct weir_mux_ring_end *end = &p->reader;
	pthread_t writer;
	uint64_t wanted, tail = 0;

	(void)state;
	assert_int_equal(pthread_create(&writer, NULL, publish_bytes, &p->writer), 0);
	while (end->position < TELLS) {
		wanted = end->position + SIZE / 2 < TELLS ? end->position + SIZE / 2 : TELLS;
		weir_mux_ring_arm(&p->ring, 1, wanted);
		assert_int_equal(weir_mux_ring_readable(end, &tail), 0);
		/* A premature wake-up for an older @wanted disarms the reader. */
		while (tail < wanted && __atomic_load_n(&p->ring.armed, __ATOMIC_ACQUIRE))
			sched_yield();
		assert_int_equal(weir_mux_ring_readable(end, &tail), 0);
		end->position = tail;
		weir_mux_ring_publish_head(end);
	}
	pthread_join(writer, NULL);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_ring_has_no_room_and_an_empty_one_nothing),
		cmocka_unit_test(impossible_positions_are_detected),
		cmocka_unit_test(bytes_pass_between_two_threads),
		cmocka_unit_test(an_armed_waiter_is_woken_once),
		cmocka_unit_test(a_waiter_for_much_is_not_woken_for_less),
		cmocka_unit_test(a_position_before_the_first_has_been_reached),
		cmocka_unit_test(no_wake_up_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
