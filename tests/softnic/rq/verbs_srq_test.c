// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs srq; devices: softnic rxe; timeout: 120 */
/* Shared receive queues: events, and receives taken by senders that die. */
#include <poll.h>

#include "tests/support/verbs_puppet.h"

enum { RECEIVES = 8, SENDERS = 3, LENGTH = 64 };

/* A region and an SRQ, for any number of receiving queue pairs. */
struct srq_sink {
	struct endpoint base;
	struct ibv_srq *srq;
};

static int setup(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	struct srq_sink *s = calloc(1, sizeof(*s));

	end_open(&s->base, ALL_ACCESS);
	s->srq = ibv_create_srq(s->base.pd, &init);
	assert_non_null(s->srq);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct srq_sink *s = *state;

	assert_int_equal(ibv_destroy_srq(s->srq), 0);
	end_close(&s->base);
	free(s);
	return 0;
}

/* Another queue pair on the SRQ, with its own completion queue. */
static void open_receiver(struct endpoint *e, const struct srq_sink *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.srq = s->srq,
		.cap = { QUEUE_DEPTH, 0, 1, 0, 0 },
	};

	end_open_sharing(e, &s->base);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

static void post_shared(struct srq_sink *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->base.buf + LENGTH * id, LENGTH, s->base.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
}

static void post_all(struct srq_sink *s)
{
	uint64_t id;

	for (id = 0; id < RECEIVES; id++)
		post_shared(s, id);
}

static bool has_event(const struct srq_sink *s, int ms)
{
	struct pollfd p = { .fd = s->base.ctx->async_fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static struct ibv_async_event take_event(const struct srq_sink *s)
{
	struct ibv_async_event event;

	assert_true(has_event(s, PATIENCE_MS));
	assert_int_equal(ibv_get_async_event(s->base.ctx, &event), 0);
	ibv_ack_async_event(&event);
	return event;
}

static void arm_limit(struct srq_sink *s, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	assert_int_equal(ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT), 0);
}

static void receive_one(struct endpoint *e, struct puppet *p)
{
	struct ibv_wc wc;

	assert_int_equal(tell(p, ORDER_SEND, 0, LENGTH, 0).result, 0);
	wc = wait_wc(e);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, LENGTH);
	assert_int_equal(tell(p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_SUCCESS);
}

static void test_one_limit_gives_one_event_when_fewer_are_left(void **state)
{
	struct ibv_async_event event;
	struct srq_sink *s = *state;
	struct puppet p;
	struct endpoint e;
	int i;

	open_receiver(&e, s);
	puppet_start(&p, &e, ALL_ACCESS, &plain);
	post_all(s);
	arm_limit(s, RECEIVES - 2);
	receive_one(&e, &p);
	receive_one(&e, &p);
	assert_false(has_event(s, 0)); /* as many receives as the limit are left */
	for (i = 0; i < 3; i++)
		receive_one(&e, &p);
	event = take_event(s);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, s->srq);
	receive_one(&e, &p);
	puppet_stop(&p, &e);
	assert_false(has_event(s, 0));
}

static void test_a_limit_that_is_reached_already_is_told_at_once(void **state)
{
	struct srq_sink *s = *state;

	skip_on_soft_roce("it is told when the next receive is taken");
	post_shared(s, 0);
	arm_limit(s, 2);
	assert_int_equal(take_event(s).event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	arm_limit(s, 1);
	assert_false(has_event(s, 0));
}

static void test_in_error_the_last_receive_is_told_of(void **state)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event event;
	struct srq_sink *s = *state;
	struct puppet p;
	struct endpoint e;

	skip_on_soft_roce("it is not told of");
	open_receiver(&e, s);
	puppet_start(&p, &e, ALL_ACCESS, &plain);
	post_all(s);
	receive_one(&e, &p);
	assert_int_equal(ibv_modify_qp(e.qp, &error, IBV_QP_STATE), 0);
	event = take_event(s);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, e.qp);
	puppet_stop(&p, &e);
}

static int resize(struct srq_sink *s, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(s->srq, &attr, IBV_SRQ_MAX_WR);
}

static int post_more(struct srq_sink *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->base.buf, LENGTH, s->base.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(s->srq, &wr, &bad);
}

