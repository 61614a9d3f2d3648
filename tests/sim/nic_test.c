/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each stage of the NIC alone, against results computed by hand. */
#include "tests/support/nic_bench.h"

static struct sim_sge piece = { 0, 1 << 20, 7 };

static void post(struct nic_bench *b, int qp, enum sim_op op, uint32_t bytes, bool is_inline,
		 uint32_t count)
{
	struct sim_wr wr = { .id = qp,
			     .op = (uint8_t)op,
			     .is_inline = is_inline,
			     .nr_sge = 1,
			     .sge = &piece,
			     .bytes = bytes,
			     .rkey = 1 };
	struct sim_wqe *first = sim_qp_put(&b->near[qp], &wr);
	uint32_t i;

	assert_non_null(first);
	for (i = 1; i < count; i++)
		assert_non_null(sim_qp_put(&b->near[qp], &wr));
	sim_qp_ring(&b->near[qp], first, count, is_inline && count == 1);
}

/* The time of completion number @nth, from 1, in ns. */
static uint64_t done_ns(struct nic_bench *b, uint32_t nth)
{
	sim_clock_run(&b->clock, b->clock.now_ps);
	while (b->send_cq.pushed < nth)
		sim_clock_run(&b->clock, b->clock.now_ps + NS);
	return b->clock.now_ps / NS;
}

/* The results round away the time of a byte on the fast parts. */
static void an_inlined_write_takes_the_sum_of_its_stages(void **state)
{
	struct nic_bench *b = *state;
	struct sim_profile *p = &b->profile;

	p->pcie_ps = 200 * NS;
	p->tx_write_ps = 30 * NS;
	p->tx_latency_ps = 100 * NS;
	p->link_mbps = NS_PER_BYTE;
	p->header_bytes = 30;
	p->wire_ps = 250 * NS;
	p->rx_write_ps = 40 * NS;
	p->rx_latency_ps = 110 * NS;
	p->ack_bytes = 20;
	p->ack_latency_ps = 90 * NS;
	p->pcie_write_mbps = NS_PER_BYTE;
	p->cqe_bytes = 64;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 16, true, 1);
	/* doorbell, pipeline, 16 + 30 bytes, pipeline, 20 bytes, 64 bytes of a CQE */
	assert_int_equal(done_ns(b, 1), 200 + 130 + 46 + 250 + 150 + 20 + 250 + 90 + 64 + 200);
}

static void other_writes_fetch_the_wqe_and_then_the_data(void **state)
{
	struct nic_bench *b = *state;

	b->profile.pcie_ps = 100 * NS;
	b->profile.pcie_read_mbps = NS_PER_BYTE;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 500, false, 1);
	/* doorbell, WQE of 64 bytes, data, CQE */
	assert_int_equal(done_ns(b, 1), 100 + 200 + 64 + 200 + 500 + 100);
}

static void a_read_reads_memory_at_the_other_end(void **state)
{
	struct nic_bench *b = *state;

	b->profile.pcie_ps = 100 * NS;
	b->profile.wire_ps = 50 * NS;
	b->profile.pcie_read_mbps = NS_PER_BYTE;
	b->profile.pcie_write_mbps = NS_PER_BYTE;
	b->profile.cqe_bytes = 64;
	bench_begin(b);
	post(b, 0, SIM_OP_READ, 300, false, 1);
	/* doorbell, WQE, wire, remote data, wire, local data followed by the CQE */
	assert_int_equal(done_ns(b, 1), 100 + 264 + 50 + 500 + 50 + 300 + 64 + 100);
}

static void all_qps_together_share_the_pipeline(void **state)
{
	struct nic_bench *b = *state;
	uint64_t first;
	int i;

	b->profile.tx_write_ps = 30 * NS;
	b->profile.pus = 8;
	bench_begin(b);
	for (i = 0; i < 32; i++)
		post(b, i, SIM_OP_WRITE, 8, true, 1);
	first = done_ns(b, 1);
	assert_int_equal(done_ns(b, 32) - first, 31 * 30);
}

