// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs state; devices: softnic rxe; timeout: 120 */
/* Queue pair states, posts that are refused, and the device's attributes. */
#include <arpa/inet.h>
#include <poll.h>

#include "tests/support/verbs_puppet.h"

enum {
	TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static int move(struct endpoint *e, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xfffffd,
		.min_rnr_timer = 3,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.ah_attr = way_to_self(e->ctx),
	};

	attr.ah_attr.dlid = 9;
	return ibv_modify_qp(e->qp, &attr, mask);
}

static const struct state_step {
	const char *name;
	enum ibv_qp_state to;
	int mask;
	int result;
} steps[] = {
	{ "reset to init lacks the port", IBV_QPS_INIT, TO_INIT & ~IBV_QP_PORT, EINVAL },
	{ "reset to rtr skips a state", IBV_QPS_RTR, TO_RTR, EINVAL },
	{ "reset to init", IBV_QPS_INIT, TO_INIT, 0 },
	{ "init to init changes rights", IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, 0 },
	{ "init to rts skips a state", IBV_QPS_RTS, TO_RTS, EINVAL },
	{ "init to rtr lacks the number", IBV_QPS_RTR, TO_RTR & ~IBV_QP_DEST_QPN, EINVAL },
	{ "init to rtr with what it may not have", IBV_QPS_RTR, TO_RTR | IBV_QP_TIMEOUT, EINVAL },
	{ "init to rtr", IBV_QPS_RTR, TO_RTR, 0 },
	{ "rtr to rts lacks the timeout", IBV_QPS_RTS, TO_RTS & ~IBV_QP_TIMEOUT, EINVAL },
	{ "rtr to rts", IBV_QPS_RTS, TO_RTS, 0 },
	{ "rts to rts changes the rnr timer", IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER, 0 },
	{ "rts to sqd", IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, 0 },
	{ "sqd to sqd changes the timeout", IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_TIMEOUT, 0 },
	{ "sqd to sqd changes no number", IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_DEST_QPN, EINVAL },
	{ "sqd to rtr is no way", IBV_QPS_RTR, TO_RTR, EINVAL },
	{ "sqd to rts", IBV_QPS_RTS, IBV_QP_STATE, 0 },
	{ "rts to init is no way", IBV_QPS_INIT, TO_INIT, EINVAL },
	{ "rts to error", IBV_QPS_ERR, IBV_QP_STATE, 0 },
	{ "error to rts is no way", IBV_QPS_RTS, TO_RTS, EINVAL },
	{ "error to reset", IBV_QPS_RESET, IBV_QP_STATE, 0 },
	{ "and again: reset to init", IBV_QPS_INIT, TO_INIT, 0 },
	{ "init to error", IBV_QPS_ERR, IBV_QP_STATE, 0 },
	{ "error to reset again", IBV_QPS_RESET, IBV_QP_STATE, 0 },
};

static void test_states_change_as_they_may(void **state)
{
	struct endpoint e;
	unsigned int i;

	(void)state;
	end_open(&e, ALL_ACCESS);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		print_message("# %s\n", steps[i].name);
		assert_int_equal(move(&e, steps[i].to, steps[i].mask), steps[i].result);
	}
	end_close(&e);
}

/* An attribute of a state change, and the first value out of range. */
static const struct value_case {
	const char *name;
	size_t offset, size;
	enum ibv_qp_state to;
	int mask;
	uint32_t allowed, refused;
} values[] = {
#define VALUE(field, to, mask, allowed, refused)                                             \
	{                                                                                    \
#field, offsetof(struct ibv_qp_attr, field),                                 \
			sizeof(((struct ibv_qp_attr *)0)->field), to, mask, allowed, refused \
	}
	VALUE(port_num, IBV_QPS_INIT, TO_INIT, 1, 0),
	VALUE(port_num, IBV_QPS_INIT, TO_INIT, 1, 2),
	VALUE(pkey_index, IBV_QPS_INIT, TO_INIT, 0, 1),
	VALUE(qp_access_flags, IBV_QPS_INIT, TO_INIT, IBV_ACCESS_OPTIONAL_RANGE | 0x3ff, 1 << 30),
	VALUE(dest_qp_num, IBV_QPS_RTR, TO_RTR, 0xffffff, 0x1000000),
	VALUE(path_mtu, IBV_QPS_RTR, TO_RTR, IBV_MTU_256, IBV_MTU_256 - 1),
	VALUE(path_mtu, IBV_QPS_RTR, TO_RTR, IBV_MTU_4096, IBV_MTU_4096 + 1),
	VALUE(ah_attr.port_num, IBV_QPS_RTR, TO_RTR, 1, 0),
	VALUE(ah_attr.port_num, IBV_QPS_RTR, TO_RTR, 1, 2),
	VALUE(ah_attr.grh.sgid_index, IBV_QPS_RTR, TO_RTR, 0, 255),
	VALUE(max_dest_rd_atomic, IBV_QPS_RTR, TO_RTR, 128, 129),
	VALUE(min_rnr_timer, IBV_QPS_RTR, TO_RTR, 31, 32),
	VALUE(timeout, IBV_QPS_RTS, TO_RTS, 31, 32),
	VALUE(retry_cnt, IBV_QPS_RTS, TO_RTS, 7, 8),
	VALUE(rnr_retry, IBV_QPS_RTS, TO_RTS, 7, 8),
	VALUE(max_rd_atomic, IBV_QPS_RTS, TO_RTS, 128, 129),
#undef VALUE
};

