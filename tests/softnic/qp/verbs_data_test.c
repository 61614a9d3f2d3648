// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs data; devices: softnic rxe; timeout: 120 */
/*
 * Bytes arrive where they should, between two processes. A second run forces the copies through
 * /proc/self/mem.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/support/verbs_puppet.h"

static void fill(uint8_t *at, size_t length, uint32_t seed)
{
	size_t i;

	for (i = 0; i < length; i++) {
		seed = seed * 1664525 + 1013904223;
		at[i] = seed >> 24;
	}
}

static const uint32_t sizes[] = { 1, 7, 4096, 65536, 65537, 1 << 20, (1 << 20) + 1, 2 << 20 };

static void test_written_bytes_can_be_read_back(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	unsigned int i;
	struct test_wr w;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];

		fill(e->buf, n, i);
		memset(e->buf + (2 << 20), 0, n);
		do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, n, 33), IBV_WC_SUCCESS);
		do_wr(e, wr_make(&w, e, IBV_WR_RDMA_READ, 2 << 20, n, 33), IBV_WC_SUCCESS);
		assert_memory_equal(e->buf, e->buf + (2 << 20), n);
	}
}

static void test_a_send_lands_in_the_posted_buffer(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	unsigned int i;
	struct test_wr w;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];
		struct puppet_answer a;

		fill(e->buf, n, i);
		memset(e->buf + (2 << 20), 0, n);
		assert_int_equal(tell(&pair->p, ORDER_POST_RECV, 5, n, 77).result, 0);
		do_wr(e, wr_make(&w, e, IBV_WR_SEND, 0, n, 0), IBV_WC_SUCCESS);
		a = tell(&pair->p, ORDER_POLL, 0, 0, 0);
		assert_int_equal(a.wc.status, IBV_WC_SUCCESS);
		assert_int_equal(a.wc.opcode, IBV_WC_RECV);
		assert_int_equal(a.wc.byte_len, n);
		assert_int_equal(a.wc.wr_id, 77);
		assert_int_equal(a.wc.qp_num, pair->p.name.qpn);
		do_wr(e, wr_make(&w, e, IBV_WR_RDMA_READ, 2 << 20, n, 5), IBV_WC_SUCCESS);
		assert_memory_equal(e->buf, e->buf + (2 << 20), n);
	}
}

static unsigned int flags_of_a_receive(const struct ibv_wc *wc)
{
	return soft_roce_differs("says IBV_WC_GRH, of RC too") ? wc->wc_flags & ~IBV_WC_GRH :
								 wc->wc_flags;
}

static void test_an_immediate_uses_up_a_receive_and_moves_the_bytes(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct puppet_answer a;
	struct test_wr w;

	assert_int_equal(tell(&pair->p, ORDER_POST_RECV, 0, 0, 5).result, 0);
	memset(e->buf, 0x5a, 8);
	wr_make(&w, e, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, 64);
	w.wr.imm_data = 0x01020304;
	do_wr(e, &w, IBV_WC_SUCCESS);
	a = tell(&pair->p, ORDER_POLL, 0, 0, 0);
	assert_int_equal(a.wc.status, IBV_WC_SUCCESS);
	assert_int_equal(a.wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(flags_of_a_receive(&a.wc), IBV_WC_WITH_IMM);
	assert_int_equal(a.wc.imm_data, 0x01020304);
	assert_int_equal(a.wc.byte_len, 8);
	assert_int_equal(a.wc.wr_id, 5);
	assert_true(tell(&pair->p, ORDER_PEEK, 64, 0, 0).value == 0x5a5a5a5a5a5a5a5aull);
}

static void test_a_send_with_immediate_carries_both(void **state)
{
	struct puppet_pair *pair = *state;
	struct puppet_answer a;
	struct test_wr w;

	assert_int_equal(tell(&pair->p, ORDER_POST_RECV, 0, 16, 6).result, 0);
	wr_make(&w, &pair->e, IBV_WR_SEND_WITH_IMM, 0, 16, 0);
	w.wr.imm_data = 7;
	do_wr(&pair->e, &w, IBV_WC_SUCCESS);
	a = tell(&pair->p, ORDER_POLL, 0, 0, 0);
	assert_int_equal(a.wc.opcode, IBV_WC_RECV);
	assert_int_equal(flags_of_a_receive(&a.wc), IBV_WC_WITH_IMM);
	assert_int_equal(a.wc.imm_data, 7);
}

static void test_several_pieces_are_gathered_and_scattered_in_order(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_sge sges[SGES_MAX];
	struct test_wr w;
	int i;

	fill(e->buf, 4096, 9);
	for (i = 0; i < SGES_MAX; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)e->buf + i * 1000, 10 + i, e->mr->lkey };
	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 0, 128);
	w.wr.sg_list = sges;
	w.wr.num_sge = SGES_MAX;
	do_wr(e, &w, IBV_WC_SUCCESS);
	for (i = 0; i < SGES_MAX; i++)
		sges[i].addr = (uintptr_t)e->buf + 8192 + i * 1000;
	w.wr.opcode = IBV_WR_RDMA_READ;
	do_wr(e, &w, IBV_WC_SUCCESS);
	for (i = 0; i < SGES_MAX; i++)
		assert_memory_equal(e->buf + i * 1000, e->buf + 8192 + i * 1000, 10 + i);
}

static void test_inline_data_may_change_after_the_post(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	uint64_t value = 0x1122334455667788ull;
	struct test_wr w;

	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, sizeof(value), 256);
	w.sge.addr = (uintptr_t)&value;
	w.sge.lkey = 0; /* inline data needs no key */
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(e, &w), 0);
	value = 0;
	assert_int_equal(wait_wc(e).status, IBV_WC_SUCCESS);
	assert_true(tell(&pair->p, ORDER_PEEK, 256, 0, 0).value == 0x1122334455667788ull);
}

