// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs cq; devices: softnic rxe; timeout: 120 */
/* Completion queues: extended polling, and capacity. */
#include <poll.h>
#include <time.h>

#include "tests/support/verbs_puppet.h"

static const uint64_t clocks = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static struct ibv_cq *make_ex(struct endpoint *e)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4 * QUEUE_DEPTH,
		.cq_context = e,
		.channel = e->channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS | (on_softnic() ? clocks : 0),
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->ctx, &init);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_cq_ex *ex(struct endpoint *e)
{
	return (struct ibv_cq_ex *)e->cq;
}

static int start_poll(struct endpoint *e)
{
	uint64_t deadline = now_ms() + PATIENCE_MS;
	struct ibv_poll_cq_attr attr = { 0 };
	int rc;

	while ((rc = ibv_start_poll(ex(e), &attr)) == ENOENT && now_ms() < deadline)
		usleep(20);
	return rc;
}

/* The next completion of the same poll or, if there is none yet, the first of a new poll. */
static int next_poll(struct endpoint *e)
{
	int rc = ibv_next_poll(ex(e));

	if (rc != ENOENT)
		return rc;
	ibv_end_poll(ex(e));
	return start_poll(e);
}

static uint64_t clock_now(struct endpoint *e)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	assert_int_equal(ibv_query_rt_values_ex(e->ctx, &values), 0);
	return values.raw_clock.tv_sec * 1000000000ull + values.raw_clock.tv_nsec;
}

static void test_completions_are_read_one_by_one(void **state)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	skip_on_soft_roce("ibv_end_poll() takes one that is not there, after ibv_next_poll() "
			  "that found none");
	end_open_with(&pair.e, make_ex);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	assert_int_equal(ibv_start_poll(ex(&pair.e), &attr), ENOENT);
	for (i = 0; i < 4; i++) {
		wr_make(&w, &pair.e, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 0, 8, 0);
		w.wr.wr_id = 100 + i;
		assert_int_equal(post(&pair.e, &w), 0);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(i ? next_poll(&pair.e) : start_poll(&pair.e), 0);
		assert_int_equal(ex(&pair.e)->wr_id, 100 + i);
		assert_int_equal(ex(&pair.e)->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_opcode(ex(&pair.e)),
				 i & 1 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
		assert_int_equal(ibv_wc_read_qp_num(ex(&pair.e)), pair.e.qp->qp_num);
	}
	assert_int_equal(ibv_next_poll(ex(&pair.e)), ENOENT);
	ibv_end_poll(ex(&pair.e));
	assert_int_equal(ibv_start_poll(ex(&pair.e), &attr), ENOENT);
	puppet_stop(&pair.p, &pair.e);
}

static void test_entries_left_at_the_end_of_a_poll_remain(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	end_open_with(&pair.e, make_ex);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	for (i = 0; i < 3; i++) {
		wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0);
		w.wr.wr_id = i;
		assert_int_equal(post(&pair.e, &w), 0);
	}
	assert_int_equal(start_poll(&pair.e), 0);
	assert_int_equal(ex(&pair.e)->wr_id, 0);
	ibv_end_poll(ex(&pair.e));
	assert_int_equal(wait_wc(&pair.e).wr_id, 1);
	assert_int_equal(wait_wc(&pair.e).wr_id, 2);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_receive_says_all_it_was_asked_for(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	end_open_with(&pair.e, make_ex);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
	tell(&pair.p, ORDER_POST_RECV, 0, 64, 1);
	wr_make(&w, &pair.e, IBV_WR_SEND_WITH_IMM, 0, 5, 0);
	do_wr(&pair.e, &w, IBV_WC_SUCCESS);
	tell(&pair.p, ORDER_SEND, 0, 33, 0);
	assert_int_equal(start_poll(&pair.e), 0);
	assert_int_equal(ex(&pair.e)->wr_id, 7);
	assert_int_equal(ibv_wc_read_opcode(ex(&pair.e)), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(ex(&pair.e)), 33);
	if (!soft_roce_differs("a receive of RC says that it has a GRH, and not from whom")) {
		assert_int_equal(ibv_wc_read_src_qp(ex(&pair.e)), pair.p.name.qpn);
		assert_int_equal(ibv_wc_read_wc_flags(ex(&pair.e)), 0);
	}
	assert_int_equal(ibv_wc_read_vendor_err(ex(&pair.e)), 0);
	assert_int_equal(ibv_wc_read_slid(ex(&pair.e)), 0);
	assert_int_equal(ibv_wc_read_sl(ex(&pair.e)), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(ex(&pair.e)), 0);
	ibv_end_poll(ex(&pair.e));
	puppet_stop(&pair.p, &pair.e);
}

