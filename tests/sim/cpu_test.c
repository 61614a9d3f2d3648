/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads, cores, locks, interrupts and the cost of verbs, against results computed by hand. */
#include "tests/support/nic_bench.h"

struct cpu_worker {
	struct nic_bench *b;
	int number;
	uint64_t ran_ns, done_ns;
	struct sim_lock *lock;
};

static struct cpu_worker workers[8];

static struct sim_thread *thread_of(struct cpu_worker *w)
{
	return &w->b->thread[w->number];
}

static uint64_t now_ns(const struct cpu_worker *w)
{
	return w->b->clock.now_ps / NS;
}

static void start(struct nic_bench *b, int core, void (*run)(void *), uint64_t ns)
{
	int number = b->nr_threads;

	workers[number] = (struct cpu_worker){ .b = b, .number = number, .ran_ns = ns };
	bench_thread(b, core, run, &workers[number]);
}

static void compute(void *arg)
{
	struct cpu_worker *w = arg;

	sim_thread_run(thread_of(w), w->ran_ns * NS);
	w->done_ns = now_ns(w);
}

static void each_on_a_core_of_its_own_computes_undisturbed(void **state)
{
	struct nic_bench *b = *state;
	int i;

	bench_begin(b);
	for (i = 0; i < 4; i++)
		start(b, -1, compute, 1000);
	sim_clock_run(&b->clock, 5000 * NS);
	for (i = 0; i < 4; i++)
		assert_int_equal(workers[i].done_ns, 1000);
	assert_int_equal(sim_host_busy_ps(&b->host[0]), 4000 * NS);
}

static void two_on_one_core_take_turns_of_a_quantum(void **state)
{
	struct nic_bench *b = *state;

	b->profile.quantum_ps = 300 * NS;
	b->profile.switch_ps = 10 * NS;
	bench_begin(b);
	start(b, 0, compute, 500);
	start(b, 0, compute, 500);
	sim_clock_run(&b->clock, 5000 * NS);
	/* 10 + 300, 10 + 300, 10 + 200, 10 + 200 */
	assert_int_equal(workers[0].done_ns, 310 + 310 + 210);
	assert_int_equal(workers[1].done_ns, 310 + 310 + 210 + 210);
	assert_int_equal(b->host[0].cores[0].switches, 4);
}

static void an_interrupt_takes_its_time_from_who_runs(void **state)
{
	struct nic_bench *b = *state;

	bench_begin(b);
	start(b, 0, compute, 1000);
	sim_clock_run(&b->clock, 400 * NS);
	assert_int_equal(sim_core_interrupt(&b->host[0].cores[0], 250 * NS), 650 * NS);
	assert_int_equal(sim_core_interrupt(&b->host[0].cores[1], 70 * NS), 470 * NS);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].done_ns, 1250);
	assert_int_equal(sim_host_busy_ps(&b->host[0]), 1320 * NS);
}

static void nap(void *arg)
{
	struct cpu_worker *w = arg;

	sim_thread_sleep(thread_of(w), SIM_NEVER);
	w->ran_ns = now_ns(w);
	sim_thread_sleep(thread_of(w), w->b->clock.now_ps + 1000 * NS);
	w->done_ns = now_ns(w);
}

static void a_sleeper_wakes_when_told_or_when_its_time_is_up(void **state)
{
	struct nic_bench *b = *state;

	b->profile.wake_ps = 50 * NS;
	bench_begin(b);
	start(b, -1, nap, 0);
	sim_clock_run(&b->clock, 300 * NS);
	sim_thread_wake(&b->thread[0]);
	sim_thread_wake(&b->thread[0]);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].ran_ns, 350);
	assert_int_equal(workers[0].done_ns, 1350);
	assert_int_equal(sim_host_busy_ps(&b->host[0]), 0);
}

static void doze(void *arg)
{
	struct cpu_worker *w = arg;

	sim_thread_run(thread_of(w), 500 * NS);
	sim_thread_sleep(thread_of(w), SIM_NEVER);
	w->done_ns = now_ns(w);
}

