// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs error; devices: softnic rxe; timeout: 120 */
/* Every error of a WR, and what each end learns. */
#include <sys/mman.h>

#include "tests/support/verbs_puppet.h"

static const struct manners impatient = { .timeout = 14, .retry_cnt = 6 };
enum { IMPATIENT_MS = 7 * 67 };

/*
 * Soft-RoCE's timers count ticks from the last that the kernel has noted. If a guest's CPU had to
 * wait for its host, that one is as old as the wait was long.
 */
static uint64_t least_ms(void)
{
	return soft_roce_differs("each retry is some ticks too soon") ? IMPATIENT_MS / 2 :
									IMPATIENT_MS;
}

static void start(struct puppet_pair *pair, int access, const struct manners *m)
{
	end_open(&pair->e, ALL_ACCESS);
	puppet_start(&pair->p, &pair->e, access, m);
}

static enum ibv_qp_state state_of(struct endpoint *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* Operations allowed on a region of BUF_SIZE bytes with the given rights. */
static const struct access_case {
	const char *name;
	int access;
	enum ibv_wr_opcode op;
	int64_t local_offset, remote_offset;
	uint32_t length;
	uint32_t lkey_flip, rkey_flip;
	enum ibv_wc_status status;
} access_cases[] = {
	{ "a write up to the last byte is done", ALL_ACCESS, IBV_WR_RDMA_WRITE, 0, BUF_SIZE - 8, 8,
	  0, 0, IBV_WC_SUCCESS },
	{ "a write one byte over the end is refused", ALL_ACCESS, IBV_WR_RDMA_WRITE, 0,
	  BUF_SIZE - 7, 8, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "a write one byte before the start is refused", ALL_ACCESS, IBV_WR_RDMA_WRITE, 0, -1, 8,
	  0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "a read that begins at the end is refused", ALL_ACCESS, IBV_WR_RDMA_READ, 0, BUF_SIZE, 1,
	  0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "an address that wraps around is refused", ALL_ACCESS, IBV_WR_RDMA_READ, 0, INT64_MIN, 8,
	  0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "a key of another generation is refused", ALL_ACCESS, IBV_WR_RDMA_READ, 0, 0, 8, 0, 1,
	  IBV_WC_REM_ACCESS_ERR },
	{ "a key of no region is refused", ALL_ACCESS, IBV_WR_RDMA_READ, 0, 0, 8, 0, 0x80000000,
	  IBV_WC_REM_ACCESS_ERR },
	{ "a write without the right is refused", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	  IBV_WR_RDMA_WRITE, 0, 0, 8, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "a read without the right is refused", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	  IBV_WR_RDMA_READ, 0, 0, 8, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "an atomic without the right is refused",
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8, 0,
	  0, IBV_WC_REM_ACCESS_ERR },
	{ "an atomic at an odd address is refused", ALL_ACCESS, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4,
	  8, 0, 0, IBV_WC_REM_INV_REQ_ERR },
	{ "an atomic write to an odd address is refused", ALL_ACCESS, IBV_WR_ATOMIC_WRITE, 0, 4, 8,
	  0, 0, IBV_WC_REM_INV_REQ_ERR },
	{ "an atomic write needs the right of writes only",
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_WRITE, 0, 0, 8, 0, 0,
	  IBV_WC_SUCCESS },
	{ "an atomic write without the right is refused",
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_WRITE, 0, 0, 8, 0, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "an atomic write over the end is refused", ALL_ACCESS, IBV_WR_ATOMIC_WRITE, 0, BUF_SIZE,
	  8, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "an atomic write from a key of no region is refused", ALL_ACCESS, IBV_WR_ATOMIC_WRITE, 0,
	  0, 8, 1, 0, IBV_WC_LOC_PROT_ERR },
	{ "a local key of no region is refused", ALL_ACCESS, IBV_WR_RDMA_WRITE, 0, 0, 8, 1, 0,
	  IBV_WC_LOC_PROT_ERR },
	{ "a local range over the end is refused", ALL_ACCESS, IBV_WR_RDMA_WRITE, BUF_SIZE - 7, 0,
	  8, 0, 0, IBV_WC_LOC_PROT_ERR },
	{ "nothing at all needs no key", ALL_ACCESS, IBV_WR_RDMA_WRITE, 0, 0, 0, 1, 1,
	  IBV_WC_SUCCESS },
};

static enum ibv_wc_status wrong_local_key(void)
{
	return soft_roce_differs("it is LOC_QP_OP_ERR, not LOC_PROT_ERR") ? IBV_WC_LOC_QP_OP_ERR :
									    IBV_WC_LOC_PROT_ERR;
}

static void test_access_is_checked(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(access_cases) / sizeof(access_cases[0]); i++) {
		const struct access_case *c = &access_cases[i];
		struct puppet_pair pair;
		bool has_event;
		struct test_wr w;

		if (c->op == IBV_WR_ATOMIC_WRITE && soft_roce_differs("it has no atomic writes"))
			continue;
		if (c->status == IBV_WC_REM_INV_REQ_ERR &&
		    soft_roce_differs("posting refuses an atomic at an odd address"))
			continue;
		print_message("# %s\n", c->name);
		start(&pair, c->access, &plain);
		wr_make(&w, &pair.e, c->op, c->local_offset, c->length, c->remote_offset);
		w.sge.lkey ^= c->lkey_flip;
		w.wr.wr.rdma.rkey ^= c->rkey_flip;
		if (c->op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			w.wr.wr.atomic.rkey ^= c->rkey_flip;
		do_wr(&pair.e, &w, c->status && c->lkey_flip ? wrong_local_key() : c->status);
		assert_int_equal(state_of(&pair.e), c->status ? IBV_QPS_ERR : IBV_QPS_RTS);
		has_event = !soft_roce_differs("the target gets no event");
		if (has_event && c->status == IBV_WC_REM_ACCESS_ERR)
			assert_int_equal(tell(&pair.p, ORDER_ASYNC_EVENT, 0, 0, 0).value,
					 IBV_EVENT_QP_ACCESS_ERR);
		if (has_event && c->status == IBV_WC_REM_INV_REQ_ERR)
			assert_int_equal(tell(&pair.p, ORDER_ASYNC_EVENT, 0, 0, 0).value,
					 IBV_EVENT_QP_REQ_ERR);
		puppet_stop(&pair.p, &pair.e);
	}
}

static void test_reads_and_atomics_need_a_depth_at_both_ends(void **state)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct manners bears_none = plain, makes_none = plain;
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	bears_none.bears_no_reads = makes_none.makes_no_reads = true;
	for (i = 0; i < 4; i++) {
		if (i >= 2 && soft_roce_differs("who may have none under way waits for ever"))
			break;
		start(&pair, ALL_ACCESS, i < 2 ? &bears_none : &makes_none);
		do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
		do_wr(&pair.e, wr_make(&w, &pair.e, ops[i % 2], 0, 8, 0),
		      i < 2 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_QP_OP_ERR);
		assert_int_equal(state_of(&pair.e), IBV_QPS_ERR);
		puppet_stop(&pair.p, &pair.e);
	}
}