/* Change the state with valid attributes, except @c's. */
static int move_with(struct endpoint *e, const struct value_case *c, uint32_t value)
{
	struct ibv_qp_attr attr = {
		.qp_state = c->to,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xfffffd,
		.ah_attr = {
			.port_num = 1,
			.is_global = 1,
			.grh.dgid.raw = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 },
		},
	};

	memcpy((char *)&attr + c->offset, &value, c->size); /* little-endian only */
	return ibv_modify_qp(e->qp, &attr, c->mask);
}

static void test_a_value_beyond_its_limit_is_refused(void **state)
{
	struct ibv_device_attr limits;
	struct endpoint e;
	unsigned int i;

	(void)state;
	skip_on_soft_roce("most values are not looked at");
	end_open(&e, ALL_ACCESS);
	assert_int_equal(ibv_query_device(e.ctx, &limits), 0);
	assert_int_equal(limits.max_qp_rd_atom, 128);
	assert_int_equal(limits.max_qp_init_rd_atom, 128);
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct value_case *c = &values[i];

		print_message("# %s: %u, not %u\n", c->name, c->allowed, c->refused);
		assert_int_equal(move(&e, IBV_QPS_RESET, IBV_QP_STATE), 0);
		if (c->to != IBV_QPS_INIT)
			assert_int_equal(move(&e, IBV_QPS_INIT, TO_INIT), 0);
		if (c->to == IBV_QPS_RTS)
			assert_int_equal(move(&e, IBV_QPS_RTR, TO_RTR), 0);
		assert_int_equal(move_with(&e, c, c->refused), EINVAL);
		assert_int_equal(move_with(&e, c, c->allowed), 0);
	}
	end_close(&e);
}

/* From INIT; without a GRH if @to is NULL. */
static int lead_to(struct endpoint *e, const char *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xfffffd,
		.ah_attr = { .port_num = 1, .is_global = !!to },
	};

	assert_int_equal(move(e, IBV_QPS_RESET, IBV_QP_STATE), 0);
	assert_int_equal(move(e, IBV_QPS_INIT, TO_INIT), 0);
	if (to)
		assert_int_equal(inet_pton(AF_INET6, to, &attr.ah_attr.grh.dgid), 1);
	return ibv_modify_qp(e->qp, &attr, TO_RTR);
}

/* An address handle treats the address alike. */
static void test_a_path_leads_to_an_address_of_this_host(void **state)
{
	struct endpoint e;

	(void)state;
	skip_on_soft_roce("a path must have a GRH, and may lead anywhere");
	end_open(&e, ALL_ACCESS);
	assert_int_equal(lead_to(&e, "::ffff:127.0.0.1"), 0);
	assert_int_equal(lead_to(&e, NULL), 0);
	assert_int_equal(lead_to(&e, "::"), EHOSTUNREACH);
	assert_int_equal(lead_to(&e, "::ffff:203.0.113.9"), EHOSTUNREACH);
	assert_int_equal(lead_to(&e, "2001:db8::9"), EHOSTUNREACH);
	assert_int_equal(lead_to(&e, "::ffff:239.1.2.3"), EINVAL);
	assert_int_equal(lead_to(&e, "ff0e::9"), EINVAL);
	end_close(&e);
}

/* Higher bits are ignored, as on a NIC with 24-bit PSNs. */
static void test_a_packets_number_has_24_bits(void **state)
{
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xfffffd,
		.rq_psn = 0x7f000001,
		.sq_psn = 0xff000002,
	};
	struct ibv_qp_init_attr init;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	assert_int_equal(move(&e, IBV_QPS_INIT, TO_INIT), 0);
	attr.ah_attr = way_to_self(e.ctx);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(e.qp, &attr, TO_RTR), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(e.qp, &attr, TO_RTS), 0);
	assert_int_equal(ibv_query_qp(e.qp, &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init), 0);
	assert_int_equal(attr.rq_psn, 1);
	assert_int_equal(attr.sq_psn, 2);
	end_close(&e);
}

