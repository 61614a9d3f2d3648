/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two machines with round numbers, so that results can be computed by hand. A test sets the
 * numbers under test; everything else is free, or as fast as possible.
 */
#ifndef WEIR_TESTS_SUPPORT_NIC_BENCH_H
#define WEIR_TESTS_SUPPORT_NIC_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/nic/profile.h"
#include "sim/nic/verbs.h"

#define NS SIM_PS_PER_NS
#define FAST 8000000000ull /* mbps: a byte takes a femtosecond */
#define BENCH_QPS 64

/* 8000 Mbps: a byte takes a nanosecond. */
#define NS_PER_BYTE 8000

struct nic_bench {
	struct sim_profile profile;
	struct sim_clock clock;
	struct sim_host host[2];
	struct sim_nic nic[2];
	struct sim_device device;
	struct sim_cq send_cq, recv_cq;
	struct sim_channel channel;
	struct sim_qp near[BENCH_QPS], far[BENCH_QPS];
	struct sim_thread thread[8];
	int nr_threads;
};

static const struct sim_profile bench_profile = {
	.cores = 4,
	.quantum_ps = 1000000 * NS,
	.copy_mbps = FAST,
	.page_bytes = 4096,
	.inline_max = 256,
	.blueflame_bytes_max = 256,
	.poll_empty_ps = 2 * NS,
	.pcie_read_mbps = FAST,
	.pcie_write_mbps = FAST,
	.pcie_tags = 1000,
	.pcie_read_bytes = 4096,
	.pus = 1,
	.fetch_wqes = 1,
	.reads_max = 1000,
	.cache_ways = 4,
	.wqe_ways = 4,
	.wqe_entries = 4096,
	.wqe_slots_write = 1,
	.qpc_entries = 4096,
	.mtt_entries = 4096,
	.mpt_entries = 4096,
	.tx_quantum_bytes = 4096,
	.burst_bytes = 4096,
	.link_mbps = FAST,
	.mtu = 4096,
};

/* Call after the test has changed the profile. */
static inline void bench_begin(struct nic_bench *b)
{
	int i;

	sim_clock_init(&b->clock);
	for (i = 0; i < 2; i++) {
		assert_int_equal(sim_host_init(&b->host[i], &b->clock, &b->profile), 0);
		assert_int_equal(sim_nic_init(&b->nic[i], &b->host[i]), 0);
	}
	assert_int_equal(sim_device_open(&b->device, &b->nic[0]), 0);
	sim_channel_init(&b->channel, &b->host[0].cores[0]);
	assert_int_equal(sim_cq_init(&b->send_cq, &b->channel, 4096), 0);
	assert_int_equal(sim_cq_init(&b->recv_cq, NULL, 4096), 0);
	for (i = 0; i < BENCH_QPS; i++) {
		assert_int_equal(sim_qp_init(&b->near[i], &b->nic[0], &b->send_cq, &b->recv_cq, 64,
					     i % SIM_CLASSES),
				 0);
		assert_int_equal(sim_qp_init(&b->far[i], &b->nic[1], &b->send_cq, &b->recv_cq, 1,
					     i % SIM_CLASSES),
				 0);
		sim_qp_connect(&b->near[i], &b->far[i]);
	}
}

static inline void bench_thread(struct nic_bench *b, int core, void (*run)(void *), void *arg)
{
	assert_int_equal(sim_thread_init(&b->thread[b->nr_threads], &b->host[0], core, run, arg),
			 0);
	b->nr_threads++;
}

static inline int bench_set_up(void **state)
{
	static struct nic_bench b;

	b = (struct nic_bench){ .profile = bench_profile };
	*state = &b;
	return 0;
}

static inline int bench_tear_down(void **state)
{
	struct nic_bench *b = *state;
	int i;

	for (i = 0; i < b->nr_threads; i++)
		sim_thread_fini(&b->thread[i]);
	for (i = 0; i < BENCH_QPS; i++) {
		sim_qp_fini(&b->near[i]);
		sim_qp_fini(&b->far[i]);
	}
	sim_cq_fini(&b->send_cq);
	sim_cq_fini(&b->recv_cq);
	sim_device_close(&b->device);
	for (i = 0; i < 2; i++) {
		sim_nic_fini(&b->nic[i]);
		sim_host_fini(&b->host[i]);
	}
	sim_clock_fini(&b->clock);
	return 0;
}

#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

#endif
