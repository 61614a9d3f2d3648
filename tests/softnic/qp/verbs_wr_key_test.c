// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs wr key; devices: softnic rxe; timeout: 120 */
/*
 * Memory windows and addresses by ibv_wr_*, and their fields in an extended CQ. Both ends are
 * in the test's process.
 */
#include <arpa/inet.h>

#include "tests/support/datagram_pair.h"

enum { RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, WINDOW_SIZE = 64 };

struct wr_key_ends {
	struct endpoint base, a, b; /* b has the window and an extended CQ */
};

static void open_one(struct endpoint *e, const struct endpoint *base, enum ibv_qp_type type,
		     uint64_t ops)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 4 * QUEUE_DEPTH,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, SGES_MAX, SGES_MAX, INLINE_MAX },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = base->pd,
		.send_ops_flags = ops,
	};

	*e = *base;
	e->shares = true;
	e->channel = ibv_create_comp_channel(e->ctx);
	cq.channel = e->channel;
	e->cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(e->ctx, &cq));
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp_ex(e->ctx, &init);
	assert_non_null(e->qp);
}

static void open_both(struct wr_key_ends *s, enum ibv_qp_type type, uint64_t ops)
{
	end_open(&s->base, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	open_one(&s->a, &s->base, type, ops);
	open_one(&s->b, &s->base, type, ops);
}

static int setup_connected(void **state)
{
	struct wr_key_ends *s = calloc(1, sizeof(*s));
	struct endpoint_name to_a, to_b;

	*state = s;
	open_both(s, IBV_QPT_RC,
		  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV |
			  IBV_QP_EX_WITH_RDMA_WRITE);
	to_a = end_name(&s->a);
	to_b = end_name(&s->b);
	end_connect(&s->a, &to_b, &plain);
	end_connect(&s->b, &to_a, &plain);
	return 0;
}

static int setup_datagrams(void **state)
{
	struct wr_key_ends *s = calloc(1, sizeof(*s));

	*state = s;
	open_both(s, IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_IMM);
	to_init(&s->a);
	to_init(&s->b);
	to_ready(&s->a, 0);
	to_ready(&s->b, 0);
	return 0;
}

static int teardown(void **state)
{
	struct wr_key_ends *s = *state;

	end_close(&s->a);
	end_close(&s->b);
	end_close(&s->base);
	free(s);
	return 0;
}

static struct ibv_qp_ex *start(struct endpoint *e)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e->qp);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	return ex;
}

static enum ibv_wc_status finish(struct endpoint *e)
{
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(e->qp)), 0);
	return wait_wc(e).status;
}

static enum ibv_wc_status bind_window(struct endpoint *e, struct ibv_mw *mw)
{
	const struct ibv_mw_bind_info info = { e->mr, (uintptr_t)e->buf, WINDOW_SIZE, RIGHTS };
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	enum ibv_wc_status status;

	ibv_wr_bind_mw(start(e), mw, rkey, &info);
	status = finish(e);
	if (!status)
		mw->rkey = rkey;
	return status;
}

static enum ibv_wc_status write_by(struct endpoint *e, uint32_t rkey)
{
	ibv_wr_rdma_write(start(e), rkey, (uintptr_t)e->buf);
	wr_give_inline(e, "12345678");
	return finish(e);
}

/* Start reading the next completion. */
static struct ibv_cq_ex *begin_to_read(struct endpoint *e)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)e->cq;
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t deadline = now_ms() + PATIENCE_MS;
	int rc;

	while ((rc = ibv_start_poll(ex, &attr)) == ENOENT && now_ms() < deadline)
		usleep(20);
	assert_int_equal(rc, 0);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	return ex;
}

static void test_a_window_is_bound_used_and_invalidated_by_its_owner(void **state)
{
	struct wr_key_ends *s = *state;
	struct ibv_mw *mw = ibv_alloc_mw(s->b.pd, IBV_MW_TYPE_2);

	assert_int_equal(bind_window(&s->b, mw), IBV_WC_SUCCESS);
	assert_int_equal(write_by(&s->a, mw->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(s->b.buf, "12345678", 8);
	ibv_wr_local_inv(start(&s->b), mw->rkey);
	assert_int_equal(finish(&s->b), IBV_WC_SUCCESS);
	assert_int_equal(write_by(&s->a, mw->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void test_a_peers_send_invalidates_and_says_which(void **state)
{
	struct wr_key_ends *s = *state;
	struct ibv_mw *mw = ibv_alloc_mw(s->b.pd, IBV_MW_TYPE_2);
	struct ibv_qp_ex *qp;
	struct ibv_cq_ex *cq;

	assert_int_equal(bind_window(&s->b, mw), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&s->b, 9, 1024, 64), 0);
	qp = start(&s->a);
	ibv_wr_send_inv(qp, mw->rkey);
	wr_give_inline(&s->a, "done");
	assert_int_equal(finish(&s->a), IBV_WC_SUCCESS);
	cq = begin_to_read(&s->b);
	assert_int_equal(cq->wr_id, 9);
	assert_int_equal(ibv_wc_read_byte_len(cq), 4);
	if (!soft_roce_differs("the completion says IBV_WC_IP_CSUM_OK instead"))
		assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	assert_int_equal(ibv_wc_read_invalidated_rkey(cq), mw->rkey);
	ibv_end_poll(cq);
	assert_int_equal(write_by(&s->a, mw->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void test_a_datagram_goes_where_its_address_says_with_its_immediate(void **state)
{
	struct wr_key_ends *s = *state;
	struct ibv_ah *ah = make_ah(&s->a, own_address());
	struct ibv_qp_ex *qp;
	struct ibv_cq_ex *cq;

	assert_non_null(ah);
	assert_int_equal(post_recv(&s->b, 7, 0, GRH + 8), 0);
	qp = start(&s->a);
	ibv_wr_send_imm(qp, htonl(55));
	ibv_wr_set_ud_addr(qp, ah, s->b.qp->qp_num, QKEY);
	wr_give_inline(&s->a, "datagram");
	assert_int_equal(finish(&s->a), IBV_WC_SUCCESS);
	cq = begin_to_read(&s->b);
	assert_int_equal(cq->wr_id, 7);
	assert_int_equal(ibv_wc_read_src_qp(cq), s->a.qp->qp_num);
	assert_int_equal(ibv_wc_read_byte_len(cq), GRH + 8);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(ibv_wc_read_imm_data(cq), htonl(55));
	ibv_end_poll(cq);
	assert_memory_equal(s->b.buf + GRH, "datagram", 8);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(
			test_a_window_is_bound_used_and_invalidated_by_its_owner, setup_connected,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_peers_send_invalidates_and_says_which,
						setup_connected, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_datagram_goes_where_its_address_says_with_its_immediate,
			setup_datagrams, teardown),
	};

	return cmocka_run_group_tests_name("softnic ibv_wr with keys and addresses", all, NULL,
					   NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
