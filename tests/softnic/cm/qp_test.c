// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm qp; devices: softnic */
/* QPs and SRQs created by an id, and their attributes. */
#include <rdma/rdma_verbs.h>

#include "cm_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

/* Enhanced connection establishment: vendor data that softnic only carries. */
static void each_side_learns_the_others_ece(void **state)
{
	struct ibv_ece a = { .vendor_id = 7, .options = 1 }, b = { .vendor_id = 7, .options = 2 },
		       got;
	struct rdma_conn_param param = { .qp_num = 1 };
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	assert_int_equal(rdma_set_local_ece(e->a, &a), 0);
	assert_int_equal(rdma_connect(e->a, &param), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_get_remote_ece(e->b, &got), 0);
	assert_int_equal(got.vendor_id, 7);
	assert_int_equal(got.options, 1);
	assert_int_equal(rdma_set_local_ece(e->b, &b), 0);
	assert_int_equal(rdma_accept(e->b, &param), 0);
	expect(e->a_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_get_remote_ece(e->a, &got), 0);
	assert_int_equal(got.options, 2);
	b.vendor_id = 0;
	assert_int_equal(rdma_set_local_ece(e->a, &b), -1);
	assert_int_equal(errno, EINVAL);
}

static void connect_with_srq(struct cm_ends *e)
{
	struct rdma_cm_event *event;

	create_qp(e->a);
	assert_ptr_equal(e->a->qp->srq, e->a->srq);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.srq, 1);
	e->b = event->id;
	rdma_ack_cm_event(event);
	create_qp(e->b);
	assert_int_equal(rdma_accept(e->b, NULL), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	assert_int_equal(expect(e->b_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	rdma_destroy_qp(e->a);
	rdma_destroy_srq(e->a);
	assert_null(e->a->srq);
}

static void an_id_with_an_srq_gives_it_to_its_qp(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct cm_ends *e = *state;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	assert_int_equal(rdma_create_srq(e->a, NULL, &srq), 0);
	assert_non_null(e->a->srq);
	connect_with_srq(e);
}

static void an_extended_srq_is_basic_or_refused(void **state)
{
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct cm_ends *e = *state;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	assert_int_equal(rdma_create_srq_ex(e->a, &srq), -1);
	assert_int_equal(errno, EINVAL);
	srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	srq.srq_type = IBV_SRQT_XRC;
	assert_int_equal(rdma_create_srq_ex(e->a, &srq), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	srq.srq_type = IBV_SRQT_BASIC;
	assert_int_equal(rdma_create_srq_ex(e->a, &srq), 0);
	connect_with_srq(e);
}

static void an_extended_qp_lives_in_the_pd_that_is_asked_for(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct cm_ends *e = *state;

	resolve(e, "127.0.0.1", 1);
	attr.pd = ibv_alloc_pd(e->a->verbs);
	assert_int_equal(rdma_create_qp_ex(e->a, &attr), 0);
	assert_ptr_equal(e->a->qp->pd, attr.pd);
	assert_ptr_equal(e->a->pd, attr.pd);
	assert_int_equal(rdma_create_qp_ex(e->a, &attr), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_qp(e->a);
	assert_int_equal(ibv_dealloc_pd(attr.pd), 0);
}

/* As rping does: the id then has a pointer to no QP. */
static void an_id_ends_after_a_qp_that_verbs_have_destroyed(void **state)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct cm_ends *e = *state;

	resolve(e, "127.0.0.1", 1);
	attr.send_cq = attr.recv_cq = ibv_create_cq(e->a->verbs, 2, NULL, NULL, 0);
	assert_int_equal(rdma_create_qp(e->a, NULL, &attr), 0);
	assert_int_equal(ibv_destroy_qp(e->a->qp), 0);
	assert_int_equal(ibv_destroy_cq(attr.send_cq), 0);
	assert_int_equal(rdma_destroy_id(e->a), 0);
	e->a = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_side_learns_the_others_ece),
		TEST(an_id_with_an_srq_gives_it_to_its_qp),
		TEST(an_extended_srq_is_basic_or_refused),
		TEST(an_extended_qp_lives_in_the_pd_that_is_asked_for),
		TEST(an_id_ends_after_a_qp_that_verbs_have_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