static void test_a_query_returns_the_set_attributes(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	move(&e, IBV_QPS_INIT, TO_INIT);
	move(&e, IBV_QPS_RTR, TO_RTR);
	move(&e, IBV_QPS_RTS, TO_RTS);
	assert_int_equal(ibv_query_qp(e.qp, &attr, TO_INIT | TO_RTR | TO_RTS | IBV_QP_CAP, &init),
			 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, 0xfffffd);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	if (!soft_roce_differs("there are no LIDs"))
		assert_int_equal(attr.ah_attr.dlid, 9);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.rnr_retry, 5);
	assert_int_equal(attr.min_rnr_timer, 3);
	if (!soft_roce_differs("the depth is that of the ring, one less than a power of two"))
		assert_int_equal(attr.cap.max_send_wr, QUEUE_DEPTH);
	assert_int_equal(attr.cap.max_inline_data, INLINE_MAX);
	assert_ptr_equal(init.send_cq, e.cq);
	end_close(&e);
}

static void test_a_queue_pair_can_be_used_again_after_a_reset(void **state)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct endpoint a, b;
	struct ibv_wc wc;
	struct test_wr w;
	int round;

	(void)state;
	end_open(&a, ALL_ACCESS);
	end_open(&b, ALL_ACCESS);
	for (round = 0; round < 3; round++) {
		struct endpoint_name to_b = end_name(&b), to_a = end_name(&a);

		end_connect(&a, &to_b, &plain);
		end_connect(&b, &to_a, &plain);
		assert_int_equal(post_recv(&b, round, 0, 64), 0);
		do_wr(&a, wr_make(&w, &a, IBV_WR_SEND, 0, 64, 0), IBV_WC_SUCCESS);
		wc = wait_wc(&b);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, round);
		assert_int_equal(post_recv(&b, 99, 0, 64), 0); /* and is forgotten */
		assert_int_equal(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE), 0);
		assert_int_equal(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE), 0);
		assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
	}
	end_close(&a);
	end_close(&b);
}