static void one_qp_has_one_unit_of_the_pipeline(void **state)
{
	struct nic_bench *b = *state;
	uint64_t first;

	b->profile.tx_write_ps = 30 * NS;
	b->profile.pus = 8;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 8, true, 32);
	first = done_ns(b, 1);
	assert_int_equal(done_ns(b, 32) - first, 31 * 30 * 8);
}

static void a_chain_is_fetched_several_at_a_time(void **state)
{
	struct nic_bench *b = *state;

	b->profile.pcie_ps = 100 * NS;
	b->profile.fetch_wqes = 4;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 8, true, 12);
	assert_int_equal(done_ns(b, 4), 100 + 200 + 100);
	assert_int_equal(done_ns(b, 12), 100 + 3 * 200 + 100);
	assert_int_equal(b->nic[0].counts.fetches, 3);
}

static void a_missing_context_delays_one_and_stalls_all(void **state)
{
	struct nic_bench *b = *state;

	b->profile.qpc_miss_ps = 500 * NS;
	b->profile.qpc_stall_ps = 100 * NS;
	b->profile.pus = 2;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 8, true, 1);
	/* one miss here, one there; the response hits */
	assert_int_equal(done_ns(b, 1), 2 * 600);
	assert_int_equal(b->nic[0].qpcs.misses + b->nic[1].qpcs.misses, 2);
	post(b, 0, SIM_OP_WRITE, 8, true, 1);
	assert_int_equal(done_ns(b, 2), 1200);
	post(b, 2, SIM_OP_WRITE, 8, true, 1); /* misses, and stalls the other unit too */
	post(b, 1, SIM_OP_WRITE, 8, true, 1);
	assert_int_equal(done_ns(b, 3), 1200 + 2 * 600);
	assert_int_equal(done_ns(b, 4), 1200 + 2 * 600 + 100);
}

static void each_page_has_its_entry(void **state)
{
	struct nic_bench *b = *state;

	b->profile.tx_quantum_bytes = b->profile.burst_bytes = 65536;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 5 * 4096, false, 1);
	done_ns(b, 1);
	assert_int_equal(b->nic[0].mtts.misses, 256); /* of the whole piece */
	assert_int_equal(b->nic[1].mtts.misses, 5);
	assert_int_equal(b->nic[1].mpts.misses, 1);
	post(b, 0, SIM_OP_READ, 5 * 4096, false, 1);
	done_ns(b, 2);
	assert_int_equal(b->nic[1].mtts.misses, 5);
}

static void so_many_reads_of_a_qp_are_under_way(void **state)
{
	struct nic_bench *b = *state;

	b->profile.wire_ps = 500 * NS;
	b->profile.reads_max = 4;
	bench_begin(b);
	post(b, 0, SIM_OP_READ, 8, false, 10);
	assert_int_equal(done_ns(b, 4), 1000);
	assert_int_equal(done_ns(b, 8), 2000);
	assert_int_equal(done_ns(b, 10), 3000);
}

/* 8 KB take 8192 ns to read; another message gets the next quantum. */
static void a_small_message_waits_for_a_quantum_only(void **state)
{
	struct nic_bench *b = *state;

	b->profile.pcie_read_mbps = NS_PER_BYTE;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, 8192, false, 1);
	post(b, 4, SIM_OP_WRITE, 100, false, 1);
	assert_int_equal(done_ns(b, 1), 64 + 64 + 4096 + 100);
	assert_int_equal(b->send_cq.ring[0].id, 4);
	assert_int_equal(done_ns(b, 2), 64 + 64 + 8192 + 100 + 1); /* the remaining stages */
}