static uint64_t wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Both ends share a clock, so a timestamp lies between two readings of the clock. */
static void test_completions_say_when_they_came_about(void **state)
{
	uint64_t before, after, wall_before, ts;
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	skip_on_soft_roce("there is no clock");
	end_open_with(&pair.e, make_ex);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	assert_int_equal(post_recv(&pair.e, 1, 0, 64), 0);
	for (i = 0; i < 2; i++) {
		before = clock_now(&pair.e);
		wall_before = wall_clock();
		if (i)
			tell(&pair.p, ORDER_SEND, 0, 8, 0);
		else
			post(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0));
		assert_int_equal(start_poll(&pair.e), 0);
		after = clock_now(&pair.e);
		ts = ibv_wc_read_completion_ts(ex(&pair.e));
		assert_in_range(ts, before, after);
		ts = ibv_wc_read_completion_wallclock_ns(ex(&pair.e));
		assert_true(ts + 1000000000 >= wall_before);
		assert_true(ts <= wall_clock() + 1000000000);
		ibv_end_poll(ex(&pair.e));
	}
	puppet_stop(&pair.p, &pair.e);
}

static void test_unsupported_fields_are_refused(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 1 };
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };
	struct ibv_cq_ex *cq;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	init.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	assert_null(ibv_create_cq_ex(e.ctx, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.wc_flags = IBV_WC_EX_WITH_BYTE_LEN;
	init.comp_vector = e.ctx->num_comp_vectors;
	assert_null(ibv_create_cq_ex(e.ctx, &init));
	assert_int_equal(errno, EINVAL);
	init.comp_vector = 0;
	cq = ibv_create_cq_ex(e.ctx, &init);
	assert_non_null(cq);
	assert_non_null(cq->read_byte_len);
	assert_null(cq->read_completion_ts);
	if (!soft_roce_differs("ibv_start_poll() does not look at what it is asked for"))
		assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	end_close(&e);
}

/* At most its capacity at a time, and many more in total. */
static void test_a_queue_that_is_polled_does_not_overrun(void **state)
{
	struct pollfd events;
	struct puppet_pair pair;
	int round, i;

	(void)state;
	end_open_with(&pair.e, make_cq_of_three);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	for (round = 0; round < scaled(100); round++) {
		assert_int_equal(post_recv(&pair.e, 77, 0, 64), 0);
		tell(&pair.p, ORDER_SEND_MANY, 0, 8, 1);
		write_times(&pair.e, 2);
		for (i = 0; i < 3; i++)
			assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	}
	events = (struct pollfd){ .fd = pair.e.ctx->async_fd, .events = POLLIN };
	assert_int_equal(poll(&events, 1, 0), 0);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_resize_must_hold_the_entries(void **state)
{
	struct puppet_pair pair;
	int i;

	(void)state;
	end_open_with(&pair.e, make_cq_of_three);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	assert_int_equal(ibv_resize_cq(pair.e.cq, 8), 0);
	assert_int_equal(pair.e.cq->cqe, 15);
	for (i = 0; i < 8; i++)
		assert_int_equal(post_recv(&pair.e, i, 0, 64), 0);
	tell(&pair.p, ORDER_SEND_MANY, 0, 8, 8);
	assert_int_equal(ibv_resize_cq(pair.e.cq, 7), EINVAL);
	assert_int_equal(ibv_resize_cq(pair.e.cq, 0), EINVAL);
	assert_int_equal(pair.e.cq->cqe, 15);
	assert_int_equal(wait_wc(&pair.e).wr_id, 0);
	assert_int_equal(ibv_resize_cq(pair.e.cq, 7), 0);
	for (i = 1; i < 8; i++)
		assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

/* As in the providers of NICs: a program must poll before destroying a queue pair. */
static void test_unpolled_entries_go_with_their_queue_pair(void **state)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, SGES_MAX, SGES_MAX, INLINE_MAX },
	};
	struct ibv_wc wc;
	struct puppet_pair pair;
	int i;

	(void)state;
	skip_on_soft_roce("it stays");
	end_open(&pair.e, ALL_ACCESS);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	for (i = 0; i < 3; i++)
		assert_int_equal(post_recv(&pair.e, i, 0, 64), 0);
	tell(&pair.p, ORDER_SEND_MANY, 0, 8, 2);
	write_times(&pair.e, 1);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(pair.e.qp), 0);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	init.send_cq = init.recv_cq = pair.e.cq;
	pair.e.qp = ibv_create_qp(pair.e.pd, &init);
	assert_non_null(pair.e.qp);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	puppet_stop(&pair.p, &pair.e);
}

