// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic yield; devices: softnic; timeout: 120 */
/*
 * A program that spins for completions leaves its CPU to others while much is under way. One that
 * sleeps for events leaves the packets to the engine. Both ends are in this process, and packets
 * between them take the way to other hosts.
 */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/support/verbs_puppet.h"

enum {
	SMALL_BYTES = 8,
	LARGE_BYTES = 1 << 20,
	ROUNDS = 1000,
	POLLS_BETWEEN_CALLS = 64, /* enough for a thread to yield */
	SLEEP_US = 20,
};

static struct endpoint a, b;
static __thread uint32_t yields;
static __thread bool is_spinning;
/* Until a thread yields, only the engine gets packets, and few at once. */
static _Atomic bool is_scarce;
static _Atomic int calls; /* that may still get packets */
static _Atomic uint32_t turns_away; /* of epoll, from a socket */

/* In place of libc's, for the preloaded library, too. */
int sched_yield(void)
{
	yields++;
	if (is_spinning)
		is_scarce = false;
	return (int)syscall(SYS_sched_yield);
}

/*
 * In place of libc's, too. On one CPU each call might find packets, so that no thread ever waited.
 * The engine sleeps instead of a call, so that the other thread has the CPU before softnic forgets
 * that packets came.
 */
int recvmmsg(int fd, struct mmsghdr *messages, unsigned int nr, int flags, struct timespec *timeout)
{
	if (is_scarce && (is_spinning || atomic_exchange(&calls, 0) == 0)) {
		if (!is_spinning)
			usleep(SLEEP_US);
		errno = EAGAIN;
		return -1;
	}
	return (int)syscall(SYS_recvmmsg, fd, messages, nr, flags, timeout);
}

/* In place of libc's, too. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_MOD && !event->events)
		turns_away++;
	return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

static int connect_both(void **state)
{
	struct endpoint_name at_a, at_b;

	(void)state;
	end_open(&a, ALL_ACCESS);
	end_open_sharing(&b, &a);
	at_a = end_name(&a);
	at_b = end_name(&b);
	end_connect(&a, &at_b, &plain);
	end_connect(&b, &at_a, &plain);
	yields = 0;
	turns_away = 0;
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	is_scarce = false;
	end_close(&b);
	end_close(&a);
	return 0;
}

static void spin_for_a_write(uint32_t bytes)
{
	struct test_wr w;
	struct ibv_wc wc;
	uint32_t polls;

	assert_int_equal(post(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, bytes, 2 << 20)), 0);
	for (polls = 0; !ibv_poll_cq(a.cq, 1, &wc); polls++)
		if (polls % POLLS_BETWEEN_CALLS == 0)
			calls = 1;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void a_thread_that_waits_for_few_bytes_keeps_its_cpu(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < ROUNDS; i++)
		spin_for_a_write(SMALL_BYTES);
	assert_int_equal(yields, 0);
}

/*
 * Each write needs calls of the engine, with many polls in between that find nothing. Softnic
 * forgets a thread that loses its CPU meanwhile, so this may take several writes.
 */
static void a_thread_that_waits_for_many_bytes_yields(void **state)
{
	(void)state;
	is_spinning = true;
	is_scarce = true;
	while (!yields)
		spin_for_a_write(LARGE_BYTES);
}

/* As programs do: ask for an event, poll once more, sleep, and poll until nothing is left. */
static void sleep_for_a_write(void)
{
	struct test_wr w;
	struct ibv_wc wc;
	int found;

	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(post(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, SMALL_BYTES, 2 << 20)), 0);
	found = ibv_poll_cq(a.cq, 1, &wc);
	wait_event(&a);
	while (ibv_poll_cq(a.cq, 1, &wc))
		found++;
	assert_int_equal(found, 1);
}

static void a_thread_that_sleeps_for_events_is_woken_by_the_engine(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < ROUNDS; i++)
		sleep_for_a_write();
	assert_int_equal(turns_away, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_that_waits_for_few_bytes_keeps_its_cpu,
						connect_both, close_both),
		cmocka_unit_test_setup_teardown(a_thread_that_waits_for_many_bytes_yields,
						connect_both, close_both),
		cmocka_unit_test_setup_teardown(
			a_thread_that_sleeps_for_events_is_woken_by_the_engine, connect_both,
			close_both),
	};

	setenv("WEIR_SOFTNIC", "near=0,encrypt=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
