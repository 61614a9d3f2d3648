// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic fault unreliable; devices: softnic; timeout: 120 */
/*
 * Injected faults on UC and UD. Without acknowledgements the sender learns nothing: a faulty
 * message is lost, its WR succeeds, and the queue pair goes on.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support/datagram_pair.h"
#include "fault_fixture.h"
#include "softnic/verbs/nic.h"

enum { IN_B = 8192, ROOM = 64 };

static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
enum { TYPES = sizeof(types) / sizeof(types[0]) };

/* A message with a number. */
static struct test_wr *numbered(struct test_wr *w, struct datagram_pair *t, uint32_t number)
{
	wr_make(w, &t->a, IBV_WR_SEND, 0, sizeof(number), 0);
	if (t->a.qp->qp_type == IBV_QPT_UD)
		datagram(w, t, sizeof(number));
	memcpy(t->base.buf, &number, sizeof(number));
	w->wr.wr_id = number;
	w->wr.send_flags |= IBV_SEND_INLINE;
	return w;
}

static void send_number(struct datagram_pair *t, uint32_t number)
{
	struct test_wr w;

	do_wr(&t->a, numbered(&w, t, number), IBV_WC_SUCCESS);
}

static uint64_t place(uint64_t wr_id)
{
	return IN_B + ROOM * wr_id;
}

static void give_receives(struct datagram_pair *t, uint32_t num)
{
	uint32_t i;

	for (i = 0; i < num; i++)
		assert_int_equal(post_recv(&t->b, i, place(i), ROOM), 0);
}

static uint32_t number_in(const struct datagram_pair *t, const struct ibv_wc *wc)
{
	uint32_t number;

	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	memcpy(&number, t->base.buf + place(wc->wr_id) + wc->byte_len - sizeof(number),
	       sizeof(number));
	return number;
}

static void expect_number(struct datagram_pair *t, uint32_t number)
{
	struct ibv_wc wc = wait_wc(&t->b);

	assert_int_equal(number_in(t, &wc), number);
}

static void assert_ready_to_send(struct endpoint *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
}

static void test_the_operation_that_fails_is_lost_and_no_other(void **state)
{
	struct datagram_pair t;
	uint32_t i;
	int type;

	(void)state;
	for (type = 0; type < TYPES; type++) {
		two_up(&t, types[type]);
		give_receives(&t, 5);
		cause("error_after=3");
		for (i = 0; i < 6; i++)
			send_number(&t, i);
		for (i = 0; i < 6; i++)
			if (i != 3)
				expect_number(&t, i);
		assert_nothing(&t.b);
		assert_ready_to_send(&t.a);
		cause("error_after=never");
		two_down(&t);
	}
}

static void test_a_write_that_fails_changes_nothing(void **state)
{
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UC);
	memset(t.base.buf, 0x5a, 8);
	memset(t.base.buf + IN_B, 0, 8);
	cause("error_after=0");
	wr_make(&w, &t.a, IBV_WR_RDMA_WRITE, 0, 8, IN_B);
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	assert_int_equal(t.base.buf[IN_B], 0);
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	assert_memory_equal(t.base.buf + IN_B, t.base.buf, 8);
	cause("error_after=never");
	two_down(&t);
}

/* Messages arrive unchanged and in order, and none arrives twice. */
static uint32_t num_arrived(struct datagram_pair *t, uint32_t num_sent)
{
	uint32_t i, n = 0, number, next = 0;
	struct ibv_wc wc;

	for (i = 0; i < num_sent; i++) {
		send_number(t, i);
		if (!ibv_poll_cq(t->b.cq, 1, &wc))
			continue;
		number = number_in(t, &wc);
		assert_in_range(number, next, i);
		next = number + 1;
		n++;
		assert_int_equal(post_recv(&t->b, wc.wr_id, place(wc.wr_id), ROOM), 0);
	}
	assert_nothing(&t->b);
	return n;
}