static void test_a_region_of_another_domain_is_refused(void **state)
{
	struct puppet_pair pair;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct test_wr w;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	pd = ibv_alloc_pd(pair.e.ctx);
	mr = ibv_reg_mr(pd, pair.e.buf, BUF_SIZE, ALL_ACCESS);
	assert_non_null(mr);
	wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	w.sge.lkey = mr->lkey;
	do_wr(&pair.e, &w, wrong_local_key());
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	ibv_dereg_mr(mr);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	puppet_stop(&pair.p, &pair.e);
}

enum { PAGES_BYTES = 64 << 10 };
#define APART (64ull << 30)
enum loss { READ_ONLY, UNTOUCHABLE, UNMAPPED, CUT_OFF };

/* The requester's own memory has gone: only the requester gets an error, and only its QP ends. */
static const struct lost_case {
	const char *name;
	enum ibv_wr_opcode op;
	uint32_t length;
	enum loss loss;
} lost_cases[] = {
	{ "a small write", IBV_WR_RDMA_WRITE, 8, UNTOUCHABLE },
	{ "a large write", IBV_WR_RDMA_WRITE, PAGES_BYTES, UNTOUCHABLE },
	{ "a small write from a file that is shorter", IBV_WR_RDMA_WRITE, 8, CUT_OFF },
	{ "a small send", IBV_WR_SEND, 8, UNTOUCHABLE },
	{ "a large send", IBV_WR_SEND, PAGES_BYTES, UNTOUCHABLE },
	{ "a large send from a file that is shorter", IBV_WR_SEND, PAGES_BYTES, CUT_OFF },
	{ "a small read", IBV_WR_RDMA_READ, 8, READ_ONLY },
	{ "a large read", IBV_WR_RDMA_READ, PAGES_BYTES, READ_ONLY },
	{ "a large read into a file that is shorter", IBV_WR_RDMA_READ, PAGES_BYTES, CUT_OFF },
	{ "an atomic where nothing is", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, UNMAPPED },
};