static void test_posting_refuses_a_bad_request_and_keeps_earlier_ones(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_send_wr *bad;
	struct test_wr w[3];

	wr_make(&w[0], e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	wr_make(&w[1], e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	wr_make(&w[2], e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	w[0].wr.next = &w[1].wr;
	w[1].wr.next = &w[2].wr;

	if (!soft_roce_differs("an unknown operation is found when it is executed")) {
		w[1].wr.opcode = 99;
		assert_int_equal(ibv_post_send(e->qp, &w[0].wr, &bad), EINVAL);
		assert_ptr_equal(bad, &w[1].wr);
		assert_int_equal(wait_wc(e).status, IBV_WC_SUCCESS);
	}

	w[1].wr.opcode = IBV_WR_RDMA_WRITE;
	w[1].wr.num_sge = e->cap.max_send_sge + 1;
	assert_int_equal(ibv_post_send(e->qp, &w[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &w[1].wr);
	assert_int_equal(wait_wc(e).status, IBV_WC_SUCCESS);

	w[1].wr.num_sge = 1;
	w[1].wr.send_flags |= IBV_SEND_INLINE;
	w[1].sge.length = e->cap.max_inline_data + 1;
	assert_int_equal(ibv_post_send(e->qp, &w[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &w[1].wr);
	assert_int_equal(wait_wc(e).status, IBV_WC_SUCCESS);
}

static void test_a_full_queue_refuses_one_more(void **state)
{
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv, recv[QUEUE_DEPTH + 1];
	struct test_wr w[QUEUE_DEPTH + 1];
	struct puppet_pair pair;
	int i;

	(void)state;
	skip_on_soft_roce("a queue holds more than was asked for, and refuses with -ENOMEM");
	end_open(&pair.e, ALL_ACCESS);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	for (i = 0; i <= QUEUE_DEPTH; i++) {
		wr_make(&w[i], &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0);
		w[i].wr.wr_id = i;
		w[i].wr.next = i < QUEUE_DEPTH ? &w[i + 1].wr : NULL;
		recv[i] = (struct ibv_recv_wr){ .next = i < QUEUE_DEPTH ? &recv[i + 1] : NULL };
	}
	assert_int_equal(ibv_post_send(pair.e.qp, &w[0].wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &w[QUEUE_DEPTH].wr);
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(&pair.e).wr_id, i);
	assert_int_equal(ibv_post_recv(pair.e.qp, &recv[0], &bad_recv), ENOMEM);
	assert_ptr_equal(bad_recv, &recv[QUEUE_DEPTH]);
	puppet_stop(&pair.p, &pair.e);
}

static void test_posting_needs_a_state_that_can(void **state)
{
	struct endpoint e;
	struct test_wr w;

	(void)state;
	skip_on_soft_roce("posting does not look at the state");
	end_open(&e, ALL_ACCESS);
	assert_int_equal(post(&e, wr_make(&w, &e, IBV_WR_RDMA_WRITE, 0, 8, 0)), EINVAL);
	assert_int_equal(post_recv(&e, 1, 0, 8), EINVAL);
	move(&e, IBV_QPS_INIT, TO_INIT);
	assert_int_equal(post_recv(&e, 1, 0, 8), 0);
	assert_int_equal(post(&e, &w), EINVAL);
	end_close(&e);
}

static void test_registering_refuses_invalid_arguments(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;

	errno = 0;
	assert_null(ibv_reg_mr(e->pd, e->buf, 8, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL); /* remote without local write */
	assert_null(ibv_reg_mr(e->pd, e->buf, 0, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(e->pd, (void *)4096, 8, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(e->pd, e->buf, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
}

static void test_a_region_may_begin_at_an_address_of_its_own(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	const uint64_t own = 0x1000 + (uintptr_t)(e->buf + 64) % 4096;
	struct ibv_mr *mr = ibv_reg_mr_iova(e->pd, e->buf + 64, 64, own, ALL_ACCESS);
	struct test_wr w;

	assert_non_null(mr);
	memset(e->buf + 64, 0x33, 64);
	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	w.sge = (struct ibv_sge){ own + 8, 8, mr->lkey };
	do_wr(e, &w, IBV_WC_SUCCESS);
	assert_true(tell(&pair->p, ORDER_PEEK, 0, 0, 0).value == 0x3333333333333333ull);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr_iova(e->pd, e->buf + 64, 64, own + 1, ALL_ACCESS));
	assert_int_equal(errno, EINVAL);
}

static void test_the_port_reports_its_attributes(void **state)
{
	struct puppet_pair *pair = *state;
	struct ibv_context *ctx = pair->e.ctx;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	union ibv_gid own;
	int beyond;

	assert_int_equal(inet_pton(AF_INET6, own_address(), &own), 1);
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.active_mtu, IBV_MTU_4096);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(port.gid_tbl_len >= 2);
	beyond = port.gid_tbl_len;
	assert_int_equal(ibv_query_port(ctx, 2, &port), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, own_gid_index(ctx), &gid, 0), 0);
	assert_int_equal(gid.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_memory_equal(&gid.gid, &own, sizeof(own));
	assert_int_equal(ibv_query_gid_ex(ctx, 1, beyond, &gid, 0),
			 soft_roce_differs("beyond the GID table it is EINVAL") ? EINVAL : ENODATA);
}

static void to_drained(struct endpoint *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(e->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, e->qp);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_SQD);
	assert_int_equal(attr.sq_draining, 0);
}

/* WRs in progress finish, later WRs wait, and receives go on. */
static void test_a_drained_queue_waits_until_it_may_go_on(void **state)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_wc wc;
	struct test_wr w;
	int i, begun = 0;

	skip_on_soft_roce("it does not go on");
	do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	for (i = 0; i < 4; i++) {
		wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, BUF_SIZE, 0);
		w.wr.wr_id = i;
		assert_int_equal(post(e, &w), 0);
	}
	to_drained(e);
	while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, begun++);
	}
	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	w.wr.wr_id = 4;
	assert_int_equal(post(e, &w), 0);
	assert_int_equal(post_recv(e, 77, 0, 64), 0);
	tell(&pair->p, ORDER_SEND, 0, 8, 0);
	assert_int_equal(wait_wc(e).wr_id, 77);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rts, IBV_QP_STATE), 0);
	for (i = begun; i < 5; i++)
		assert_int_equal(wait_wc(e).wr_id, i);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_states_change_as_they_may),
		cmocka_unit_test(test_a_value_beyond_its_limit_is_refused),
		cmocka_unit_test(test_a_path_leads_to_an_address_of_this_host),
		cmocka_unit_test(test_a_packets_number_has_24_bits),
		cmocka_unit_test(test_a_query_returns_the_set_attributes),
		cmocka_unit_test_setup_teardown(test_a_drained_queue_waits_until_it_may_go_on,
						pair_up, pair_down),
		cmocka_unit_test(test_a_queue_pair_can_be_used_again_after_a_reset),
		cmocka_unit_test(test_posting_refuses_a_bad_request_and_keeps_earlier_ones),
		cmocka_unit_test(test_a_full_queue_refuses_one_more),
		cmocka_unit_test(test_posting_needs_a_state_that_can),
		cmocka_unit_test(test_registering_refuses_invalid_arguments),
		cmocka_unit_test(test_a_region_may_begin_at_an_address_of_its_own),
		cmocka_unit_test(test_the_port_reports_its_attributes),
	};

	return cmocka_run_group_tests(all, pair_up, pair_down);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
