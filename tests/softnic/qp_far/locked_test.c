/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: softnic locked; devices: softnic; timeout: 60 */
/*
 * A user may lock little memory. So a queue pair to another host locks memory for keys only. Both
 * ends are in this process, and their packets take the way to other hosts.
 */
#include <time.h>

#include "tests/support/locked_memory.h"
#include "tests/support/verbs_puppet.h"
#include "softnic/qp_far/far_seal.h"

static const struct timespec pause_time = { .tv_nsec = 10000000 };

static void open_pair(struct endpoint *a, struct endpoint *b)
{
	end_open(a, ALL_ACCESS);
	end_open_sharing(b, a);
}

static void close_pair(struct endpoint *a, struct endpoint *b)
{
	end_close(b);
	end_close(a);
}

static void connect_to(struct endpoint *from, const struct endpoint *to)
{
	struct endpoint_name name = end_name(to);

	end_connect(from, &name, &plain);
}

/* Asks for encryption, as weir does with a key. */
static void ask_of(struct endpoint *e)
{
	softnic_seal_ask(e->qp);
}

static void in_clear_text_nothing_is_locked(void **state)
{
	unsigned long before = locked_kib(getpid());
	struct endpoint a, b;
	struct test_wr w;

	(void)state;
	open_pair(&a, &b);
	connect_to(&a, &b);
	connect_to(&b, &a);
	do_wr(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, 64, 4096), IBV_WC_SUCCESS);
	assert_true(far_is_connected(to_qp(a.qp)));
	assert_int_equal(locked_kib(getpid()), before);
	close_pair(&a, &b);
}

static void keys_are_locked_until_the_end(void **state)
{
	unsigned long before = locked_kib(getpid());
	struct endpoint a, b;
	struct test_wr w;

	(void)state;
	open_pair(&a, &b);
	connect_to(&a, &b);
	connect_to(&b, &a);
	ask_of(&a);
	do_wr(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, 64, 4096), IBV_WC_SUCCESS);
	assert_true(to_qp(a.qp)->far->has_keys && to_qp(b.qp)->far->has_keys);
	close_pair(&a, &b);
	assert_int_equal(locked_kib(getpid()), before);
}

/* As with another device, which answers no offer. */
static void a_peer_without_encryption_leaves_nothing_locked(void **state)
{
	unsigned long before = locked_kib(getpid());
	struct endpoint a, b;
	bool has_keys;

	(void)state;
	open_pair(&a, &b);
	connect_to(&a, &b);
	ask_of(&a);
	assert_true(to_qp(a.qp)->far->has_keys);
	do { /* until the test's time limit */
		nanosleep(&pause_time, NULL);
		pthread_mutex_lock(&to_qp(a.qp)->lock);
		has_keys = to_qp(a.qp)->far->has_keys;
		pthread_mutex_unlock(&to_qp(a.qp)->lock);
	} while (has_keys);
	assert_int_equal(to_qp(a.qp)->far->agree->state, AGREE_CLEAR);
	assert_int_equal(locked_kib(getpid()), before);
	close_pair(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_clear_text_nothing_is_locked),
		cmocka_unit_test(keys_are_locked_until_the_end),
		cmocka_unit_test(a_peer_without_encryption_leaves_nothing_locked),
	};

	setenv("WEIR_SOFTNIC", "near=0,encrypt=1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
