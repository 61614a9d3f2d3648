// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic fault; devices: softnic; timeout: 120 */
/* Injected faults: each happens as requested, and a seed repeats its faults. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "fault_fixture.h"
#include "softnic/verbs/nic.h"
#include "tests/support/stop_process.h"

static void start(struct puppet_pair *pair, const struct manners *m)
{
	end_open(&pair->e, ALL_ACCESS);
	puppet_start(&pair->p, &pair->e, ALL_ACCESS, m);
}

static void test_a_queue_pair_fails_after_as_many_operations(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair, &plain);
	cause("error_after=3");
	wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 64, 0);
	for (i = 0; i < 3; i++)
		do_wr(&pair.e, &w, IBV_WC_SUCCESS);
	do_wr(&pair.e, &w, IBV_WC_RETRY_EXC_ERR);
	do_wr(&pair.e, &w, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_query_qp(pair.e.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	cause("error_after=never");
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_storm_of_rnr_is_weathered_by_retries(void **state)
{
	uint64_t before;
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair, &plain);
	before = load_relaxed(&nic.pub->counters.rnr_naks);
	cause("seed=1,rnr=50");
	for (i = 0; i < 50; i++) {
		assert_int_equal(tell(&pair.p, ORDER_POST_RECV, 0, 64, i).result, 0);
		do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_SEND, 0, 64, 0), IBV_WC_SUCCESS);
		assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.wr_id, i);
	}
	cause("rnr=0");
	assert_true(load_relaxed(&nic.pub->counters.rnr_naks) - before > 10);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_receiver_that_is_never_ready_uses_up_the_retries(void **state)
{
	static const struct manners impatient = { 1, 2, 14, 7 };
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, &impatient);
	cause("rnr=100");
	assert_int_equal(tell(&pair.p, ORDER_POST_RECV, 0, 64, 1).result, 0);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 64, 0), IBV_WC_SUCCESS);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_SEND, 0, 64, 0), IBV_WC_RNR_RETRY_EXC_ERR);
	cause("rnr=0");
	puppet_stop(&pair.p, &pair.e);
}

/* The sum of this seed's draws exceeds the bound, so no clock decides. */
static void test_delays_add_up_and_keep_the_order(void **state)
{
	struct puppet_pair pair;
	uint64_t begin;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair, &plain);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	cause("seed=1,delay_us=10000");
	begin = now_ms();
	for (i = 0; i < QUEUE_DEPTH; i++) {
		w.wr.wr_id = i;
		assert_int_equal(post(&pair.e, &w), 0);
	}
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(&pair.e).wr_id, i);
	assert_true(now_ms() - begin >= 20);
	cause("delay_us=0");
	puppet_stop(&pair.p, &pair.e);
}

static const struct manners patient = { .min_rnr_timer = 1,
					.rnr_retry = 7,
					.timeout = 18,
					.retry_cnt = 7 };

static void test_posts_during_a_port_outage_complete_when_it_is_up(void **state)
{
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, &patient);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(port_state(&pair.e), IBV_PORT_ACTIVE);
	cause("port_down_ms=300,port_down_after=0");
	expect_event(&pair.e, IBV_EVENT_PORT_ERR);
	give_order(&pair.p, ORDER_WRITE_ONCE, 0, 0, 0);
	assert_int_equal(post(&pair.e, &w), 0);
	expect_event(&pair.e, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(port_state(&pair.e), IBV_PORT_ACTIVE);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_SUCCESS);
	take_answer(&pair.p);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_port_that_stays_down_uses_up_the_retries(void **state)
{
	static const struct manners impatient = { 1, 7, 1, 0 };
	struct puppet_pair pair;
	struct test_wr w;

	(void)state;
	start(&pair, &impatient);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	cause("port_down_ms=3600000,port_down_after=1");
	do_wr(&pair.e, &w, IBV_WC_SUCCESS);
	assert_int_equal(port_state(&pair.e), IBV_PORT_ACTIVE);
	do_wr(&pair.e, &w, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(port_state(&pair.e), IBV_PORT_DOWN);
	expect_event(&pair.e, IBV_EVENT_PORT_ERR);
	cause("port_down_ms=1,port_down_after=0");
	expect_event(&pair.e, IBV_EVENT_PORT_ACTIVE);
	puppet_stop(&pair.p, &pair.e);
}

static int change_range(struct ibv_mr *mr, void *addr, size_t length)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, addr, length, 0);
}

