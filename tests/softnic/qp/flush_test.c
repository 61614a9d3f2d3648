// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs flush; devices: softnic */
/*
 * Flushes between two queue pairs of one process. The names of rdma-core 45 are softnic's own, so
 * that the test runs with older headers, too.
 */
#include "softnic/qp/flush.h"
#include "tests/support/verbs_puppet.h"

enum { FLUSH_ROOM = 4096, FLUSH_DEPTH = 4, PERSISTENT = 2 };

struct flush_pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	struct ibv_mr *mr, *without;
	uint8_t buf[FLUSH_ROOM];
};

static struct ibv_qp *make_flusher(struct flush_pair *f)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.cap = { FLUSH_DEPTH, FLUSH_DEPTH, 1, 1, 0 },
		.pd = f->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = FLUSH_OPS | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(f->ctx, &init);

	assert_non_null(qp);
	return qp;
}

static void connect_flusher(struct ibv_qp *qp, uint32_t dest, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.ah_attr = way_to_self(qp->context),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
	};

	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static int open_pair(void **state, int access)
{
	struct flush_pair *f = calloc(1, sizeof(*f));
	struct ibv_device **list = ibv_get_device_list(NULL);

	f->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	f->pd = ibv_alloc_pd(f->ctx);
	f->cq = ibv_create_cq(f->ctx, 4 * FLUSH_DEPTH, NULL, NULL, 0);
	f->mr = ibv_reg_mr(f->pd, f->buf, FLUSH_ROOM, ALL_ACCESS | FLUSH_ACCESS);
	f->without = ibv_reg_mr(f->pd, f->buf, FLUSH_ROOM, ALL_ACCESS);
	assert_non_null(f->mr);
	assert_non_null(f->without);
	f->a = make_flusher(f);
	f->b = make_flusher(f);
	connect_flusher(f->a, f->b->qp_num, access);
	connect_flusher(f->b, f->a->qp_num, access);
	*state = f;
	return 0;
}

static int with_rights(void **state)
{
	return open_pair(state, ALL_ACCESS | FLUSH_ACCESS);
}

static int without_rights(void **state)
{
	return open_pair(state, ALL_ACCESS);
}

static int close_pair(void **state)
{
	struct flush_pair *f = *state;

	assert_int_equal(ibv_destroy_qp(f->a), 0);
	assert_int_equal(ibv_destroy_qp(f->b), 0);
	assert_int_equal(ibv_dereg_mr(f->mr), 0);
	assert_int_equal(ibv_dereg_mr(f->without), 0);
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_int_equal(ibv_dealloc_pd(f->pd), 0);
	assert_int_equal(ibv_close_device(f->ctx), 0);
	free(f);
	return 0;
}

/* As ibv_wr_flush(). Return: the result of ibv_wr_complete(). */
static int post_flush(struct flush_pair *f, uint32_t rkey, uint64_t addr, size_t length,
		      uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(f->a);

	ibv_wr_start(ex);
	ex->wr_id = 7;
	ex->wr_flags = IBV_SEND_SIGNALED;
#ifdef HAVE_WR_FLUSH
	ibv_wr_flush(ex, rkey, addr, length, type, level);
#else
	((struct flush_qp_ex *)ex)->wr_flush(ex, rkey, addr, length, type, level);
#endif
	return ibv_wr_complete(ex);
}

static struct ibv_wc next_wc(struct flush_pair *f)
{
	uint64_t until_ms = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	while (!ibv_poll_cq(f->cq, 1, &wc)) {
		assert_true(now_ms() < until_ms);
		usleep(100);
	}
	return wc;
}

static void test_a_flush_completes_behind_its_writes(void **state)
{
	struct flush_pair *f = *state;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(f->a);
	uint64_t there = (uintptr_t)f->buf + 64;
	struct ibv_wc wc;

	memcpy(f->buf, "flushed", 8);
	ibv_wr_start(ex);
	ex->wr_id = 6;
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, f->mr->rkey, there);
	ibv_wr_set_sge(ex, f->mr->lkey, (uintptr_t)f->buf, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(post_flush(f, f->mr->rkey, there, 8, FLUSH_GLOBAL, FLUSH_RANGE), 0);
	wc = next_wc(f);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.opcode, FLUSH_WC);
	assert_memory_equal(f->buf + 64, "flushed", 8);
}

static void test_a_whole_region_needs_no_range(void **state)
{
	struct flush_pair *f = *state;

	assert_int_equal(post_flush(f, f->mr->rkey, 0, 0, FLUSH_GLOBAL, FLUSH_REGION), 0);
	assert_int_equal(next_wc(f).status, IBV_WC_SUCCESS);
}

static void test_a_range_beyond_the_region_is_refused(void **state)
{
	struct flush_pair *f = *state;
	uint64_t there = (uintptr_t)f->buf + 1;

	assert_int_equal(post_flush(f, f->mr->rkey, there, FLUSH_ROOM, FLUSH_GLOBAL, FLUSH_RANGE),
			 0);
	assert_int_equal(next_wc(f).status, IBV_WC_REM_ACCESS_ERR);
}

static void test_a_region_without_the_right_is_refused(void **state)
{
	struct flush_pair *f = *state;

	assert_int_equal(post_flush(f, f->without->rkey, 0, 0, FLUSH_GLOBAL, FLUSH_REGION), 0);
	assert_int_equal(next_wc(f).status, IBV_WC_REM_ACCESS_ERR);
}

static void test_a_queue_pair_without_the_right_refuses(void **state)
{
	struct flush_pair *f = *state;

	assert_int_equal(post_flush(f, f->mr->rkey, 0, 0, FLUSH_GLOBAL, FLUSH_REGION), 0);
	assert_int_equal(next_wc(f).status, IBV_WC_REM_INV_REQ_ERR);
}

static void test_persistence_is_refused(void **state)
{
	struct flush_pair *f = *state;

	assert_int_equal(post_flush(f, f->mr->rkey, 0, 0, PERSISTENT, FLUSH_REGION), EINVAL);
	assert_int_equal(post_flush(f, f->mr->rkey, 0, 0, FLUSH_GLOBAL, 2), EINVAL);
	assert_null(ibv_reg_mr(f->pd, f->buf, FLUSH_ROOM, ALL_ACCESS | FLUSH_ACCESS << 1));
	assert_int_equal(errno, EOPNOTSUPP);
}

#define FLUSH(test) cmocka_unit_test_setup_teardown(test, with_rights, close_pair)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FLUSH(test_a_flush_completes_behind_its_writes),
		FLUSH(test_a_whole_region_needs_no_range),
		FLUSH(test_a_range_beyond_the_region_is_refused),
		FLUSH(test_a_region_without_the_right_is_refused),
		cmocka_unit_test_setup_teardown(test_a_queue_pair_without_the_right_refuses,
						without_rights, close_pair),
		FLUSH(test_persistence_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