static void test_as_many_are_lost_as_was_asked_for(void **state)
{
	enum { SENDS = 400 };
	struct datagram_pair t;
	int type;

	(void)state;
	for (type = 0; type < TYPES; type++) {
		two_up(&t, types[type]);
		give_receives(&t, 2);
		cause("seed=1,error=50");
		assert_in_range(num_arrived(&t, SENDS), SENDS / 4, 3 * SENDS / 4);
		cause("error=100");
		assert_int_equal(num_arrived(&t, SENDS), 0);
		cause("error=0");
		assert_int_equal(num_arrived(&t, SENDS), SENDS);
		assert_ready_to_send(&t.a);
		two_down(&t);
	}
}

/* Only RC can report receiver-not-ready. */
static void test_a_storm_of_rnr_does_not_meet_them(void **state)
{
	uint64_t before;
	struct datagram_pair t;
	int type;

	(void)state;
	for (type = 0; type < TYPES; type++) {
		two_up(&t, types[type]);
		before = load_relaxed(&nic.pub->counters.rnr_naks);
		cause("rnr=100");
		send_number(&t, 1); /* without a posted receive */
		give_receives(&t, 1);
		send_number(&t, 2);
		expect_number(&t, 2);
		assert_nothing(&t.b);
		assert_int_equal(load_relaxed(&nic.pub->counters.rnr_naks), before);
		cause("rnr=0");
		two_down(&t);
	}
}

/* The sum of this seed's draws exceeds the bound, so no clock decides. */
static void test_delays_add_up_lose_nothing_and_keep_the_order(void **state)
{
	uint64_t begin;
	struct datagram_pair t;
	struct test_wr w;
	uint32_t i;
	int type;

	(void)state;
	for (type = 0; type < TYPES; type++) {
		two_up(&t, types[type]);
		give_receives(&t, QUEUE_DEPTH);
		cause("seed=1,delay_us=10000");
		begin = now_ms();
		for (i = 0; i < QUEUE_DEPTH; i++)
			assert_int_equal(post(&t.a, numbered(&w, &t, i)), 0);
		for (i = 0; i < QUEUE_DEPTH; i++) {
			assert_int_equal(wait_wc(&t.a).wr_id, i);
			expect_number(&t, i);
		}
		assert_true(now_ms() - begin >= 20);
		cause("delay_us=0");
		two_down(&t);
	}
}

static void test_datagrams_from_a_port_that_is_down_are_lost(void **state)
{
	struct datagram_pair t;
	int type;

	(void)state;
	for (type = 0; type < TYPES; type++) {
		two_up(&t, types[type]);
		give_receives(&t, 2);
		send_number(&t, 1);
		expect_number(&t, 1);
		cause("port_down_ms=3600000,port_down_after=0");
		expect_event(&t.base, IBV_EVENT_PORT_ERR);
		assert_int_equal(port_state(&t.base), IBV_PORT_DOWN);
		send_number(&t, 2);
		assert_nothing(&t.b);
		assert_ready_to_send(&t.a);
		cause("port_down_ms=1,port_down_after=0");
		expect_event(&t.base, IBV_EVENT_PORT_ACTIVE);
		send_number(&t, 3);
		expect_number(&t, 3);
		two_down(&t);
	}
}

/* Another process: write the QP number, then the number of each datagram, until killed. */
static int play_receiver(int fd)
{
	uint32_t number;
	struct ibv_wc wc;
	struct datagram_pair t;

	two_up(&t, IBV_QPT_UD);
	give_receives(&t, QUEUE_DEPTH);
	number = t.b.qp->qp_num;
	while (write(fd, &number, sizeof(number)) == sizeof(number)) {
		while (!ibv_poll_cq(t.b.cq, 1, &wc))
			usleep(100);
		number = number_in(&t, &wc);
		assert_int_equal(post_recv(&t.b, wc.wr_id, place(wc.wr_id), ROOM), 0);
	}
	return 1;
}

