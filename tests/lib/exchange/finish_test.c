/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib exchange finish; devices: softnic; timeout: 120 */
/*
 * Both ends finish while their bitmap reads cross: neither may sleep for the other. A single
 * thread runs both ends, and switches to the other end in the middle of a call.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#include "tests/support/libweir_fixture.h"
#include "lib/exchange/exchange.h"

#define TIMEOUT_NS (60 * SECOND_NS)
#define BRIEF_NS (SECOND_NS / 20)
#define SLOTS 8

static struct weir_exchange *a, *b; /* a has connected, b was accepted */
static bool crosses, has_crossed, waits_in_vain;

int __real_weir_exchange_completion_poll(struct weir_exchange *x);
int __wrap_weir_exchange_completion_poll(struct weir_exchange *x);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* a's read of b's bits has completed; before a handles it, b finishes, too, and reads a's bits. */
int __wrap_weir_exchange_completion_poll(struct weir_exchange *x)
{
	if (crosses && x == a && a->sending != WEIR_EXCHANGE_SENDING && a->slot_poll.is_reading) {
		crosses = false;
		has_crossed = true;
		assert_int_equal(weir_exchange_finish(b, BRIEF_NS), -ETIMEDOUT);
		assert_int_equal(weir_exchange_flush(b, TIMEOUT_NS), 0);
	}
	return __real_weir_exchange_completion_poll(x);
}

/*
 * Called in every wait. If a polls with its doorbell rung and no read in flight, a sleeps for a
 * wake-up; b's end is already visible, so none will come.
 */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (has_crossed && fds->fd == a->events->fd && !a->slot_poll.is_reading &&
	    a->slot_poll.requested)
		waits_in_vain |= !a->is_finished;
	return __real_poll(fds, count, timeout_ms);
}

static void *accept_one(void *listener)
{
	weir_exchange_accept(listener, TIMEOUT_NS, &b, NULL);
	return NULL;
}

static void pair_open(void)
{
	const struct weir_exchange_options options = { .size = sizeof(options),
						       .key = fixture_key(),
						       .slots = SLOTS };
	struct weir_exchange_listener *listener;
	pthread_t thread;
	char address[80];

	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, accept_one, listener), 0);
	assert_int_equal(weir_exchange_connect(weir_exchange_address(listener), &options, &a, NULL),
			 0);
	pthread_join(thread, NULL);
	assert_non_null(b);
	weir_exchange_unlisten(listener);
}

/* Even though there is room: b has nothing to report. */
static void a_asks_for_room(void)
{
	struct weir_exchange_slot slots[SLOTS], another;

	assert_int_equal(weir_exchange_acquire(a, slots, SLOTS, 0), SLOTS);
	while (a->slot_poll.requested != WEIR_SLOT_POLL_ROOM)
		assert_int_equal(weir_exchange_acquire(a, &another, 1, BRIEF_NS), -ETIMEDOUT);
	assert_int_equal(weir_exchange_abandon(a, slots, SLOTS), 0);
}

static bool has_finished(struct weir_exchange *x)
{
	int rc = weir_exchange_finish(x, BRIEF_NS);

	assert_true(!rc || rc == -ETIMEDOUT);
	return !rc;
}

static void simultaneous_finishes_do_not_sleep_for_each_other(void **state)
{
	const uint64_t deadline_ns = now_ns() + TIMEOUT_NS;
	bool have = false;

	(void)state;
	pair_open();
	a_asks_for_room();
	crosses = true;
	while (!have) {
		assert_true(now_ns() < deadline_ns);
		have = has_finished(a);
		have &= has_finished(b);
	}
	assert_true(has_crossed);
	assert_false(waits_in_vain);
	has_crossed = false; /* stop the crossing */
	weir_exchange_close(a);
	weir_exchange_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simultaneous_finishes_do_not_sleep_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
