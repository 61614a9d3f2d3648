// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs mw; devices: softnic rxe; timeout: 120 */
/*
 * Memory windows, reregistered regions, and parent domains. Both ends are in the test's
 * process. The target has the window; the initiator probes its rights.
 */
#include "tests/support/verbs_puppet.h"

enum {
	REGION = ALL_ACCESS | IBV_ACCESS_MW_BIND,
	RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	WINDOW_AT = 4096,
	WINDOW_SIZE = 64,
};

struct mw_ends {
	struct endpoint a, b; /* a asks, b has the window */
	struct ibv_mw *mw;
};

static void connect_both(struct mw_ends *s)
{
	struct endpoint_name to_a = end_name(&s->a), to_b = end_name(&s->b);

	end_connect(&s->a, &to_b, &plain);
	end_connect(&s->b, &to_a, &plain);
}

static int setup_type(void **state, enum ibv_mw_type type)
{
	struct mw_ends *s = calloc(1, sizeof(*s));

	*state = s;
	end_open(&s->a, ALL_ACCESS);
	end_open(&s->b, REGION);
	connect_both(s);
	s->mw = ibv_alloc_mw(s->b.pd, type);
	assert_non_null(s->mw);
	return 0;
}

static int setup_1(void **state)
{
	return setup_type(state, IBV_MW_TYPE_1);
}

static int setup_2(void **state)
{
	return setup_type(state, IBV_MW_TYPE_2);
}

static int teardown(void **state)
{
	struct mw_ends *s = *state;

	if (s->mw)
		assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	end_close(&s->a);
	end_close(&s->b);
	free(s);
	return 0;
}

static struct ibv_mw_bind_info info(struct mw_ends *s, uint64_t offset, uint64_t length, int access)
{
	return (struct ibv_mw_bind_info){
		s->b.mr,
		(uintptr_t)s->b.buf + offset,
		length,
		access,
	};
}

static uint32_t next_key(const struct ibv_mw *mw)
{
	return (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
}

static struct ibv_send_wr bind_wr(struct mw_ends *s, struct ibv_mw_bind_info bind)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { s->mw, next_key(s->mw), bind },
	};
}

static enum ibv_wc_status done(struct endpoint *e, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = wait_wc(e);

	if (wc.status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
	return wc.status;
}

static enum ibv_wc_status bind_2(struct mw_ends *s, struct ibv_mw_bind_info bind)
{
	struct ibv_send_wr wr = bind_wr(s, bind), *bad;
	enum ibv_wc_status status;

	assert_int_equal(ibv_post_send(s->b.qp, &wr, &bad), 0);
	status = done(&s->b, IBV_WC_BIND_MW);
	if (!status)
		s->mw->rkey = wr.bind_mw.rkey;
	return status;
}

static enum ibv_wc_status bind_1(struct mw_ends *s, struct ibv_mw_bind_info bind)
{
	struct ibv_mw_bind b = { 5, IBV_SEND_SIGNALED, bind };

	assert_int_equal(ibv_bind_mw(s->b.qp, s->mw, &b), 0);
	return done(&s->b, IBV_WC_BIND_MW);
}

static enum ibv_wc_status invalidate(struct endpoint *e, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};

	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	return done(e, IBV_WC_LOCAL_INV);
}

/* Access @addr with key @rkey. */
static enum ibv_wc_status reach(struct mw_ends *s, enum ibv_wr_opcode op, uint32_t rkey,
				uint64_t addr, uint32_t length)
{
	struct test_wr w;

	wr_make(&w, &s->a, op, 0, length, 0);
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.wr.atomic.rkey = rkey;
		w.wr.wr.atomic.remote_addr = addr;
	} else {
		w.wr.wr.rdma.rkey = rkey;
		w.wr.wr.rdma.remote_addr = addr;
	}
	assert_int_equal(post(&s->a, &w), 0);
	return wait_wc(&s->a).status;
}