/* Small memory goes as a whole; of large memory, the second half. */
static void lose(const struct lost_case *c, char *map, int fd)
{
	size_t kept = c->length < PAGES_BYTES ? 0 : PAGES_BYTES / 2, lost = PAGES_BYTES - kept;

	switch (c->loss) {
	case READ_ONLY:
	case UNTOUCHABLE:
		assert_int_equal(mprotect(map + kept, lost,
					  c->loss == READ_ONLY ? PROT_READ : PROT_NONE),
				 0);
		break;
	case UNMAPPED:
		assert_int_equal(munmap(map + kept, lost), 0);
		break;
	case CUT_OFF:
		assert_int_equal(ftruncate(fd, kept), 0);
		break;
	}
}

/* Far below the kernel's mmap area: softnic's mappings must not land where memory was lost. */
static void *map_apart(int fd)
{
	char *usual = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *apart = mmap(usual - APART, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(usual, MAP_FAILED);
	assert_ptr_equal(apart, usual - APART);
	munmap(usual, PAGES_BYTES);
	return apart;
}

/* The peer needs seconds to notice, and keeps its receive until then. */
static void assert_lives(struct puppet *p)
{
	assert_int_equal(tell(p, ORDER_SEND, 0, 8, 0).result, 0);
	assert_int_equal(tell(p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(tell(p, ORDER_POLL, 0, 0, 0).wc.wr_id, 7);
}

static void lose_memory(const struct lost_case *c)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct ibv_mr *mr;
	struct puppet_pair pair;
	struct test_wr w;
	void *map;

	assert_int_equal(ftruncate(fd, PAGES_BYTES), 0);
	map = map_apart(fd);
	start(&pair, ALL_ACCESS, &impatient);
	mr = ibv_reg_mr(pair.e.pd, map, PAGES_BYTES, ALL_ACCESS);
	assert_non_null(mr);
	assert_int_equal(tell(&pair.p, ORDER_POST_RECV, 0, PAGES_BYTES, 7).result, 0);
	tell(&pair.p, ORDER_POKE, 0, 0, 5);
	wr_make(&w, &pair.e, c->op, 0, c->length, 0);
	if (c->op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		w.wr.wr.atomic.compare_add = 1;
	w.sge = (struct ibv_sge){ (uintptr_t)map, c->length, mr->lkey };
	lose(c, map, fd);
	do_wr(&pair.e, &w, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(&pair.e), IBV_QPS_ERR);
	if (c->length < PAGES_BYTES) {
		/* Another host has added before the answer finds no memory here. */
		uint64_t value = over_wire() && c->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 6 : 5;

		assert_int_equal(tell(&pair.p, ORDER_PEEK, 0, 0, 0).value, value);
		assert_lives(&pair.p);
	}
	ibv_dereg_mr(mr);
	if (c->loss != UNMAPPED)
		munmap(map, PAGES_BYTES);
	close(fd);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_queue_pair_with_lost_memory_fails_alone(void **state)
{
	unsigned int i;

	(void)state;
	skip_on_soft_roce("what is registered is pinned");
	for (i = 0; i < sizeof(lost_cases) / sizeof(lost_cases[0]); i++) {
		/*
		 * With shared memory the CPU copies everything but atomics, and a process whose
		 * memory is gone gets SIGBUS.
		 */
		if (getenv("TEST_MEMORY") && lost_cases[i].op != IBV_WR_ATOMIC_FETCH_AND_ADD)
			continue;
		/* Between hosts this process copies its own small pieces as a debugger would. */
		if (over_wire() && lost_cases[i].length <= 8 && lost_cases[i].loss <= UNTOUCHABLE)
			continue;
		print_message("# %s\n", lost_cases[i].name);
		lose_memory(&lost_cases[i]);
	}
}

static void test_a_receive_that_is_too_short_fails_at_both_ends(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;
	bool differs;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	tell(&pair.p, ORDER_POST_RECV, 0, 15, 1);
	tell(&pair.p, ORDER_POST_RECV, 0, 64, 2);
	differs = soft_roce_differs("it is REM_OP_ERR, and LOC_QP_OP_ERR at the other end");
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_SEND, 0, 16, 0),
	      differs ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.status,
			 differs ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR);
	assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_WR_FLUSH_ERR);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_receive_with_a_wrong_key_fails_at_both_ends(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	tell(&pair.p, ORDER_POST_WRONG_RECV, 0, 16, 0);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_SEND, 0, 16, 0), IBV_WC_REM_OP_ERR);
	assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.status, wrong_local_key());
	puppet_stop(&pair.p, &pair.e);
}

