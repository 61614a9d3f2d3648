/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ends of a channel in one program. Whatever they send, and however late they read, neither
 * end overruns the other's buffers, and neither waits for ever.
 */
#include "core/link/credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define STEPS 200000
#define QUEUE 4096

struct credit_end {
	struct weir_credit credit;
	uint16_t queue[QUEUE]; /* credits of the messages in flight to this end */
	unsigned int head, tail;
	unsigned int sent;
};

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

static void transmit(struct credit_end *from, struct credit_end *to)
{
	to->queue[to->tail++ % QUEUE] = weir_credit_spend(&from->credit);
	/* Messages in flight and unread messages lie in the other end's buffers. */
	assert_true(to->tail - to->head <= to->credit.ours);
}

static void receive(struct credit_end *end, struct credit_end *other)
{
	if (end->head == end->tail)
		return;
	assert_int_equal(weir_credit_received(&end->credit, end->queue[end->head++ % QUEUE]), 0);
	if (weir_credit_is_due(&end->credit))
		transmit(end, other);
}

static bool send(struct credit_end *from, struct credit_end *to)
{
	if (!weir_credit_has_room(&from->credit))
		return false;
	transmit(from, to);
	from->sent++;
	return true;
}

static void run_ends(uint16_t a_posts, uint16_t b_posts, uint32_t seed)
{
	static struct credit_end a, b;
	unsigned int i;

	a = b = (struct credit_end){ 0 };
	assert_int_equal(weir_credit_init(&a.credit, a_posts, b_posts), 0);
	assert_int_equal(weir_credit_init(&b.credit, b_posts, a_posts), 0);
	for (i = 0; i < STEPS; i++)
		switch (random_next(&seed) % 4) {
		case 0:
			send(&a, &b);
			break;
		case 1:
			send(&b, &a);
			break;
		case 2:
			receive(&a, &b);
			break;
		default:
			receive(&b, &a);
			break;
		}
	/* Once everything is read, both ends can send again. */
	while (a.head != a.tail || b.head != b.tail) {
		receive(&a, &b);
		receive(&b, &a);
	}
	assert_true(send(&a, &b));
	assert_true(send(&b, &a));
	assert_true(a.sent > STEPS / 32 && b.sent > STEPS / 32);
}

static void two_ends_never_overrun_nor_starve_each_other(void **state)
{
	uint32_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		run_ends(WEIR_CREDITS_MIN, WEIR_CREDITS_MIN, seed);
		run_ends(WEIR_CREDITS_MIN, 64, seed);
		run_ends(32, 32, seed);
	}
}

static void a_stream_one_way_only_does_not_stop(void **state)
{
	static struct credit_end a, b;
	unsigned int i;

	(void)state;
	a = b = (struct credit_end){ 0 };
	weir_credit_init(&a.credit, 4, 32);
	weir_credit_init(&b.credit, 32, 4);
	for (i = 0; i < 10000; i++) {
		assert_true(send(&a, &b));
		receive(&b, &a);
		receive(&a, &b);
	}
}

static void sending_more_than_granted_is_detected(void **state)
{
	struct weir_credit credit;
	int i;

	(void)state;
	weir_credit_init(&credit, 4, 8);
	for (i = 0; i < 4; i++)
		assert_int_equal(weir_credit_received(&credit, 0), 0);
	assert_int_equal(weir_credit_received(&credit, 0), -EPROTO);
}

static void granting_more_than_posted_is_detected(void **state)
{
	struct weir_credit credit;

	(void)state;
	weir_credit_init(&credit, 4, 8);
	assert_int_equal(weir_credit_received(&credit, 1), -EPROTO);
	weir_credit_spend(&credit);
	assert_int_equal(weir_credit_received(&credit, 2), -EPROTO);
	assert_int_equal(weir_credit_received(&credit, UINT16_MAX), -EPROTO);
	assert_int_equal(weir_credit_received(&credit, 1), 0);
}

static void too_few_buffers_are_refused(void **state)
{
	struct weir_credit credit;

	(void)state;
	assert_int_equal(weir_credit_init(&credit, 32, WEIR_CREDITS_MIN - 1), -EPROTO);
	assert_int_equal(weir_credit_init(&credit, 0, 32), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_ends_never_overrun_nor_starve_each_other),
		cmocka_unit_test(a_stream_one_way_only_does_not_stop),
		cmocka_unit_test(sending_more_than_granted_is_detected),
		cmocka_unit_test(granting_more_than_posted_is_detected),
		cmocka_unit_test(too_few_buffers_are_refused),
	};

	return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
