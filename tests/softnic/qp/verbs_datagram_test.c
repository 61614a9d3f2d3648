// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs datagram; devices: softnic rxe; timeout: 120 */
/*
 * UC and UD: the data that arrives, the GRH, and messages dropped silently. Both ends are in
 * one process.
 */
#include <arpa/inet.h>

#include "tests/support/datagram_pair.h"

static void test_a_datagram_arrives_with_its_addresses(void **state)
{
	struct ibv_ah_attr attr;
	union ibv_gid own;
	struct ibv_grh *grh;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	memset(t.base.buf, 0x5a, 100);
	memset(t.base.buf + 8192, 0, 200);
	assert_int_equal(post_recv(&t.b, 7, 8192, 200), 0);
	datagram(&w, &t, 100);
	w.wr.opcode = IBV_WR_SEND_WITH_IMM;
	w.wr.imm_data = htonl(99);
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	wc = wait_wc(&t.b);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, GRH + 100);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(99));
	assert_int_equal(wc.src_qp, t.a.qp->qp_num);
	assert_int_equal(wc.qp_num, t.b.qp->qp_num);
	assert_int_equal(wc.slid, 0);
	if (!soft_roce_differs("the completion's sl is 0"))
		assert_int_equal(wc.sl, 8 | 2); /* ConnectX reports UDP over IPv4 like this */
	assert_memory_equal(t.base.buf + 8192 + GRH, t.base.buf, 100);
	assert_int_equal(t.base.buf[8192 + GRH + 100], 0);
	/* The receiver can answer the sender. */
	grh = (void *)(t.base.buf + 8192);
	assert_int_equal(ibv_init_ah_from_wc(t.base.ctx, 1, &wc, grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(inet_pton(AF_INET6, own_address(), &own), 1);
	assert_memory_equal(&attr.grh.dgid, &own, sizeof(own));
	ah = ibv_create_ah_from_wc(t.base.pd, &wc, grh, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	two_down(&t);
}

static void test_an_address_without_a_grh_is_refused(void **state)
{
	struct ibv_ah_attr attr = { .port_num = 1 };
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	errno = 0;
	assert_null(ibv_create_ah(e.pd, &attr));
	assert_int_equal(errno, EINVAL);
	end_close(&e);
}

static void test_a_queue_pair_may_send_to_itself(void **state)
{
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	assert_int_equal(post_recv(&t.a, 7, 8192, 200), 0);
	datagram(&w, &t, 32)->wr.wr.ud.remote_qpn = t.a.qp->qp_num;
	assert_int_equal(post(&t.a, &w), 0);
	assert_int_equal(wait_wc(&t.a).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.a).status, IBV_WC_SUCCESS);
	two_down(&t);
}

/*
 * Each unwanted message is sent and completes. Then a wanted one arrives in the receive left
 * over.
 */
static void test_unwanted_datagrams_are_dropped(void **state)
{
	struct ibv_ah *nowhere;
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	do_wr(&t.a, datagram(&w, &t, 64), IBV_WC_SUCCESS); /* no receive */
	wait_handled(&t);
	assert_int_equal(post_recv(&t.b, 7, 8192, GRH + 64), 0);
	datagram(&w, &t, 64)->wr.wr.ud.remote_qkey = QKEY + 1;
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	if (!soft_roce_differs("one that is too long ends the receive with an error"))
		do_wr(&t.a, datagram(&w, &t, 65), IBV_WC_SUCCESS);
	datagram(&w, &t, 64)->wr.wr.ud.remote_qpn ^= 0x2000; /* no queue pair has this number */
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	wait_handled(&t);
	assert_nothing(&t.b);
	do_wr(&t.a, datagram(&w, &t, 64), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 7);
	nowhere = make_ah(&t.a, "2001:db8::1");
	assert_null(nowhere);
	assert_int_equal(errno, soft_roce_differs("an address handle to nowhere gives EINVAL") ?
					EINVAL :
					EHOSTUNREACH);
	two_down(&t);
}

/* The send queue stops, and resumes on request; receives still complete. */
static void test_a_datagram_larger_than_the_mtu_stops_the_send_queue(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp_init_attr init;
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	skip_on_soft_roce("it is dropped, and done");
	two_up(&t, IBV_QPT_UD);
	assert_int_equal(post_recv(&t.b, 7, 8192, GRH + MTU), 0);
	do_wr(&t.a, datagram(&w, &t, MTU), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).byte_len, GRH + MTU);
	do_wr(&t.a, datagram(&w, &t, MTU + 1), IBV_WC_LOC_LEN_ERR);
	assert_int_equal(ibv_query_qp(t.a.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_SQE);
	do_wr(&t.a, datagram(&w, &t, 1), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_recv(&t.a, 8, 8192, 200), 0);
	datagram(&w, &t, 1)->wr.wr.ud.remote_qpn = t.a.qp->qp_num;
	do_wr(&t.b, &w, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.a).wr_id, 8);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(t.a.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(post_recv(&t.b, 9, 8192, 200), 0);
	do_wr(&t.a, datagram(&w, &t, 1), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 9);
	two_down(&t);
}

static void test_posting_refuses_opcodes_of_other_transports(void **state)
{
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	skip_on_soft_roce("posting does not look");
	two_up(&t, IBV_QPT_UD);
	datagram(&w, &t, 8)->wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(post(&t.a, &w), EINVAL);
	two_down(&t);
	two_up(&t, IBV_QPT_UC);
	assert_int_equal(post(&t.a, wr_make(&w, &t.a, IBV_WR_RDMA_READ, 0, 8, 64)), EINVAL);
	wr_make(&w, &t.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 64);
	assert_int_equal(post(&t.a, &w), EINVAL);
	two_down(&t);
}

/* After a reset the queue pair has the same number and another segment. */
static void test_a_datagram_finds_a_queue_pair_that_was_reset(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	assert_int_equal(post_recv(&t.b, 1, 8192, 200), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 1);
	assert_int_equal(ibv_modify_qp(t.b.qp, &attr, IBV_QP_STATE), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	wait_handled(&t);
	to_init(&t.b);
	to_ready(&t.b, 0);
	assert_int_equal(post_recv(&t.b, 2, 8192, 200), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 2);
	two_down(&t);
}

static uint8_t load(const uint8_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void test_an_unreliable_connection_drops_and_goes_on(void **state)
{
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UC);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_SEND, 0, 64, 0), IBV_WC_SUCCESS);
	wait_handled(&t);
	assert_int_equal(post_recv(&t.b, 7, 8192, 64), 0);
	/* between hosts, too */
	if (!soft_roce_differs("one that is too long ends the receive with an error") &&
	    !over_wire())
		do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_SEND, 0, 65, 0), IBV_WC_SUCCESS);
	wr_make(&w, &t.a, IBV_WR_RDMA_WRITE, 0, 8, 4096)->wr.wr.rdma.rkey ^= 1;
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	wait_handled(&t);
	assert_nothing(&t.b);
	memset(t.base.buf, 0x77, 64);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_RDMA_WRITE, 0, 8, 4096), IBV_WC_SUCCESS);
	while ((soft_roce_differs("a write is done before it arrives") || over_wire()) &&
	       now_ms() < deadline_ms && load(&t.base.buf[4096]) != 0x77)
		usleep(1000);
	assert_int_equal(t.base.buf[4096], 0x77);
	wr_make(&w, &t.a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, 5000)->wr.imm_data = 5;
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	two_down(&t);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_a_datagram_arrives_with_its_addresses),
		cmocka_unit_test(test_an_address_without_a_grh_is_refused),
		cmocka_unit_test(test_a_queue_pair_may_send_to_itself),
		cmocka_unit_test(test_unwanted_datagrams_are_dropped),
		cmocka_unit_test(test_a_datagram_larger_than_the_mtu_stops_the_send_queue),
		cmocka_unit_test(test_posting_refuses_opcodes_of_other_transports),
		cmocka_unit_test(test_a_datagram_finds_a_queue_pair_that_was_reset),
		cmocka_unit_test(test_an_unreliable_connection_drops_and_goes_on),
	};

	return cmocka_run_group_tests_name("verbs: datagrams", all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
