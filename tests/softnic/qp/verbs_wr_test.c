// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs wr; devices: softnic rxe; timeout: 120 */
/* Posting by ibv_wr_*: each operation, the order of posts, and refusals. */
#include <arpa/inet.h>

#include "tests/support/verbs_puppet.h"

enum {
	ALL_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
};

static struct ibv_qp *create(struct endpoint *e, uint32_t comp_mask, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, SGES_MAX, SGES_MAX, INLINE_MAX },
		.pd = e->pd,
		.comp_mask = comp_mask,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(e->ctx, &init);
}

static uint64_t ops_of_device(void)
{
	return ALL_OPS | (on_softnic() ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0);
}

static const uint32_t with_ops = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

static int setup(void **state)
{
	struct puppet_pair *pair = calloc(1, sizeof(*pair));

	*state = pair;
	end_open(&pair->e, ALL_ACCESS);
	assert_int_equal(ibv_destroy_qp(pair->e.qp), 0);
	pair->e.qp = create(&pair->e, with_ops, ops_of_device());
	assert_non_null(pair->e.qp);
	puppet_start(&pair->p, &pair->e, ALL_ACCESS, &plain);
	return 0;
}

static struct ibv_qp_ex *start(struct endpoint *e, uint64_t wr_id)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e->qp);

	assert_non_null(ex);
	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	return ex;
}

static void finish(struct endpoint *e, struct ibv_qp_ex *ex, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_wr_complete(ex), 0);
	wc = wait_wc(e);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, ex->wr_id);
	assert_int_equal(wc.opcode, opcode);
}

static uint64_t peek(struct puppet_pair *pair, uint64_t offset)
{
	return tell(&pair->p, ORDER_PEEK, offset, 0, 0).value;
}

static void test_writes_and_reads_move_bytes(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_qp_ex *ex;

	memcpy(e->buf, "from-one", 8);
	ex = start(e, 10);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr + 64);
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf, 8);
	finish(e, ex, IBV_WC_RDMA_WRITE);
	ex = start(e, 11);
	ibv_wr_rdma_read(ex, e->remote.rkey, e->remote.addr + 64);
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf + 128, 8);
	finish(e, ex, IBV_WC_RDMA_READ);
	assert_memory_equal(e->buf + 128, "from-one", 8);
}

static void test_pieces_and_inline_data_are_gathered(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	const struct ibv_sge sges[] = {
		{ (uintptr_t)e->buf, 3, e->mr->lkey },
		{ (uintptr_t)e->buf + 100, 5, e->mr->lkey },
	};
	char one[] = "in", two[] = "line!!";
	const struct ibv_data_buf bufs[] = { { one, 2 }, { two, 6 } };
	struct ibv_qp_ex *ex;
	uint64_t got;

	skip_on_soft_roce("of a list, each piece counts as long as the first");
	memcpy(e->buf, "abc", 3);
	memcpy(e->buf + 100, "defgh", 5);
	ex = start(e, 1);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	ibv_wr_set_sge_list(ex, 2, sges);
	finish(e, ex, IBV_WC_RDMA_WRITE);
	got = peek(pair, 0);
	assert_memory_equal(&got, "abcdefgh", 8);

	ex = start(e, 2);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	ibv_wr_set_inline_data_list(ex, 2, bufs);
	memset(two, 0, sizeof(two)); /* free for reuse */
	finish(e, ex, IBV_WC_RDMA_WRITE);
	got = peek(pair, 0);
	assert_memory_equal(&got, "inline!!", 8);
}

static void test_sends_arrive_with_their_immediate(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;

	tell(&pair->p, ORDER_POST_RECV, 0, 64, 1);
	tell(&pair->p, ORDER_POST_RECV, 0, 64, 2);
	tell(&pair->p, ORDER_POST_RECV, 0, 64, 3);
	ex = start(e, 1);
	ibv_wr_send(ex);
	wr_give_inline(e, "hello");
	finish(e, ex, IBV_WC_SEND);
	wc = tell(&pair->p, ORDER_POLL, 0, 0, 0).wc;
	assert_int_equal(wc.byte_len, 5);
	assert_int_equal(wc.wc_flags & ~IBV_WC_GRH, 0);
	ex = start(e, 2);
	ibv_wr_send_imm(ex, htonl(77));
	finish(e, ex, IBV_WC_SEND);
	wc = tell(&pair->p, ORDER_POLL, 0, 0, 0).wc;
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(wc.wc_flags & ~IBV_WC_GRH, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(77));
	ex = start(e, 3);
	ibv_wr_rdma_write_imm(ex, e->remote.rkey, e->remote.addr, htonl(78));
	wr_give_inline(e, "12345678");
	finish(e, ex, IBV_WC_RDMA_WRITE);
	wc = tell(&pair->p, ORDER_POLL, 0, 0, 0).wc;
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(78));
	assert_int_equal(peek(pair, 0), *(const uint64_t *)"12345678");
}