static void who_was_woken_before_he_slept_does_not(void **state)
{
	struct nic_bench *b = *state;

	bench_begin(b);
	start(b, -1, doze, 0);
	sim_clock_run(&b->clock, 300 * NS);
	sim_thread_wake(&b->thread[0]);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].done_ns, 500);
}

static void spin(void *arg)
{
	struct cpu_worker *w = arg;

	w->ran_ns = sim_thread_spin(thread_of(w), w->ran_ns ? w->ran_ns * NS : SIM_NEVER);
	w->done_ns = now_ns(w);
}

/* The spinner has the core from 0 to 100, and again from 200 on; the wake-up comes at 150. */
static void who_spins_keeps_the_core_but_for_the_quantum(void **state)
{
	struct nic_bench *b = *state;

	b->profile.quantum_ps = 100 * NS;
	bench_begin(b);
	start(b, 0, spin, 0);
	start(b, 0, compute, 1000);
	start(b, 1, spin, 700);
	sim_clock_run(&b->clock, 150 * NS);
	sim_thread_poke(&b->thread[0], 5 * NS);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].ran_ns, true);
	assert_int_equal(workers[0].done_ns, 205);
	assert_int_equal(workers[1].done_ns, 1105);
	assert_int_equal(workers[2].ran_ns, false);
	assert_int_equal(workers[2].done_ns, 700);
}

static void lock_and_compute(void *arg)
{
	struct cpu_worker *w = arg;

	sim_lock_take(w->lock, thread_of(w));
	sim_thread_run(thread_of(w), 100 * NS);
	sim_lock_give(w->lock, thread_of(w));
	w->done_ns = now_ns(w);
}

static void a_lock_is_handed_over_in_order_and_the_more_wait_the_dearer(void **state)
{
	struct nic_bench *b = *state;
	struct sim_lock lock;
	int i;

	b->profile.lock_ps = 10 * NS;
	b->profile.handoff_ps = 50 * NS;
	b->profile.handoff_waiter_ps = 4 * NS;
	bench_begin(b);
	sim_lock_init(&lock, false);
	for (i = 0; i < 4; i++) {
		start(b, i, lock_and_compute, 0);
		workers[i].lock = &lock;
	}
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].done_ns, 110);
	assert_int_equal(workers[1].done_ns, 110 + 50 + 2 * 4 + 100);
	assert_int_equal(workers[2].done_ns, 268 + 50 + 4 + 100);
	assert_int_equal(workers[3].done_ns, 422 + 50 + 100);
	assert_int_equal(lock.takes, 4);
	assert_int_equal(lock.contended, 3);
	assert_null(lock.owner);
}

static void who_waits_for_a_sleeping_lock_frees_the_core(void **state)
{
	struct nic_bench *b = *state;
	struct sim_lock lock;
	int i;

	b->profile.wake_ps = 30 * NS;
	b->profile.syscall_ps = 5 * NS;
	b->profile.wake_call_ps = 8 * NS;
	bench_begin(b);
	sim_lock_init(&lock, true);
	for (i = 0; i < 2; i++) {
		start(b, i, lock_and_compute, 0);
		workers[i].lock = &lock;
	}
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].done_ns, 113);
	assert_int_equal(workers[1].done_ns, 230);
	assert_int_equal(sim_host_busy_ps(&b->host[0]), (113 + 5 + 100) * NS);
}

static void wait_for_event(void *arg)
{
	struct cpu_worker *w = arg;
	struct sim_wc wc;

	sim_req_notify_cq(thread_of(w), &w->b->send_cq);
	sim_get_cq_event(thread_of(w), &w->b->channel);
	w->done_ns = now_ns(w);
	w->ran_ns = sim_poll_cq(thread_of(w), &w->b->send_cq, &wc, 1);
}

