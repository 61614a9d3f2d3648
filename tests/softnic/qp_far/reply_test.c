// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic reply; devices: softnic; timeout: 60 */
/*
 * Acknowledgements that wait for a reply. Both ends are in this process, and packets between them
 * take the way to other hosts.
 */
#include "tests/support/verbs_puppet.h"
#include "softnic/qp/qp.h"
#include "softnic/qp_far/far.h"

enum { ROUNDS = 1000, REPLIES_MAX = 3 };

static struct endpoint a, b;

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
	return 0;
}

static void write_from(struct endpoint *from)
{
	struct test_wr w;

	assert_int_equal(post(from, wr_make(&w, from, IBV_WR_RDMA_WRITE, 0, 8, 4096)), 0);
}

static uint32_t replies_of(struct endpoint *e)
{
	struct qp *qp = to_qp(e->qp);
	uint32_t replies;

	pthread_mutex_lock(&qp->lock);
	replies = qp->far->replies;
	pthread_mutex_unlock(&qp->lock);
	return replies;
}

static uint64_t heard_by(struct endpoint *e)
{
	struct qp *qp = to_qp(e->qp);
	uint64_t heard;

	pthread_mutex_lock(&qp->lock);
	heard = qp->far->roce.resp.expected;
	pthread_mutex_unlock(&qp->lock);
	return heard;
}

/* As a program does that waits for a byte of its memory. */
static void write_and_await(struct endpoint *from, struct endpoint *to)
{
	uint64_t before = heard_by(to);

	write_from(from);
	while (heard_by(to) == before)
		;
}

/* A loaded machine may pause between a write and its reply, so this takes several tries. */
static void learn(void)
{
	int i;

	for (i = 0; i < ROUNDS && replies_of(&b) < REPLIES_MAX; i++) {
		write_and_await(&a, &b);
		write_and_await(&b, &a);
		assert_int_equal(wait_wc(&a).status, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(&b).status, IBV_WC_SUCCESS);
	}
	assert_int_equal(replies_of(&b), REPLIES_MAX);
}

static void a_write_without_a_reply_completes(void **state)
{
	(void)state;
	learn();
	write_from(&a);
	assert_int_equal(wait_wc(&a).status, IBV_WC_SUCCESS);
	write_from(&a);
	assert_int_equal(wait_wc(&a).status, IBV_WC_SUCCESS);
	assert_int_equal(replies_of(&b), 0);
	end_close(&b);
	end_close(&a);
}

static void an_end_that_closes_sends_what_it_owes(void **state)
{
	(void)state;
	learn();
	write_and_await(&a, &b);
	end_close(&b);
	assert_int_equal(wait_wc(&a).status, IBV_WC_SUCCESS);
	end_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_write_without_a_reply_completes, connect_both),
		cmocka_unit_test_setup(an_end_that_closes_sends_what_it_owes, connect_both),
	};

	setenv("WEIR_SOFTNIC", "near=0,encrypt=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