static void test_registering_fails_at_its_limit(void **state)
{
	struct ibv_mr *mr, *more;
	struct puppet_pair pair;

	(void)state;
	start(&pair, &plain);
	cause("mr_bytes_max=5M"); /* the end already has 4 MiB */
	mr = ibv_reg_mr(pair.e.pd, pair.e.buf, 1 << 20, 0);
	assert_non_null(mr);
	errno = 0;
	assert_null(ibv_reg_mr(pair.e.pd, pair.e.buf, 1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	more = ibv_reg_mr(pair.e.pd, pair.e.buf, 1, 0);
	assert_non_null(more);
	/* Reregistration counts only the difference. */
	assert_int_equal(change_range(more, pair.e.buf, 1 << 20), 0);
	assert_int_equal(change_range(more, pair.e.buf, (1 << 20) + 1), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(change_range(more, pair.e.buf, 1 << 20), 0);
	assert_int_equal(ibv_dereg_mr(more), 0);
	cause("mr_bytes_max=never");
	puppet_stop(&pair.p, &pair.e);
}

static void test_an_absent_or_silent_peer_is_reported(void **state)
{
	struct puppet_pair pair;

	(void)state;
	start(&pair, &plain);
	assert_int_equal(fault(1, "rnr=1"), -ESRCH);
	stop_process(pair.p.pid);
	assert_int_equal(fault(pair.p.pid, "rnr=1"), -ETIMEDOUT);
	kill(pair.p.pid, SIGCONT);
	puppet_stop(&pair.p, &pair.e);
}

static void nothing_new(struct endpoint *e)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct ibv_td_init_attr td = { 0 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	errno = 0;
	assert_null(ibv_create_srq(e->pd, &srq));
	assert_int_equal(errno, EIO);
	errno = 0;
	assert_null(ibv_alloc_mw(e->pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, EIO);
	errno = 0;
	assert_null(ibv_create_ah(e->pd, &ah));
	assert_int_equal(errno, EIO);
	errno = 0;
	assert_null(ibv_create_comp_channel(e->ctx));
	assert_int_equal(errno, EIO);
	errno = 0;
	assert_null(ibv_alloc_td(e->ctx, &td));
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_resize_cq(e->cq, 1), EIO);
	assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), EIO);
	errno = 0;
	assert_null(ibv_open_device(e->ctx->device));
	assert_int_equal(errno, ENODEV);
}

/* A lost device never comes back, so the test uses a new process. */
static int lose_device(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_async_event event;
	struct puppet_pair pair;
	struct test_wr w;
	int count;

	start(&pair, &plain);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	tell(&pair.p, ORDER_WRITE_ONCE, 0, 0, 0);
	assert_int_equal(post_recv(&pair.e, 5, 0, 64), 0);
	cause("device_gone_after=0");
	assert_int_equal(ibv_get_async_event(pair.e.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_WR_FLUSH_ERR);
	do_wr(&pair.e, &w, IBV_WC_WR_FLUSH_ERR);
	errno = 0;
	assert_null(ibv_reg_mr(pair.e.pd, pair.e.buf, 1, 0));
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_query_device_ex(pair.e.ctx, NULL, &attr), EIO);
	assert_null(ibv_alloc_pd(pair.e.ctx));
	assert_null(ibv_create_cq(pair.e.ctx, 1, NULL, NULL, 0));
	nothing_new(&pair.e);
	ibv_free_device_list(ibv_get_device_list(&count));
	assert_int_equal(count, 0);
	/* To the other end it looks as if nobody answers. */
	assert_int_equal(tell(&pair.p, ORDER_SEND, 0, 8, 0).result, 0);
	assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_RETRY_EXC_ERR);
	puppet_stop(&pair.p, &pair.e);
	return 0;
}

/* The events of a run as text: the statuses, and the number of RNR NAKs. */
static int trace_faults(void)
{
	struct puppet_pair pair;
	struct test_wr w;
	int i;

	for (i = 0; i < 20; i++) {
		uint64_t before;
		enum ibv_wc_status status;

		start(&pair, &plain);
		before = load_relaxed(&nic.pub->counters.rnr_naks);
		do {
			tell(&pair.p, ORDER_POST_RECV, 0, 64, 0);
			wr_make(&w, &pair.e, IBV_WR_SEND, 0, 64, 0);
			assert_int_equal(post(&pair.e, &w), 0);
			status = wait_wc(&pair.e).status;
			if (status == IBV_WC_SUCCESS)
				tell(&pair.p, ORDER_POLL, 0, 0, 0);
			printf("%d ", status);
		} while (status == IBV_WC_SUCCESS);
		printf("%u\n", (unsigned int)(load_relaxed(&nic.pub->counters.rnr_naks) - before));
		puppet_stop(&pair.p, &pair.e);
	}
	return 0;
}

static void run_again(const char *environment, const char *role, char *output, size_t size)
{
	size_t n = 0, got;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		setenv("WEIR_SOFTNIC", environment, 1);
		execl("/proc/self/exe", "again", role, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while (n < size - 1 && (got = read(fds[0], output + n, size - 1 - n)) > 0)
		n += got;
	output[n] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_a_device_that_disappears_flushes_and_refuses(void **state)
{
	char output[1024];

	(void)state;
	run_again("", "--lose-device", output, sizeof(output));
}

static void test_the_same_seed_brings_the_same_faults(void **state)
{
	static char first[16384], second[16384], other[16384];

	(void)state;
	run_again("seed=1,error=10,rnr=30,delay_us=50", "--trace", first, sizeof(first));
	run_again("seed=1,error=10,rnr=30,delay_us=50", "--trace", second, sizeof(second));
	run_again("seed=2,error=10,rnr=30,delay_us=50", "--trace", other, sizeof(other));
	assert_true(strlen(first) > 100);
	assert_string_equal(first, second);
	assert_string_not_equal(first, other);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_a_queue_pair_fails_after_as_many_operations),
		cmocka_unit_test(test_a_storm_of_rnr_is_weathered_by_retries),
		cmocka_unit_test(test_a_receiver_that_is_never_ready_uses_up_the_retries),
		cmocka_unit_test(test_delays_add_up_and_keep_the_order),
		cmocka_unit_test(test_posts_during_a_port_outage_complete_when_it_is_up),
		cmocka_unit_test(test_a_port_that_stays_down_uses_up_the_retries),
		cmocka_unit_test(test_registering_fails_at_its_limit),
		cmocka_unit_test(test_an_absent_or_silent_peer_is_reported),
		cmocka_unit_test(test_a_device_that_disappears_flushes_and_refuses),
		cmocka_unit_test(test_the_same_seed_brings_the_same_faults),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--trace"))
		return trace_faults();
	if (argc == 2 && !strcmp(argv[1], "--lose-device"))
		return lose_device();
	return test_main(argc, argv, tests);
}