static pid_t start_receiver(int *fd)
{
	char text[16];
	int fds[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	snprintf(text, sizeof(text), "%d", fds[1]);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		execl("/proc/self/exe", "receiver", "--receiver", text, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

static bool has_heard(int fd, int timeout_ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, timeout_ms) == 1;
}

static uint32_t hear(int fd)
{
	uint32_t number;

	assert_true(has_heard(fd, PATIENCE_MS));
	assert_int_equal(read(fd, &number, sizeof(number)), sizeof(number));
	return number;
}

static void send_to(struct datagram_pair *t, uint32_t qpn, uint32_t number)
{
	struct test_wr w;

	numbered(&w, t, number)->wr.wr.ud.remote_qpn = qpn;
	do_wr(&t->a, &w, IBV_WC_SUCCESS);
}

enum { BEFORE = 1, LOST, AFTER };

/* The first datagrams are lost while the other process is slow to answer or its port is down. */
static void send_until_heard(struct datagram_pair *t, uint32_t qpn, uint32_t number, int fd)
{
	uint64_t deadline = now_ms() + PATIENCE_MS;
	uint32_t heard = 0;

	while (heard != number) {
		assert_true(now_ms() < deadline);
		send_to(t, qpn, number);
		if (has_heard(fd, 10))
			heard = hear(fd);
		assert_int_not_equal(heard, LOST);
	}
}

static void test_datagrams_to_a_port_that_is_down_are_lost(void **state)
{
	struct datagram_pair t;
	uint32_t qpn;
	pid_t pid;
	int fd;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	pid = start_receiver(&fd);
	qpn = hear(fd);
	send_until_heard(&t, qpn, BEFORE, fd);
	assert_int_equal(fault(pid, "port_down_ms=3600000,port_down_after=0"), 0);
	send_to(&t, qpn, LOST);
	assert_int_equal(port_state(&t.base), IBV_PORT_ACTIVE);
	assert_int_equal(fault(pid, "port_down_ms=1,port_down_after=0"), 0);
	send_until_heard(&t, qpn, AFTER, fd);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd);
	two_down(&t);
}

/* A lost device stays away, so each round uses a new process. */
static int play_device_that_goes(enum ibv_qp_type type)
{
	struct ibv_wc wc;
	struct datagram_pair t;
	struct test_wr w;

	two_up(&t, type);
	give_receives(&t, 2);
	cause("device_gone_after=1");
	send_number(&t, 1);
	do_wr(&t.a, numbered(&w, &t, 2), IBV_WC_WR_FLUSH_ERR);
	expect_number(&t, 1);
	wc = wait_wc(&t.b);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	two_down(&t);
	return 0;
}

static void test_posts_to_a_removed_device_are_flushed(void **state)
{
	int type, status;
	char text[16];
	pid_t pid;

	(void)state;
	for (type = 0; type < TYPES; type++) {
		snprintf(text, sizeof(text), "%d", types[type]);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			execl("/proc/self/exe", "sender", "--device-goes", text, (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_the_operation_that_fails_is_lost_and_no_other),
		cmocka_unit_test(test_a_write_that_fails_changes_nothing),
		cmocka_unit_test(test_as_many_are_lost_as_was_asked_for),
		cmocka_unit_test(test_a_storm_of_rnr_does_not_meet_them),
		cmocka_unit_test(test_delays_add_up_lose_nothing_and_keep_the_order),
		cmocka_unit_test(test_datagrams_from_a_port_that_is_down_are_lost),
		cmocka_unit_test(test_datagrams_to_a_port_that_is_down_are_lost),
		cmocka_unit_test(test_posts_to_a_removed_device_are_flushed),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--receiver"))
		return play_receiver(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "--device-goes"))
		return play_device_that_goes(atoi(argv[2]));
	return test_main(argc, argv, tests);
}