static void test_an_unsignalled_request_completes_silently(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_wc wc;
	struct test_wr w;
	int i;

	for (i = 0; i < QUEUE_DEPTH - 1; i++) {
		wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0);
		w.wr.send_flags = 0;
		assert_int_equal(post(e, &w), 0);
	}
	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0);
	w.wr.wr_id = 42;
	do_wr(e, &w, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	/* The whole queue is free again. */
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(post(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0)), 0);
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(e).status, IBV_WC_SUCCESS);
}

static void test_completions_come_in_the_order_of_the_posts(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct test_wr w;
	int i;

	for (i = 0; i < QUEUE_DEPTH; i++) {
		uint32_t n = i % 3 ? 8 : 1 << 20; /* some for the engine, some done inline */

		wr_make(&w, e, i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, n, 0);
		w.wr.wr_id = i;
		assert_int_equal(post(e, &w), 0);
	}
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(e).wr_id, i);
}

static void test_compare_and_swap_swaps_only_the_expected_value(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	uint64_t old;
	struct test_wr w;

	tell(&pair->p, ORDER_POKE, 512, 0, 100);
	wr_make(&w, e, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 8, 512);
	w.wr.wr.atomic.compare_add = 99;
	w.wr.wr.atomic.swap = 1;
	do_wr(e, &w, IBV_WC_SUCCESS);
	memcpy(&old, e->buf, sizeof(old));
	assert_int_equal(old, 100);
	assert_int_equal(tell(&pair->p, ORDER_PEEK, 512, 0, 0).value, 100);
	w.wr.wr.atomic.compare_add = 100;
	do_wr(e, &w, IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair->p, ORDER_PEEK, 512, 0, 0).value, 1);
}

static void test_additions_from_two_processes_all_count(void **state)
{
	enum { WORD = 64 };
	const int times = scaled(20000);
	struct puppet_pair *pair = *state;
	struct endpoint end;
	struct puppet second;
	uint64_t sum;

	end_open_sharing(&end, &pair->e);
	puppet_start(&second, &end, ALL_ACCESS, &plain);
	memset(pair->e.buf + WORD, 0, sizeof(sum));
	give_order(&pair->p, ORDER_SPIN_ADD, WORD, 0, times);
	give_order(&second, ORDER_SPIN_ADD, WORD, 0, times);
	take_answer(&pair->p);
	take_answer(&second);
	memcpy(&sum, pair->e.buf + WORD, sizeof(sum));
	assert_int_equal(sum, 2 * times);
	puppet_stop(&second, &end);
}

static void *post_many(void *arg)
{
	const int posts = scaled(2000);
	struct endpoint *e = arg;
	struct test_wr w;
	int i;

	for (i = 0; i < posts; i++) {
		uint32_t n = i % 50 ? 64 : 200000;

		while (post(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, n, 0)) == ENOMEM)
			sched_yield();
	}
	return NULL;
}

static void test_threads_may_post_to_one_queue_pair(void **state)
{
	struct puppet_pair *pair = *state;
	pthread_t threads[2];
	int i;

	skip_on_soft_roce("the test stopped in two of five runs (Linux 6.1, rdma-core 44), "
			  "and nobody has found out why");
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, &pair->e), 0);
	for (i = 0; i < 2 * scaled(2000); i++)
		assert_int_equal(wait_wc(&pair->e).status, IBV_WC_SUCCESS);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void test_one_sided_work_takes_none_of_the_targets_time(void **state)
{
	enum { TIMES = 2000 };
	struct puppet_pair *pair = *state;
	uint64_t peers_ns, own_ns;
	struct test_wr w;
	int i;

	skip_on_soft_roce("the kernel does it, in the time of whoever runs then");
	if (over_wire())
		return; /* the other host's process takes the packets */
	peers_ns = tell(&pair->p, ORDER_CPU_NS, 0, 0, 0).value;
	own_ns = cpu_ns();
	for (i = 0; i < TIMES; i++)
		do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 65536, 0),
		      IBV_WC_SUCCESS);
	own_ns = cpu_ns() - own_ns;
	peers_ns = tell(&pair->p, ORDER_CPU_NS, 0, 0, 0).value - peers_ns;
	assert_true(peers_ns < own_ns / 10); /* the peer only answered this process */
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_written_bytes_can_be_read_back),
		cmocka_unit_test(test_a_send_lands_in_the_posted_buffer),
		cmocka_unit_test(test_an_immediate_uses_up_a_receive_and_moves_the_bytes),
		cmocka_unit_test(test_a_send_with_immediate_carries_both),
		cmocka_unit_test(test_several_pieces_are_gathered_and_scattered_in_order),
		cmocka_unit_test(test_inline_data_may_change_after_the_post),
		cmocka_unit_test(test_an_unsignalled_request_completes_silently),
		cmocka_unit_test(test_completions_come_in_the_order_of_the_posts),
		cmocka_unit_test(test_compare_and_swap_swaps_only_the_expected_value),
		cmocka_unit_test(test_additions_from_two_processes_all_count),
		cmocka_unit_test(test_threads_may_post_to_one_queue_pair),
		cmocka_unit_test(test_one_sided_work_takes_none_of_the_targets_time),
	};

	return cmocka_run_group_tests(all, pair_up, pair_down);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