/* The receiver learns which buffer is gone. */
static void test_a_receive_into_lost_memory_fails_at_both_ends(void **state)
{
	struct ibv_sge sge = { .length = PAGES_BYTES };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct puppet_pair pair;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t length;
	void *map;

	(void)state;
	skip_on_soft_roce("what is registered is pinned");
	map = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (length = 8; length <= PAGES_BYTES; length *= PAGES_BYTES / 8) {
		start(&pair, ALL_ACCESS, &plain);
		assert_int_equal(ftruncate(fd, PAGES_BYTES), 0);
		mr = ibv_reg_mr(pair.e.pd, map, PAGES_BYTES, ALL_ACCESS);
		assert_non_null(mr);
		sge.addr = (uintptr_t)map;
		sge.lkey = mr->lkey;
		assert_int_equal(ibv_post_recv(pair.e.qp, &wr, &bad), 0);
		assert_int_equal(post_recv(&pair.e, 8, 0, 64), 0);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(tell(&pair.p, ORDER_SEND, 0, length, 0).result, 0);
		assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_REM_OP_ERR);
		wc = wait_wc(&pair.e);
		assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(wc.wr_id, 7);
		assert_int_equal(wait_wc(&pair.e).status, IBV_WC_WR_FLUSH_ERR);
		ibv_dereg_mr(mr);
		puppet_stop(&pair.p, &pair.e);
	}
	munmap(map, PAGES_BYTES);
	close(fd);
}

static void test_a_receiver_that_is_late_is_waited_for(void **state)
{
	struct ibv_wc wc;
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	assert_int_equal(post(&pair.e, wr_make(&w, &pair.e, IBV_WR_SEND, 0, 16, 0)), 0);
	usleep(50000);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	tell(&pair.p, ORDER_POST_RECV, 0, 16, 1);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_receiver_that_is_never_ready_uses_up_the_retries(void **state)
{
	const struct manners few = {
		.min_rnr_timer = 18 /* 10 ms */, .rnr_retry = 3, .timeout = 14, .retry_cnt = 6
	};
	uint64_t begin;
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, ALL_ACCESS, &few);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 16, 0), IBV_WC_SUCCESS);
	begin = now_ms();
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_SEND, 0, 16, 0), IBV_WC_RNR_RETRY_EXC_ERR);
	assert_true(now_ms() - begin >= 15); /* the upper bound depends on the machine */
	puppet_stop(&pair.p, &pair.e);
}

static void test_after_an_error_the_rest_is_flushed_in_order(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	for (i = 0; i < 4; i++)
		assert_int_equal(post_recv(&pair.e, 100 + i, 0, 64), 0);
	for (i = 0; i < 6; i++) {
		/* The first write is large, to queue other writes behind the second. */
		wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, i ? 8 : BUF_SIZE, 0);
		w.wr.wr_id = i;
		w.wr.wr.rdma.rkey ^= i == 1;
		w.wr.send_flags = i & 1 ? 0 : IBV_SEND_SIGNALED;
		assert_int_equal(post(&pair.e, &w), 0);
	}
	for (i = 0; i < 6; i++) {
		struct ibv_wc wc = wait_wc(&pair.e);

		while (wc.wr_id >= 100) /* receives are flushed in an order of their own */
			wc = wait_wc(&pair.e);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, i == 0 ? IBV_WC_SUCCESS :
					    i == 1 ? IBV_WC_REM_ACCESS_ERR :
						     IBV_WC_WR_FLUSH_ERR);
	}
	puppet_stop(&pair.p, &pair.e);
}