static enum ibv_wc_status reach_window(struct mw_ends *s, uint32_t rkey)
{
	return reach(s, IBV_WR_RDMA_WRITE, rkey, (uintptr_t)s->b.buf + WINDOW_AT, 8);
}

/* After an error, connect both ends again. */
static void connect_again(struct mw_ends *s)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(s->a.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(s->b.qp, &reset, IBV_QP_STATE), 0);
	connect_both(s);
}

static const struct reach_case {
	const char *name;
	int access;
	enum ibv_wr_opcode op;
	int64_t offset; /* from the window's start */
	uint32_t length;
	enum ibv_wc_status status;
} reach_cases[] = {
	{ "the whole window may be written", RIGHTS, IBV_WR_RDMA_WRITE, 0, WINDOW_SIZE,
	  IBV_WC_SUCCESS },
	{ "and read", RIGHTS, IBV_WR_RDMA_READ, 0, WINDOW_SIZE, IBV_WC_SUCCESS },
	{ "and changed by an atomic", RIGHTS, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, IBV_WC_SUCCESS },
	{ "one byte over the end is refused", RIGHTS, IBV_WR_RDMA_WRITE, 1, WINDOW_SIZE,
	  IBV_WC_REM_ACCESS_ERR },
	{ "one byte before the begin is refused", RIGHTS, IBV_WR_RDMA_READ, -1, 8,
	  IBV_WC_REM_ACCESS_ERR },
	{ "a write needs the window's right", IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 8,
	  IBV_WC_REM_ACCESS_ERR },
	{ "a read needs the window's right", IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 8,
	  IBV_WC_REM_ACCESS_ERR },
	{ "an atomic needs the window's right", IBV_ACCESS_REMOTE_WRITE,
	  IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, IBV_WC_REM_ACCESS_ERR },
};

static bool is_beyond(const struct reach_case *c)
{
	return c->offset < 0 || c->offset + c->length > WINDOW_SIZE;
}

static void try_reaches(void **state, enum ibv_mw_type type)
{
	unsigned int i;

	for (i = 0; i < sizeof(reach_cases) / sizeof(reach_cases[0]); i++) {
		const struct reach_case *c = &reach_cases[i];
		struct ibv_mw_bind_info bind;
		struct mw_ends *s;

		if (is_beyond(c) && soft_roce_differs("only the region's bounds are looked at"))
			continue;
		print_message("# %s\n", c->name);
		setup_type(state, type);
		s = *state;
		bind = info(s, WINDOW_AT, WINDOW_SIZE, c->access);
		assert_int_equal(type == IBV_MW_TYPE_1 ? bind_1(s, bind) : bind_2(s, bind), 0);
		assert_int_equal(reach(s, c->op, s->mw->rkey,
				       (uintptr_t)s->b.buf + WINDOW_AT + c->offset, c->length),
				 c->status);
		teardown(state);
	}
}

static void test_a_window_of_type_1_grants_its_range_only(void **state)
{
	try_reaches(state, IBV_MW_TYPE_1);
}

static void test_a_window_of_type_2_grants_its_range_only(void **state)
{
	try_reaches(state, IBV_MW_TYPE_2);
}