static void test_atomics_change_and_return(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_qp_ex *ex;

	tell(&pair->p, ORDER_POKE, 8, 0, 40);
	ex = start(e, 1);
	ibv_wr_atomic_fetch_add(ex, e->remote.rkey, e->remote.addr + 8, 2);
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf, 8);
	finish(e, ex, IBV_WC_FETCH_ADD);
	assert_int_equal(*(uint64_t *)e->buf, 40);
	ex = start(e, 2);
	ibv_wr_atomic_cmp_swp(ex, e->remote.rkey, e->remote.addr + 8, 42, 7);
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf, 8);
	finish(e, ex, IBV_WC_COMP_SWAP);
	assert_int_equal(*(uint64_t *)e->buf, 42);
	assert_int_equal(peek(pair, 8), 7);
}

/* The value is copied at the post, also by a queue pair that takes no inline data. */
static void test_an_atomic_write_stores_8_bytes(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	uint64_t value = 0x1122334455667788;
	struct ibv_send_wr *bad;
	struct ibv_qp_ex *ex;
	struct test_wr w;

	skip_on_soft_roce("it has no atomic writes");
	ex = start(e, 1);
	ibv_wr_atomic_write(ex, e->remote.rkey, e->remote.addr + 16, &value);
	value = 0;
	finish(e, ex, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(peek(pair, 16), 0x1122334455667788);
	*(uint64_t *)(e->buf + 24) = 99;
	wr_make(&w, e, IBV_WR_ATOMIC_WRITE, 24, 8, 16);
	do_wr(e, &w, IBV_WC_SUCCESS);
	assert_int_equal(peek(pair, 16), 99);
	w.sge.length = 4;
	assert_int_equal(ibv_post_send(e->qp, &w.wr, &bad), EINVAL);
}

static void test_a_chain_is_posted_at_its_end_and_in_order(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_qp_ex *ex = start(e, 0);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < QUEUE_DEPTH; i++) {
		ex->wr_id = i;
		ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
		ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)e->buf, 8);
	}
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(e).wr_id, i);
}

static void test_an_aborted_or_invalid_post_leaves_nothing(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_sge sges[SGES_MAX + 1] = { { 0 } };
	uint8_t too_long[INLINE_MAX + 1] = { 0 };
	struct ibv_qp_ex *ex;
	int i;

	skip_on_soft_roce("more fits than was asked for");
	ex = start(e, 1);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	ibv_wr_abort(ex);

	ex = start(e, 2);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	ibv_wr_set_sge_list(ex, SGES_MAX + 1, sges);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ex = start(e, 3);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	ibv_wr_set_inline_data(ex, too_long, sizeof(too_long));
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ex = start(e, 4);
	for (i = 0; i < QUEUE_DEPTH + 1; i++)
		ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);

	ex = start(e, 5);
	ibv_wr_rdma_write(ex, e->remote.rkey, e->remote.addr);
	finish(e, ex, IBV_WC_RDMA_WRITE);
}

static void test_only_requested_features_exist(void **state)
{
	struct ibv_qp *qp;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	assert_null(ibv_qp_to_qp_ex(e.qp));
	assert_null(create(&e, with_ops, IBV_QP_EX_WITH_TSO));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create(&e, with_ops | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create(&e, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, ALL_OPS));
	assert_int_equal(errno, EINVAL);
	qp = create(&e, with_ops, IBV_QP_EX_WITH_SEND);
	assert_non_null(qp);
	assert_non_null(ibv_qp_to_qp_ex(qp)->wr_send);
	assert_null(ibv_qp_to_qp_ex(qp)->wr_rdma_write);
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	ibv_wr_send(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), EINVAL); /* not connected */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = create(&e, IBV_QP_INIT_ATTR_PD, 0);
	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	end_close(&e);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_writes_and_reads_move_bytes, setup, pair_down),
		cmocka_unit_test_setup_teardown(test_pieces_and_inline_data_are_gathered, setup,
						pair_down),
		cmocka_unit_test_setup_teardown(test_sends_arrive_with_their_immediate, setup,
						pair_down),
		cmocka_unit_test_setup_teardown(test_atomics_change_and_return, setup, pair_down),
		cmocka_unit_test_setup_teardown(test_an_atomic_write_stores_8_bytes, setup,
						pair_down),
		cmocka_unit_test_setup_teardown(test_a_chain_is_posted_at_its_end_and_in_order,
						setup, pair_down),
		cmocka_unit_test_setup_teardown(test_an_aborted_or_invalid_post_leaves_nothing,
						setup, pair_down),
		cmocka_unit_test(test_only_requested_features_exist),
	};

	return cmocka_run_group_tests_name("softnic ibv_wr", all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
