/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A queue between threads: reserved room is there, whatever other threads take meanwhile. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <weir/request.h>
#include "lib/client/request/queue.h"

#define PUTTERS 4
#define TAKERS 2
#define SOME 100 /* at most at a time: more than a new queue holds */
#define EVENTS 40000u /* of each producer */

static struct weir_queue *queue;
static unsigned char told[PUTTERS * EVENTS];
static unsigned int taken;
static bool has_failed;

/* 1 to SOME, in rotation. */
static unsigned int how_many(unsigned int round, unsigned int left)
{
	unsigned int count = 1 + round * 37 % SOME;

	return count < left ? count : left;
}

static void *put_some(void *arg)
{
	unsigned int i, count, at = (unsigned int)(uintptr_t)arg * EVENTS, end = at + EVENTS,
			       round = 0;
	struct weir_event events[SOME];

	for (; at < end; at += count) {
		count = how_many(round++, end - at);
		if (weir_queue_reserve(queue, count + 3)) {
			__atomic_store_n(&has_failed, true, __ATOMIC_RELAXED);
			break;
		}
		weir_queue_release(queue, 3);
		for (i = 0; i < count; i++)
			events[i] = (struct weir_event){ &told[at + i], 0 };
		weir_queue_put(queue, events, count);
	}
	return NULL;
}

static void *take_all(void *arg)
{
	struct weir_event events[7];
	int i, got;

	(void)arg;
	while (__atomic_load_n(&taken, __ATOMIC_RELAXED) < sizeof(told) &&
	       !__atomic_load_n(&has_failed, __ATOMIC_RELAXED)) {
		got = weir_queue_poll(queue, events, 7);
		if (!got)
			sched_yield();
		for (i = 0; i < got; i++)
			__atomic_fetch_add((unsigned char *)events[i].arg, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&taken, (unsigned int)got, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void all_that_is_put_in_is_taken_once(void **state)
{
	pthread_t threads[PUTTERS + TAKERS];
	uintptr_t i;

	(void)state;
	assert_int_equal(weir_queue_create(&queue), 0);
	for (i = 0; i < PUTTERS + TAKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < PUTTERS ? put_some : take_all, (void *)i),
				 0);
	for (i = 0; i < PUTTERS + TAKERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_false(has_failed);
	for (i = 0; i < sizeof(told); i++)
		assert_int_equal(told[i], 1);
	weir_queue_destroy(queue);
}

/* More than the queue holds, repeatedly, so that it grows while not empty. */
static void what_is_in_it_stays_in_order_while_it_grows(void **state)
{
	static unsigned char marks[1000];
	struct weir_event event;
	unsigned int in = 0, out = 0;

	(void)state;
	assert_int_equal(weir_queue_create(&queue), 0);
	while (out < sizeof(marks)) {
		for (unsigned int i = 0; i < 3 && in < sizeof(marks); i++, in++) {
			assert_int_equal(weir_queue_reserve(queue, 1), 0);
			weir_queue_put(queue, &(struct weir_event){ &marks[in], 0 }, 1);
		}
		assert_int_equal(weir_queue_poll(queue, &event, 1), 1);
		assert_ptr_equal(event.arg, &marks[out++]);
	}
	assert_int_equal(weir_queue_poll(queue, &event, 1), 0);
	weir_queue_destroy(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_put_in_is_taken_once),
		cmocka_unit_test(what_is_in_it_stays_in_order_while_it_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