static void an_armed_cq_wakes_by_an_interrupt_once(void **state)
{
	struct nic_bench *b = *state;
	struct sim_wc wc = { .id = 1 };

	b->profile.irq_latency_ps = 200 * NS;
	b->profile.irq_ps = 300 * NS;
	b->profile.wake_ps = 40 * NS;
	bench_begin(b);
	start(b, 1, wait_for_event, 0);
	sim_clock_run(&b->clock, 1000 * NS);
	sim_cq_push(&b->send_cq, &wc);
	sim_cq_push(&b->send_cq, &wc);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].done_ns, 1540);
	assert_int_equal(workers[0].ran_ns, 1);
	assert_int_equal(b->host[0].cores[0].interrupts, 1);
	assert_int_equal(b->host[0].cores[0].busy_ps, 300 * NS);
}

static void take_three_and_more(void *arg)
{
	struct cpu_worker *w = arg;
	struct sim_wc wcs[16];
	uint32_t i, seen = 0, taken;

	while ((taken = sim_poll_cq(thread_of(w), &w->b->recv_cq, wcs, 3))) {
		for (i = 0; i < taken; i++)
			assert_int_equal(wcs[i].id, seen++);
	}
	w->done_ns = seen;
}

static void a_cq_that_is_full_grows_and_keeps_the_order(void **state)
{
	struct nic_bench *b = *state;
	struct sim_wc wc;
	uint32_t i;

	bench_begin(b);
	sim_cq_fini(&b->recv_cq);
	assert_int_equal(sim_cq_init(&b->recv_cq, NULL, 2), 0);
	for (i = 0; i < 20; i++) {
		wc = (struct sim_wc){ .id = i };
		sim_cq_push(&b->recv_cq, &wc);
	}
	start(b, 0, take_three_and_more, 0);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].done_ns, 20);
}

static void post_two(void *arg)
{
	struct cpu_worker *w = arg;
	struct sim_sge sge[3] = { { 0, 8, 1 }, { 8, 8, 1 }, { 16, 8, 1 } };
	struct sim_wr wrs[2] = {
		{ .op = SIM_OP_WRITE, .nr_sge = 3, .sge = sge, .bytes = 24 },
		{ .op = SIM_OP_WRITE, .nr_sge = 1, .sge = sge, .bytes = 8, .is_inline = true }
	};

	assert_int_equal(sim_post_send(thread_of(w), &w->b->device, &w->b->near[0], wrs, 2), 2);
	w->ran_ns = now_ns(w);
	assert_int_equal(sim_post_send(thread_of(w), &w->b->device, &w->b->near[0], wrs + 1, 1), 1);
	w->done_ns = now_ns(w);
	sim_thread_sleep(thread_of(w), SIM_NEVER); /* the pieces live on this stack */
}

static void a_chain_costs_one_doorbell(void **state)
{
	struct nic_bench *b = *state;

	b->profile.post_ps = 100 * NS;
	b->profile.post_sge_ps = 7 * NS;
	b->profile.doorbell_ps = 40 * NS;
	b->profile.blueflame_ps = 60 * NS;
	bench_begin(b);
	start(b, 0, post_two, 0);
	sim_clock_run(&b->clock, 5000 * NS);
	assert_int_equal(workers[0].ran_ns, 2 * 100 + 2 * 7 + 40);
	assert_int_equal(workers[0].done_ns, 254 + 100 + 60);
	assert_int_equal(b->nic[0].counts.doorbells, 2);
	assert_int_equal(b->nic[0].counts.wqes, 3);
	assert_int_equal(b->send_cq.pushed, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(each_on_a_core_of_its_own_computes_undisturbed),
		BENCH_TEST(two_on_one_core_take_turns_of_a_quantum),
		BENCH_TEST(an_interrupt_takes_its_time_from_who_runs),
		BENCH_TEST(a_sleeper_wakes_when_told_or_when_its_time_is_up),
		BENCH_TEST(who_was_woken_before_he_slept_does_not),
		BENCH_TEST(who_spins_keeps_the_core_but_for_the_quantum),
		BENCH_TEST(a_lock_is_handed_over_in_order_and_the_more_wait_the_dearer),
		BENCH_TEST(who_waits_for_a_sleeping_lock_frees_the_core),
		BENCH_TEST(an_armed_cq_wakes_by_an_interrupt_once),
		BENCH_TEST(a_cq_that_is_full_grows_and_keeps_the_order),
		BENCH_TEST(a_chain_costs_one_doorbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