static void the_higher_class_has_the_next_quantum(void **state)
{
	struct nic_bench *b = *state;
	uint32_t i;

	b->profile.pcie_read_mbps = NS_PER_BYTE;
	bench_begin(b);
	for (i = 1; i <= 3; i++)
		post(b, i, SIM_OP_WRITE, 4096, false, 1); /* lower each time */
	sim_clock_run(&b->clock, 1000 * NS);
	post(b, 4, SIM_OP_WRITE, 4096, false, 1); /* the highest */
	done_ns(b, 4);
	assert_int_equal(b->send_cq.ring[0].id, 1);
	assert_int_equal(b->send_cq.ring[1].id, 4);
	assert_int_equal(b->send_cq.ring[2].id, 2);
	assert_int_equal(b->send_cq.ring[3].id, 3);
}

static void data_passes_memory_and_wire_at_the_same_time(void **state)
{
	struct nic_bench *b = *state;
	uint64_t bytes = 16 * 4096;

	b->profile.pcie_read_mbps = b->profile.link_mbps = b->profile.pcie_write_mbps = NS_PER_BYTE;
	bench_begin(b);
	post(b, 0, SIM_OP_WRITE, (uint32_t)bytes, false, 1);
	assert_int_equal(done_ns(b, 1), 64 + bytes + 4096); /* the last burst on the wire */
}

static void a_message_without_receive_comes_again(void **state)
{
	struct nic_bench *b = *state;

	b->profile.rnr_ps = 10000 * NS;
	bench_begin(b);
	post(b, 0, SIM_OP_SEND, 8, true, 1);
	post(b, 0, SIM_OP_WRITE, 8, true, 1);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(b->send_cq.pushed, 0);
	assert_int_equal(b->nic[1].counts.rnrs, 1);
	b->far[0].recvs = 1;
	assert_int_equal(done_ns(b, 2), 10000);
	assert_int_equal(b->recv_cq.count, 1);
	assert_int_equal(b->far[0].recvs, 0);
}

struct seen {
	uint8_t op[64];
	int count;
};

static void see(void *arg, const struct sim_wr *wr)
{
	struct seen *seen = arg;

	seen->op[seen->count++] = wr->op;
}

static void what_one_qp_does_takes_effect_in_order(void **state)
{
	static const enum sim_op ops[] = { SIM_OP_WRITE, SIM_OP_READ, SIM_OP_FADD,
					   SIM_OP_WRITE, SIM_OP_READ, SIM_OP_CAS };
	struct nic_bench *b = *state;
	struct seen seen = { .count = 0 };
	int i;

	b->profile.pcie_ps = 200 * NS;
	b->profile.atomic_ps = 370 * NS;
	b->profile.pcie_write_mbps = NS_PER_BYTE;
	bench_begin(b);
	b->far[0].execute = see;
	b->far[0].arg = &seen;
	for (i = 0; i < 6; i++)
		post(b, 0, ops[i], ops[i] >= SIM_OP_CAS ? 8 : 4000, false, 1);
	done_ns(b, 6);
	assert_int_equal(seen.count, 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(seen.op[i], ops[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(an_inlined_write_takes_the_sum_of_its_stages),
		BENCH_TEST(other_writes_fetch_the_wqe_and_then_the_data),
		BENCH_TEST(a_read_reads_memory_at_the_other_end),
		BENCH_TEST(all_qps_together_share_the_pipeline),
		BENCH_TEST(one_qp_has_one_unit_of_the_pipeline),
		BENCH_TEST(a_chain_is_fetched_several_at_a_time),
		BENCH_TEST(a_missing_context_delays_one_and_stalls_all),
		BENCH_TEST(each_page_has_its_entry),
		BENCH_TEST(so_many_reads_of_a_qp_are_under_way),
		BENCH_TEST(a_small_message_waits_for_a_quantum_only),
		BENCH_TEST(the_higher_class_has_the_next_quantum),
		BENCH_TEST(data_passes_memory_and_wire_at_the_same_time),
		BENCH_TEST(a_message_without_receive_comes_again),
		BENCH_TEST(what_one_qp_does_takes_effect_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