enum { ANSWER = 100 };

/* This end asks, the other answers; neither end polls here. */
static void ask(struct puppet_pair *pair, uint64_t id)
{
	struct test_wr w;

	assert_int_equal(post_recv(&pair->e, ANSWER + id, 0, 64), 0);
	assert_int_equal(tell(&pair->p, ORDER_POST_RECV, 0, 64, 0).result, 0);
	wr_make(&w, &pair->e, IBV_WR_SEND, 0, 8, 0)->wr.wr_id = id;
	assert_int_equal(post(&pair->e, &w), 0);
	assert_int_equal(tell(&pair->p, ORDER_POLL, 0, 0, 0).wc.opcode, IBV_WC_RECV);
	assert_int_equal(tell(&pair->p, ORDER_SEND, 0, 8, 0).result, 0);
	assert_int_equal(tell(&pair->p, ORDER_POLL, 0, 0, 0).wc.opcode, IBV_WC_SEND);
}

/* Poll; each question comes in order, then the answer. Return: the number of completions. */
static int poll_in_order(struct endpoint *e, int room, uint64_t *asked, uint64_t *answered)
{
	struct ibv_wc wc[8];
	int i, n;

	n = ibv_poll_cq(e->cq, room, wc);
	for (i = 0; i < n; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		if (wc[i].opcode == IBV_WC_SEND) {
			assert_int_equal(wc[i].wr_id, (*asked)++);
			continue;
		}
		assert_int_equal(wc[i].wr_id, ANSWER + (*answered)++);
		assert_true(*answered <= *asked);
	}
	return n;
}

static void test_a_question_is_polled_before_its_answer(void **state)
{
	struct puppet_pair *pair = *state;
	uint64_t next = 0, asked = 0, answered = 0;
	int room;

	skip_on_soft_roce("a receive completes before it is acknowledged: the answer may overtake");
	for (room = 1; room <= 8; room++) {
		ask(pair, next++);
		ask(pair, next++);
		assert_int_equal(poll_in_order(&pair->e, 1, &asked, &answered), 1);
		ask(pair, next++);
		while (poll_in_order(&pair->e, room, &asked, &answered))
			;
		assert_int_equal(asked, next);
		assert_int_equal(answered, next);
	}
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_completions_are_read_one_by_one),
		cmocka_unit_test(test_entries_left_at_the_end_of_a_poll_remain),
		cmocka_unit_test(test_a_receive_says_all_it_was_asked_for),
		cmocka_unit_test(test_completions_say_when_they_came_about),
		cmocka_unit_test(test_unsupported_fields_are_refused),
		cmocka_unit_test(test_a_queue_that_is_polled_does_not_overrun),
		cmocka_unit_test(test_a_resize_must_hold_the_entries),
		cmocka_unit_test(test_unpolled_entries_go_with_their_queue_pair),
		cmocka_unit_test_setup_teardown(test_a_question_is_polled_before_its_answer,
						pair_up, pair_down),
	};

	return cmocka_run_group_tests_name("softnic completion queues", all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