static void test_in_the_error_state_posts_are_flushed(void **state)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct puppet_pair pair;
	struct ibv_wc wc;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	for (i = 0; i < 3; i++)
		assert_int_equal(post_recv(&pair.e, i, 0, 64), 0);
	assert_int_equal(ibv_modify_qp(pair.e.qp, &error, IBV_QP_STATE), 0);
	for (i = 0; i < 3; i++) {
		wc = wait_wc(&pair.e);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	if (!soft_roce_differs("a receive that is posted later is not flushed")) {
		assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
		assert_int_equal(wait_wc(&pair.e).wr_id, 7);
	}
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_WR_FLUSH_ERR);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_peer_in_the_error_state_does_not_answer(void **state)
{
	struct puppet_pair pair;
	uint64_t begin;
	struct test_wr w;

	(void)state;
	start(&pair, ALL_ACCESS, &impatient);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	tell(&pair.p, ORDER_TO_ERROR, 0, 0, 0);
	begin = now_ms();
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_RETRY_EXC_ERR);
	assert_true(now_ms() - begin >= least_ms());
	puppet_stop(&pair.p, &pair.e);
}

static void test_the_error_is_polled_before_the_flushed_entries(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, ALL_ACCESS, &plain);
	assert_int_equal(post_recv(&pair.e, 9, 0, 64), 0);
	wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	w.wr.wr.rdma.rkey ^= 1;
	assert_int_equal(post(&pair.e, &w), 0);
	while (state_of(&pair.e) != IBV_QPS_ERR)
		usleep(100);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_WR_FLUSH_ERR);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_number_that_is_nobodys_does_not_answer(void **state)
{
	struct endpoint_name nobody = { .qpn = 0xfffffe };
	uint64_t begin = now_ms();
	struct endpoint e;
	struct test_wr w;

	(void)state;
	end_open(&e, ALL_ACCESS);
	nobody.addr = (uintptr_t)e.buf;
	nobody.rkey = e.mr->rkey;
	end_connect(&e, &nobody, &impatient);
	do_wr(&e, wr_make(&w, &e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_RETRY_EXC_ERR);
	assert_true(now_ms() - begin >= least_ms());
	end_close(&e);
}

static void test_two_ends_of_one_process_connect(void **state)
{
	struct endpoint a, b;
	struct endpoint_name name;
	struct test_wr w;

	(void)state;
	end_open(&a, ALL_ACCESS);
	end_open(&b, ALL_ACCESS);
	name = end_name(&b);
	end_connect(&a, &name, &plain);
	name = end_name(&a);
	/* One end asks before the peer is connected. */
	assert_int_equal(post(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, 64, 0)), 0);
	usleep(20000);
	end_connect(&b, &name, &plain);
	assert_int_equal(wait_wc(&a).status, IBV_WC_SUCCESS);
	memset(b.buf, 0x77, 64);
	do_wr(&b, wr_make(&w, &b, IBV_WR_RDMA_WRITE, 0, 64, 0), IBV_WC_SUCCESS);
	assert_memory_equal(a.buf, b.buf, 64);
	end_close(&a);
	end_close(&b);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_access_is_checked),
		cmocka_unit_test(test_reads_and_atomics_need_a_depth_at_both_ends),
		cmocka_unit_test(test_a_region_of_another_domain_is_refused),
		cmocka_unit_test(test_a_queue_pair_with_lost_memory_fails_alone),
		cmocka_unit_test(test_a_receive_that_is_too_short_fails_at_both_ends),
		cmocka_unit_test(test_a_receive_with_a_wrong_key_fails_at_both_ends),
		cmocka_unit_test(test_a_receive_into_lost_memory_fails_at_both_ends),
		cmocka_unit_test(test_a_receiver_that_is_late_is_waited_for),
		cmocka_unit_test(test_a_receiver_that_is_never_ready_uses_up_the_retries),
		cmocka_unit_test(test_after_an_error_the_rest_is_flushed_in_order),
		cmocka_unit_test(test_in_the_error_state_posts_are_flushed),
		cmocka_unit_test(test_a_peer_in_the_error_state_does_not_answer),
		cmocka_unit_test(test_the_error_is_polled_before_the_flushed_entries),
		cmocka_unit_test(test_a_number_that_is_nobodys_does_not_answer),
		cmocka_unit_test(test_two_ends_of_one_process_connect),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
