// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs overrun; devices: softnic; timeout: 120 */
/* A completion queue that is too small overruns. */
#include <poll.h>

#include "softnic/qp/qp.h"
#include "tests/support/verbs_puppet.h"

static struct ibv_cq *make_of_three_that_ignores(struct endpoint *e)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 3,
		.channel = e->channel,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->ctx, &init);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_async_event next_event(struct endpoint *e)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(e->ctx, &event), 0);
	ibv_ack_async_event(&event);
	return event;
}

static void expect_overrun(struct endpoint *e)
{
	struct ibv_async_event event = next_event(e);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, e->cq);
	event = next_event(e);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, e->qp);
	assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
}

static void test_an_overrun_ends_the_queue_pairs_of_the_cq(void **state)
{
	struct puppet_pair pair;
	int i;

	(void)state;
	end_open_with(&pair.e, make_cq_of_three);
	assert_int_equal(pair.e.cq->cqe, 3);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	write_times(&pair.e, 4);
	expect_overrun(&pair.e);
	for (i = 0; i < 4; i++)
		assert_int_equal(wait_wc(&pair.e).wr_id, i);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_peer_that_sends_too_many_ends_it_as_well(void **state)
{
	struct puppet_pair pair;
	int i;

	(void)state;
	end_open_with(&pair.e, make_cq_of_three);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	for (i = 0; i < 4; i++)
		assert_int_equal(post_recv(&pair.e, i, 0, 64), 0);
	tell(&pair.p, ORDER_SEND_MANY, 0, 8, 4);
	expect_overrun(&pair.e);
	for (i = 0; i < 4; i++)
		assert_int_equal(wait_wc(&pair.e).wr_id, i);
	puppet_stop(&pair.p, &pair.e);
}

/* Each client sees only its own waiting completions. The overrun shows when the owner polls. */
static void test_a_queue_that_many_fill_together_overruns_when_it_is_polled(void **state)
{
	struct pollfd events;
	struct puppet_pair pair;
	int i;

	(void)state;
	end_open_with(&pair.e, make_cq_of_three);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	for (i = 0; i < 2; i++)
		assert_int_equal(post_recv(&pair.e, i, 0, 64), 0);
	tell(&pair.p, ORDER_SEND_MANY, 0, 8, 2);
	write_times(&pair.e, 2);
	while (load_acquire(&to_qp(pair.e.qp)->sq.done) < 2)
		usleep(1000);
	events = (struct pollfd){ .fd = pair.e.ctx->async_fd, .events = POLLIN };
	assert_int_equal(poll(&events, 1, 0), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	expect_overrun(&pair.e);
	puppet_stop(&pair.p, &pair.e);
}

static void test_entries_beyond_a_smaller_size_overrun(void **state)
{
	struct puppet_pair pair;

	(void)state;
	end_open_with(&pair.e, make_cq_of_three);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	assert_int_equal(ibv_resize_cq(pair.e.cq, 8), 0);
	assert_int_equal(ibv_resize_cq(pair.e.cq, 7), 0);
	write_times(&pair.e, 8);
	expect_overrun(&pair.e);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_cq_with_ignore_overrun_may_overrun(void **state)
{
	struct puppet_pair pair;
	int i;

	(void)state;
	end_open_with(&pair.e, make_of_three_that_ignores);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	write_times(&pair.e, QUEUE_DEPTH);
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	write_times(&pair.e, 1);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_an_overrun_ends_the_queue_pairs_of_the_cq),
		cmocka_unit_test(test_a_peer_that_sends_too_many_ends_it_as_well),
		cmocka_unit_test(test_a_queue_that_many_fill_together_overruns_when_it_is_polled),
		cmocka_unit_test(test_entries_beyond_a_smaller_size_overrun),
		cmocka_unit_test(test_a_cq_with_ignore_overrun_may_overrun),
	};

	return cmocka_run_group_tests_name("softnic overruns", all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