/* The senders keep what they mapped, and receives that are posted stay. */
static void test_a_queue_grows_and_shrinks_while_it_is_used(void **state)
{
	struct ibv_srq_attr attr;
	struct srq_sink *s = *state;
	struct puppet p;
	struct endpoint e;
	uint64_t id;
	int i;

	open_receiver(&e, s);
	puppet_start(&p, &e, ALL_ACCESS, &plain);
	post_all(s);
	receive_one(&e, &p);
	assert_int_equal(resize(s, 2 * RECEIVES), 0);
	assert_int_equal(ibv_query_srq(s->srq, &attr), 0);
	assert_in_range(attr.max_wr, 2 * RECEIVES, 4 * RECEIVES);
	for (id = RECEIVES - 1; id < attr.max_wr; id++)
		assert_int_equal(post_more(s, id), 0);
	assert_int_equal(post_more(s, id), ENOMEM);
	assert_int_equal(resize(s, RECEIVES), EINVAL); /* more are posted */
	for (i = 0; i < 2 * RECEIVES; i++)
		receive_one(&e, &p);
	while (attr.max_wr-- > 2 * RECEIVES)
		receive_one(&e, &p);
	assert_int_equal(resize(s, RECEIVES), 0);
	post_all(s);
	for (i = 0; i < RECEIVES; i++)
		receive_one(&e, &p);
	puppet_stop(&p, &e);
}

static void test_a_size_that_cannot_be_changes_nothing(void **state)
{
	struct srq_sink *s = *state;
	struct ibv_srq_attr attr = { .max_wr = RECEIVES, .srq_limit = RECEIVES + 1 };

	skip_on_soft_roce("it rounds sizes up");
	assert_int_equal(resize(s, 0), EINVAL);
	assert_int_equal(resize(s, 1 << 20), EINVAL);
	assert_int_equal(resize(s, 4 * RECEIVES + 1), ENOMEM);
	assert_int_equal(ibv_modify_srq(s->srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	post_all(s);
	assert_int_equal(post_more(s, 0), ENOMEM);
}

static bool poll_one(struct endpoint *e, struct ibv_wc *wc)
{
	return ibv_poll_cq(e->cq, 1, wc) == 1;
}

/* All receives come back, whatever the dead sender was doing. */
static void test_a_dead_process_leaves_receives_to_others(void **state)
{
	struct srq_sink *s = *state;
	struct puppet doomed, other;
	struct endpoint a, b;
	struct ibv_wc wc;
	bool told = false;
	int i;

	skip_on_soft_roce("who receives from it hears nothing of a death");
	open_receiver(&a, s);
	open_receiver(&b, s);
	puppet_start(&doomed, &a, ALL_ACCESS, &plain);
	puppet_start(&other, &b, ALL_ACCESS, &plain);
	post_all(s);
	give_order(&doomed, ORDER_SEND_MANY, 0, LENGTH, 1 << 20);
	for (i = 0; i < scaled(500); i++) {
		wc = wait_wc(&a);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		post_shared(s, wc.wr_id);
	}
	puppet_kill(&doomed);
	while (!told)
		told = take_event(s).event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
	while (poll_one(&a, &wc))
		post_shared(s, wc.wr_id);
	for (i = 0; i < RECEIVES; i++)
		receive_one(&b, &other);
	puppet_stop(&other, &b);
	end_close(&a);
}

static void test_senders_of_several_processes_share_the_receives(void **state)
{
	const int each = scaled(300);
	struct srq_sink *s = *state;
	struct puppet p[SENDERS];
	struct endpoint e[SENDERS];
	int i, n[SENDERS] = { 0 }, left = SENDERS * each;
	uint64_t deadline = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	for (i = 0; i < SENDERS; i++) {
		open_receiver(&e[i], s);
		puppet_start(&p[i], &e[i], ALL_ACCESS, &plain);
		tell(&p[i], ORDER_FILL, 0, LENGTH, i + 1);
	}
	post_all(s);
	for (i = 0; i < SENDERS; i++)
		give_order(&p[i], ORDER_SEND_MANY, 0, LENGTH, each);
	for (i = 0; left && now_ms() < deadline; i = (i + 1) % SENDERS) {
		if (!poll_one(&e[i], &wc))
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, e[i].qp->qp_num);
		assert_int_equal(s->base.buf[LENGTH * wc.wr_id], i + 1);
		assert_int_equal(s->base.buf[LENGTH * wc.wr_id + LENGTH - 1], i + 1);
		post_shared(s, wc.wr_id);
		n[i]++;
		left--;
	}
	assert_int_equal(left, 0);
	for (i = 0; i < SENDERS; i++) {
		assert_int_equal(n[i], each);
		assert_int_equal(take_answer(&p[i]).result, 0);
		puppet_stop(&p[i], &e[i]);
	}
}

static int tests(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest all[] = {
		ONE(test_one_limit_gives_one_event_when_fewer_are_left),
		ONE(test_a_limit_that_is_reached_already_is_told_at_once),
		ONE(test_in_error_the_last_receive_is_told_of),
		ONE(test_a_queue_grows_and_shrinks_while_it_is_used),
		ONE(test_a_size_that_cannot_be_changes_nothing),
		ONE(test_a_dead_process_leaves_receives_to_others),
		ONE(test_senders_of_several_processes_share_the_receives),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