static void test_the_next_bind_of_type_1_takes_the_old_key_back(void **state)
{
	struct mw_ends *s = *state;
	uint32_t first;

	assert_int_equal(bind_1(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	first = s->mw->rkey;
	assert_int_equal(reach_window(s, first), IBV_WC_SUCCESS);
	assert_int_equal(bind_1(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_not_equal(s->mw->rkey, first);
	assert_int_equal(reach_window(s, s->mw->rkey), IBV_WC_SUCCESS);
	assert_int_equal(reach_window(s, first), IBV_WC_REM_ACCESS_ERR);
}

static void test_a_bind_to_nothing_unbinds_type_1(void **state)
{
	struct mw_ends *s = *state;

	assert_int_equal(bind_1(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_equal(bind_1(s, info(s, 0, 0, 0)), 0);
	assert_int_equal(reach_window(s, s->mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

static void test_type_1_is_reached_through_any_queue_pair_of_the_domain(void **state)
{
	struct mw_ends *s = *state;
	struct mw_ends t = { .mw = s->mw };

	assert_int_equal(bind_1(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	end_open_sharing(&t.a, &s->a);
	end_open_sharing(&t.b, &s->b);
	connect_both(&t);
	assert_int_equal(reach_window(&t, s->mw->rkey), IBV_WC_SUCCESS);
	end_close(&t.a);
	end_close(&t.b);
}

static void test_type_2_is_reached_through_its_own_queue_pair_only(void **state)
{
	struct mw_ends *s = *state;
	struct mw_ends t = { .mw = s->mw };

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	end_open_sharing(&t.a, &s->a);
	end_open_sharing(&t.b, &s->b);
	connect_both(&t);
	assert_int_equal(reach_window(&t, s->mw->rkey), IBV_WC_REM_ACCESS_ERR);
	end_close(&t.a);
	end_close(&t.b);
	assert_int_equal(reach_window(s, s->mw->rkey), IBV_WC_SUCCESS);
}

static void test_type_2_is_invalidated_by_its_owner_and_bound_again(void **state)
{
	struct mw_ends *s = *state;
	uint32_t first;

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	first = s->mw->rkey;
	assert_int_equal(invalidate(&s->b, first), IBV_WC_SUCCESS);
	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_equal(reach_window(s, s->mw->rkey), IBV_WC_SUCCESS);
	assert_int_equal(reach_window(s, first), IBV_WC_REM_ACCESS_ERR);
}

static void test_type_2_is_invalidated_by_its_peer(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_wc wc;
	struct test_wr w;

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_equal(post_recv(&s->b, 9, 0, 64), 0);
	wr_make(&w, &s->a, IBV_WR_SEND_WITH_INV, 0, 16, 0);
	w.wr.invalidate_rkey = s->mw->rkey;
	do_wr(&s->a, &w, IBV_WC_SUCCESS);
	wc = wait_wc(&s->b);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 9);
	if (!soft_roce_differs("the completion says IBV_WC_IP_CSUM_OK instead"))
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, s->mw->rkey);
	assert_int_equal(reach_window(s, s->mw->rkey), IBV_WC_REM_ACCESS_ERR);
	connect_again(s);
	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_equal(reach_window(s, s->mw->rkey), IBV_WC_SUCCESS);
}

static void test_a_peer_invalidates_nothing_but_a_window_of_type_2(void **state)
{
	struct mw_ends *s = *state;
	struct test_wr w;

	skip_on_soft_roce("it invalidates a region, too");
	assert_int_equal(post_recv(&s->b, 9, 0, 64), 0);
	wr_make(&w, &s->a, IBV_WR_SEND_WITH_INV, 0, 16, 0);
	w.wr.invalidate_rkey = s->b.mr->rkey;
	do_wr(&s->a, &w, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wait_wc(&s->b).status, IBV_WC_WR_FLUSH_ERR);
	connect_again(s);
	assert_int_equal(reach_window(s, s->b.mr->rkey), IBV_WC_SUCCESS);
}

static void test_only_an_own_window_can_be_invalidated(void **state)
{
	struct mw_ends *s = *state;

	skip_on_soft_roce("the status is LOC_QP_OP_ERR");
	assert_int_equal(invalidate(&s->b, s->b.mr->rkey), IBV_WC_MW_BIND_ERR);
	connect_again(s);
	assert_int_equal(invalidate(&s->b, s->mw->rkey), IBV_WC_MW_BIND_ERR); /* unbound */
	connect_again(s);
	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_equal(invalidate(&s->a, s->mw->rkey), IBV_WC_MW_BIND_ERR);
}

static void bind_is_refused(struct mw_ends *s, struct ibv_mw_bind_info bind)
{
	assert_int_equal(refused_status(bind_2(s, bind), IBV_WC_MW_BIND_ERR), IBV_WC_MW_BIND_ERR);
}

static void test_a_bound_window_of_type_2_is_not_bound_twice(void **state)
{
	struct mw_ends *s = *state;

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	bind_is_refused(s, info(s, 0, 8, RIGHTS));
}

static void test_a_bind_asks_for_no_more_than_the_region_has(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_mw_bind_info over = info(s, BUF_SIZE - 8, 9, RIGHTS);
	struct ibv_mw_bind_info no_right = info(s, 0, 8, RIGHTS);
	struct ibv_mr *mr;

	bind_is_refused(s, over);
	connect_again(s);
	mr = ibv_reg_mr(s->b.pd, s->b.buf, BUF_SIZE, ALL_ACCESS); /* no MW_BIND */
	no_right.mr = mr;
	bind_is_refused(s, no_right);
	connect_again(s);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(s->b.pd, s->b.buf, BUF_SIZE, IBV_ACCESS_MW_BIND);
	no_right.mr = mr;
	bind_is_refused(s, no_right);
	connect_again(s);
	no_right.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(bind_2(s, no_right), IBV_WC_SUCCESS);
	assert_int_equal(invalidate(&s->b, s->mw->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void test_a_region_stays_as_long_as_a_window_is_bound_to_it(void **state)
{
	struct mw_ends *s = *state;
	struct test_wr w;

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	assert_int_equal(ibv_dereg_mr(s->b.mr),
			 soft_roce_differs("deregistering gives EINVAL") ? EINVAL : EBUSY);
	if (on_softnic())
		assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					      0),
				 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(post_recv(&s->b, 9, 0, 64), 0);
	wr_make(&w, &s->a, IBV_WR_SEND_WITH_INV, 0, 0, 0);
	w.wr.invalidate_rkey = s->mw->rkey;
	do_wr(&s->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(s->b.mr), 0);
	s->b.mr = NULL;
}

static void test_a_window_that_is_freed_is_no_longer_reached(void **state)
{
	struct mw_ends *s = *state;
	uint32_t rkey;

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	rkey = s->mw->rkey;
	assert_int_equal(ibv_dealloc_pd(s->b.pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	s->mw = NULL;
	assert_int_equal(reach_window(s, rkey), IBV_WC_REM_ACCESS_ERR);
}

static void test_a_window_may_count_from_zero(void **state)
{
	struct mw_ends *s = *state;

	memset(s->b.buf + WINDOW_AT, 0, 8);
	memset(s->a.buf, 'z', 8);
	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS | IBV_ACCESS_ZERO_BASED)),
			 0);
	assert_int_equal(reach(s, IBV_WR_RDMA_WRITE, s->mw->rkey, 0, 8), IBV_WC_SUCCESS);
	assert_memory_equal(s->b.buf + WINDOW_AT, "zzzzzzzz", 8);
}

static void test_a_windows_key_is_no_local_key(void **state)
{
	struct mw_ends *s = *state;
	struct test_wr w;

	assert_int_equal(bind_2(s, info(s, WINDOW_AT, WINDOW_SIZE, RIGHTS)), 0);
	wr_make(&w, &s->b, IBV_WR_RDMA_WRITE, WINDOW_AT, 8, 0);
	w.sge.lkey = s->mw->rkey;
	do_wr(&s->b, &w,
	      soft_roce_differs("it is LOC_QP_OP_ERR") ? IBV_WC_LOC_QP_OP_ERR :
							 IBV_WC_LOC_PROT_ERR);
}

static void test_posting_refuses_a_bind_that_cannot_be_right(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_send_wr *bad, wr = bind_wr(s, info(s, 0, 8, RIGHTS));
	struct ibv_mw_bind b = { .bind_info = info(s, 0, 8, RIGHTS) };

	skip_on_soft_roce("posting does not look");
	wr.bind_mw.rkey ^= 0x100; /* not the program's to choose */
	assert_int_equal(ibv_post_send(s->b.qp, &wr, &bad), EINVAL);
	wr = bind_wr(s, info(s, 0, 8, RIGHTS));
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), EINVAL); /* another domain */
	assert_int_equal(ibv_bind_mw(s->b.qp, s->mw, &b), EINVAL); /* type 2 */
	assert_null(ibv_alloc_mw(s->b.pd, 3));
	assert_int_equal(errno, EINVAL);
}

static void test_a_region_that_lost_a_right_refuses_by_the_same_key(void **state)
{
	struct mw_ends *s = *state;
	uint32_t rkey = s->b.mr->rkey;

	skip_on_soft_roce("ibv_rereg_mr() is not there");
	assert_int_equal(reach_window(s, rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
			 0);
	assert_int_equal(s->b.mr->rkey, rkey);
	assert_int_equal(reach(s, IBV_WR_RDMA_READ, rkey, (uintptr_t)s->b.buf, 8), IBV_WC_SUCCESS);
	assert_int_equal(reach_window(s, rkey), IBV_WC_REM_ACCESS_ERR);
}

static void test_a_region_that_moved_is_reached_where_it_is_now(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_mr *mr = s->b.mr;
	uint64_t half = (uintptr_t)s->b.buf + BUF_SIZE / 2;

	skip_on_soft_roce("ibv_rereg_mr() is not there");
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)half, 64, 0), 0);
	assert_ptr_equal(mr->addr, (void *)half);
	assert_int_equal(mr->length, 64);
	assert_int_equal(reach(s, IBV_WR_RDMA_WRITE, mr->rkey, half, 64), IBV_WC_SUCCESS);
	assert_int_equal(reach(s, IBV_WR_RDMA_WRITE, mr->rkey, half, 65), IBV_WC_REM_ACCESS_ERR);
	connect_again(s);
	assert_int_equal(reach_window(s, mr->rkey), IBV_WC_REM_ACCESS_ERR);
}

static void test_a_region_may_change_its_domain(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_pd *pd;

	skip_on_soft_roce("ibv_rereg_mr() is not there");
	pd = ibv_alloc_pd(s->b.ctx);
	assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(s->b.mr->pd, pd);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(reach_window(s, s->b.mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_PD, s->b.pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	connect_again(s);
	assert_int_equal(reach_window(s, s->b.mr->rkey), IBV_WC_SUCCESS);
}

static void test_a_change_that_is_wrong_leaves_the_region_as_it_was(void **state)
{
	struct mw_ends *s = *state;

	skip_on_soft_roce("ibv_rereg_mr() is not there");
	assert_int_equal(ibv_rereg_mr(s->b.mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1 << 10),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_rereg_mr(s->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s->b.buf, 0,
				      0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(reach_window(s, s->b.mr->rkey), IBV_WC_SUCCESS);
}

static void test_a_region_may_count_from_zero_and_order_may_be_relaxed(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_mr *mr;

	skip_on_soft_roce("a region does not count from zero");
	mr = ibv_reg_mr(s->b.pd, s->b.buf, BUF_SIZE,
			ALL_ACCESS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(reach(s, IBV_WR_RDMA_WRITE, mr->rkey, BUF_SIZE - 8, 8), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr(s->b.pd, s->b.buf, BUF_SIZE, 1 << 10));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void test_a_parent_domain_is_its_domain(void **state)
{
	struct mw_ends *s = *state;
	struct ibv_td_init_attr td_init = { 0 };
	struct ibv_td *td = ibv_alloc_td(s->b.ctx, &td_init);
	struct ibv_parent_domain_init_attr init = { .pd = s->b.pd, .td = td };
	struct ibv_cq_init_attr_ex of_cq = { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_cq_ex *cq;
	struct ibv_pd *parent;
	struct ibv_mr *mr;

	skip_on_soft_roce("parent domains are not there");
	assert_non_null(td);
	parent = ibv_alloc_parent_domain(s->b.ctx, &init);
	assert_non_null(parent);
	mr = ibv_reg_mr(parent, s->b.buf, BUF_SIZE, ALL_ACCESS);
	assert_int_equal(reach_window(s, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	of_cq.parent_domain = parent;
	cq = ibv_create_cq_ex(s->b.ctx, &of_cq);
	assert_non_null(cq);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	of_cq.parent_domain = s->b.pd;
	assert_null(ibv_create_cq_ex(s->b.ctx, &of_cq));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(s->b.pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	init.pd = NULL;
	assert_null(ibv_alloc_parent_domain(s->b.ctx, &init));
	assert_int_equal(errno, EINVAL);
	init = (struct ibv_parent_domain_init_attr){
		.pd = s->b.pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT << 1,
	};
	assert_null(ibv_alloc_parent_domain(s->b.ctx, &init));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* Writes by a window's key go on until the invalidation is done; then no byte changes. */
static void test_no_copy_is_under_way_after_an_invalidation(void **state)
{
	struct mw_ends *s = *state;
	const uint32_t size = BUF_SIZE / 2;
	enum ibv_wc_status status;
	struct test_wr w;

	skip_on_soft_roce("a packet that is being copied is not waited for");
	assert_int_equal(bind_2(s, info(s, 0, size, RIGHTS)), 0);
	memset(s->a.buf, 1, size);
	wr_make(&w, &s->a, IBV_WR_RDMA_WRITE, 0, size, 0);
	w.wr.wr.rdma.rkey = s->mw->rkey;
	w.wr.wr.rdma.remote_addr = (uintptr_t)s->b.buf;
	assert_int_equal(post(&s->a, &w), 0);
	assert_int_equal(post(&s->a, &w), 0);
	/* Flushed if a refused write was faster: then that end copies no more. */
	status = invalidate(&s->b, s->mw->rkey);
	assert_true(status == IBV_WC_SUCCESS || status == IBV_WC_WR_FLUSH_ERR);
	memset(s->b.buf, 2, size);
	assert_int_equal(post(&s->a, &w), 0);
	wait_wc(&s->a);
	wait_wc(&s->a);
	assert_int_not_equal(wait_wc(&s->a).status, IBV_WC_SUCCESS);
	assert_int_equal(s->b.buf[0], 2);
	assert_memory_equal(s->b.buf, s->b.buf + 1, size - 1);
}

#define ONE(test) cmocka_unit_test_setup_teardown(test, setup_1, teardown)
#define TWO(test) cmocka_unit_test_setup_teardown(test, setup_2, teardown)

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_a_window_of_type_1_grants_its_range_only),
		cmocka_unit_test(test_a_window_of_type_2_grants_its_range_only),
		ONE(test_the_next_bind_of_type_1_takes_the_old_key_back),
		ONE(test_a_bind_to_nothing_unbinds_type_1),
		ONE(test_type_1_is_reached_through_any_queue_pair_of_the_domain),
		TWO(test_type_2_is_reached_through_its_own_queue_pair_only),
		TWO(test_type_2_is_invalidated_by_its_owner_and_bound_again),
		TWO(test_type_2_is_invalidated_by_its_peer),
		TWO(test_a_peer_invalidates_nothing_but_a_window_of_type_2),
		TWO(test_only_an_own_window_can_be_invalidated),
		TWO(test_a_bound_window_of_type_2_is_not_bound_twice),
		TWO(test_a_bind_asks_for_no_more_than_the_region_has),
		TWO(test_a_region_stays_as_long_as_a_window_is_bound_to_it),
		TWO(test_a_window_that_is_freed_is_no_longer_reached),
		TWO(test_a_window_may_count_from_zero),
		TWO(test_a_windows_key_is_no_local_key),
		TWO(test_posting_refuses_a_bind_that_cannot_be_right),
		TWO(test_no_copy_is_under_way_after_an_invalidation),
		TWO(test_a_region_that_lost_a_right_refuses_by_the_same_key),
		TWO(test_a_region_that_moved_is_reached_where_it_is_now),
		TWO(test_a_region_may_change_its_domain),
		TWO(test_a_change_that_is_wrong_leaves_the_region_as_it_was),
		TWO(test_a_region_may_count_from_zero_and_order_may_be_relaxed),
		TWO(test_a_parent_domain_is_its_domain),
	};

	return cmocka_run_group_tests_name("softnic memory windows", all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
