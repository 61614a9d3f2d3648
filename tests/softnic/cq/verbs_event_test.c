// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs event; devices: softnic rxe; timeout: 120 */
/* Completion channels: one event for each arm, none lost, none extra. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include "tests/support/verbs_puppet.h"

static bool is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void write_once(struct endpoint *e)
{
	struct test_wr w;

	do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
}

static void test_without_an_arm_there_is_no_event(void **state)
{
	struct puppet_pair *pair = *state;

	write_once(&pair->e);
	assert_false(is_readable(pair->e.channel->fd, 20));
}

static void test_one_arm_gives_one_event(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;

	assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
	write_once(e);
	write_once(e);
	wait_event(e);
	assert_false(is_readable(e->channel->fd, 20));
}

static void test_arming_twice_gives_one_event(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;

	ibv_req_notify_cq(e->cq, 0);
	ibv_req_notify_cq(e->cq, 0);
	write_once(e);
	wait_event(e);
	assert_false(is_readable(e->channel->fd, 20));
}

/* Leave two completions unpolled; only the first caused an event. */
static void leave_two(struct puppet_pair *pair)
{
	struct endpoint *e = &pair->e;
	struct test_wr w;
	int i;

	for (i = 0; i < 2; i++)
		assert_int_equal(post_recv(e, i, 0, 64), 0);
	ibv_req_notify_cq(e->cq, 0);
	assert_int_equal(post(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0)), 0);
	wait_event(e);
	tell(&pair->p, ORDER_SEND, 0, 64, 0);
	assert_int_equal(tell(&pair->p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_SUCCESS);
}

static void test_an_arm_fires_for_entries_since_the_last_event(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;

	skip_on_soft_roce("an arm fires for what comes after it");
	leave_two(pair);
	ibv_req_notify_cq(e->cq, 0);
	wait_event(e);
	ibv_req_notify_cq(e->cq, 0);
	assert_false(is_readable(e->channel->fd, 20));
	wait_wc(e);
	wait_wc(e);
	write_once(e);
	wait_event(e);
	tell(&pair->p, ORDER_SEND, 0, 64, 0);
	wait_wc(e);
	ibv_req_notify_cq(e->cq, 0);
	assert_false(is_readable(e->channel->fd, 20));
	tell(&pair->p, ORDER_POLL, 0, 0, 0);
}

static void test_entries_before_an_event_is_taken_raise_another(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct test_wr w;
	int i;

	skip_on_soft_roce("an arm fires for what comes after it");
	ibv_req_notify_cq(e->cq, 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(post(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0)), 0);
	wait_event(e); /* the event was for the first completion */
	ibv_req_notify_cq(e->cq, 0);
	assert_true(is_readable(e->channel->fd, PATIENCE_MS));
	wait_event(e);
	ibv_req_notify_cq(e->cq, 0);
	assert_false(is_readable(e->channel->fd, 20));
	wait_wc(e);
	wait_wc(e);
	write_once(e);
	wait_event(e);
}

/*
 * perftest before 23.07 arms, polls at most 16 completions, then expects an event for the rest
 * too.
 */
static void test_entries_left_by_a_poll_raise_an_event(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_wc wc;
	struct test_wr w;
	int i;

	skip_on_soft_roce("an arm fires for what comes after it");
	for (i = 0; i < 3; i++)
		assert_int_equal(post(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0)), 0);
	ibv_req_notify_cq(e->cq, 0);
	wait_event(e); /* the event was for all completions */
	for (i = 0; i < 2; i++) {
		assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
		ibv_req_notify_cq(e->cq, 0);
		assert_true(is_readable(e->channel->fd, PATIENCE_MS));
		wait_event(e);
	}
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
	ibv_req_notify_cq(e->cq, 0);
	assert_false(is_readable(e->channel->fd, 20));
	write_once(e);
	wait_event(e);
}

static void test_an_arm_for_solicited_ones_fires_if_one_came_since_the_last_event(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;

	skip_on_soft_roce("an arm fires for what comes after it");
	leave_two(pair);
	ibv_req_notify_cq(e->cq, 1);
	assert_false(is_readable(e->channel->fd, 20));
	tell(&pair->p, ORDER_SEND, 0, 64, 1);
	wait_event(e);
	assert_int_equal(post_recv(e, 2, 0, 64), 0);
	tell(&pair->p, ORDER_POLL, 0, 0, 0);
	tell(&pair->p, ORDER_SEND, 0, 64, 1);
	tell(&pair->p, ORDER_POLL, 0, 0, 0);
	ibv_req_notify_cq(e->cq, 1);
	wait_event(e);
	for (int i = 0; i < 4; i++)
		wait_wc(e);
}

static void test_a_channel_may_be_set_to_not_block(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	int flags = fcntl(e->channel->fd, F_GETFL);
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(fcntl(e->channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	ibv_req_notify_cq(e->cq, 0);
	write_once(e);
	wait_event(e);
	fcntl(e->channel->fd, F_SETFL, flags);
}

static void receive_once(struct puppet_pair *pair)
{
	assert_int_equal(post_recv(&pair->e, 7, 0, 64), 0);
	tell(&pair->p, ORDER_SEND, 0, 64, 0);
	assert_int_equal(tell(&pair->p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc_awake(&pair->e).wr_id, 7);
}

/* The event of the first arm came before the second arm, although no thread had taken it yet. */
static void test_an_arm_that_has_rung_is_not_the_next_one(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	int i;

	for (i = 0; i < 2; i++) {
		ibv_req_notify_cq(e->cq, 0);
		receive_once(pair);
	}
	for (i = 0; i < 2; i++) {
		assert_true(is_readable(e->channel->fd, PATIENCE_MS));
		wait_event(e);
	}
	assert_false(is_readable(e->channel->fd, 20));
}

/* Some programs watch many channels in one epoll, edge-triggered. */
static void test_each_event_is_edge_triggered(void **state)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET }, told;
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	int fd = epoll_create1(EPOLL_CLOEXEC), i;

	assert_int_equal(epoll_ctl(fd, EPOLL_CTL_ADD, e->channel->fd, &watched), 0);
	for (i = 0; i < 4; i++) {
		ibv_req_notify_cq(e->cq, 0);
		if (i % 2)
			receive_once(pair);
		else
			write_once(e);
		assert_int_equal(epoll_wait(fd, &told, 1, PATIENCE_MS), 1);
		wait_event(e);
	}
	close(fd);
}

struct event_waiter {
	struct endpoint *e;
	pthread_t thread;
	bool is_awake;
	int result, error;
};

static void *sleep_once(void *arg)
{
	struct event_waiter *s = arg;
	struct ibv_cq *cq;
	void *context;

	s->result = ibv_get_cq_event(s->e->channel, &cq, &context);
	s->error = errno;
	if (!s->result)
		ibv_ack_cq_events(cq, 1);
	__atomic_store_n(&s->is_awake, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_awake(const struct event_waiter *s)
{
	return __atomic_load_n(&s->is_awake, __ATOMIC_ACQUIRE);
}

static void sleeper_start(struct event_waiter *s, struct endpoint *e)
{
	*s = (struct event_waiter){ .e = e };
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_once, s), 0);
}

static int signals;

static void count_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&signals, 1, __ATOMIC_SEQ_CST);
}

static void set_handler(int flags)
{
	struct sigaction s = { .sa_handler = count_signal, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &s, NULL), 0);
}

/* With SA_RESTART, as perftest's alarm handler has. */
static void test_a_waiter_resumes_after_a_restarting_signal(void **state)
{
	struct puppet_pair *pair = *state;
	struct event_waiter s;

	set_handler(SA_RESTART);
	sleeper_start(&s, &pair->e);
	/* Repeat the signal: ThreadSanitizer may defer it until the thread does something. */
	while (__atomic_load_n(&signals, __ATOMIC_ACQUIRE) < 20 && !is_awake(&s)) {
		pthread_kill(s.thread, SIGUSR1);
		usleep(1000);
	}
	assert_false(is_awake(&s));
	ibv_req_notify_cq(pair->e.cq, 0);
	write_once(&pair->e);
	pthread_join(s.thread, NULL);
	assert_int_equal(s.result, 0);
	signal(SIGUSR1, SIG_DFL);
}

static void test_a_waiter_is_interrupted_by_any_other_signal(void **state)
{
	struct puppet_pair *pair = *state;
	struct event_waiter s;

	set_handler(0);
	sleeper_start(&s, &pair->e);
	while (!is_awake(&s)) {
		pthread_kill(s.thread, SIGUSR1);
		usleep(1000);
	}
	pthread_join(s.thread, NULL);
	assert_int_equal(s.result, -1);
	assert_int_equal(s.error, EINTR);
	signal(SIGUSR1, SIG_DFL);
}

/* Whichever thread wakes first. */
static void test_each_of_many_waiters_gets_an_event(void **state)
{
	enum { SLEEPERS = 4 };
	struct puppet_pair *pair = *state;
	struct event_waiter s[SLEEPERS];
	struct endpoint *e = &pair->e;
	int i;

	for (i = 0; i < SLEEPERS; i++)
		sleeper_start(&s[i], e);
	for (i = 0; i < SLEEPERS; i++) {
		ibv_req_notify_cq(e->cq, 0);
		receive_once(pair);
	}
	for (i = 0; i < SLEEPERS; i++) {
		pthread_join(s[i].thread, NULL);
		assert_int_equal(s[i].result, 0);
	}
	assert_false(is_readable(e->channel->fd, 20));
}

/* As with a NIC, whose acknowledgement precedes the answer. */
static void test_a_send_is_complete_when_its_answer_is_there(void **state)
{
	enum { TIMES = 300, LENGTH = 128 << 10 };
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct ibv_wc wc;
	struct test_wr w;
	int i;

	skip_on_soft_roce("a receive completes before it is acknowledged: the answer may overtake");
	give_order(&pair->p, ORDER_ECHO, 0, LENGTH, TIMES);
	for (i = 0; i < TIMES; i++) {
		assert_int_equal(post_recv(e, 1, LENGTH, 8), 0);
		assert_int_equal(post(e, wr_make(&w, e, IBV_WR_SEND, 0, LENGTH, 0)), 0);
		wc = wait_wc_awake(e);
		if (wc.opcode == IBV_WC_RECV)
			assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
		else
			assert_int_equal(wait_wc_awake(e).opcode, IBV_WC_RECV);
		assert_int_equal(wc.opcode, IBV_WC_SEND);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(take_answer(&pair->p).result, 0);
}

static void test_a_message_wakes_a_process_that_sleeps(void **state)
{
	struct puppet_pair *pair = *state;
	struct test_wr w;

	tell(&pair->p, ORDER_POST_RECV, 0, 64, 1);
	tell(&pair->p, ORDER_ARM, 0, 0, 0);
	give_order(&pair->p, ORDER_WAIT_EVENT, 0, 0, 0);
	usleep(20000);
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_SEND, 0, 64, 0), IBV_WC_SUCCESS);
	take_answer(&pair->p);
	assert_int_equal(tell(&pair->p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_SUCCESS);
}

static void test_an_arm_for_solicited_ones_waits_for_one(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;

	assert_int_equal(post_recv(e, 1, 0, 64), 0);
	assert_int_equal(post_recv(e, 2, 0, 64), 0);
	ibv_req_notify_cq(e->cq, 1);
	write_once(e); /* the completion of a send is not solicited */
	tell(&pair->p, ORDER_SEND, 0, 64, 0);
	assert_int_equal(wait_wc(e).wr_id, 1);
	assert_false(is_readable(e->channel->fd, 20));
	tell(&pair->p, ORDER_SEND, 0, 64, 1);
	wait_event(e);
	assert_int_equal(wait_wc(e).wr_id, 2);
	tell(&pair->p, ORDER_POLL, 0, 0, 0);
	tell(&pair->p, ORDER_POLL, 0, 0, 0);
}

/* Poll, arm, poll, sleep. Under constant sends the receiver must never sleep for ever. */
static void test_no_event_is_lost(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	int times = scaled(3000), left = times, i, n;
	struct ibv_wc wc;

	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(post_recv(e, i, 0, 8), 0);
	give_order(&pair->p, ORDER_SEND_MANY, 0, 8, times);
	while (left) {
		ibv_req_notify_cq(e->cq, 0);
		while ((n = ibv_poll_cq(e->cq, 1, &wc)) > 0) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(post_recv(e, 0, 0, 8), 0);
			left--;
		}
		if (!left)
			break;
		assert_true(is_readable(e->channel->fd, PATIENCE_MS));
		wait_event(e);
	}
	take_answer(&pair->p);
	if (is_readable(e->channel->fd, 0))
		wait_event(e);
}

static void *acknowledge_later(void *cq)
{
	usleep(50000);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void test_destroying_waits_for_the_acknowledgement(void **state)
{
	struct puppet_pair pair;
	pthread_t thread;
	struct ibv_cq *cq;
	uint64_t begin;
	void *context;

	(void)state;
	end_open(&pair.e, ALL_ACCESS);
	puppet_start(&pair.p, &pair.e, ALL_ACCESS, &plain);
	ibv_req_notify_cq(pair.e.cq, 0);
	write_once(&pair.e);
	assert_int_equal(ibv_get_cq_event(pair.e.channel, &cq, &context), 0);
	assert_int_equal(ibv_destroy_cq(pair.e.cq), EBUSY); /* its queue pair still exists */
	assert_int_equal(ibv_destroy_comp_channel(pair.e.channel), EBUSY);
	begin = now_ms();
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_later, cq), 0);
	puppet_stop(&pair.p, &pair.e);
	assert_true(now_ms() - begin >= 40);
	pthread_join(thread, NULL);
}

/* A queue pair in INIT, and a completion queue on @channel. */
static struct ibv_qp *new_qp(struct puppet_pair *pair, struct ibv_comp_channel *channel)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	init.recv_cq = init.send_cq = ibv_create_cq(pair->e.ctx, 4, NULL, channel, 0);
	qp = ibv_create_qp(pair->e.pd, &init);
	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	return qp;
}

static void test_destroying_discards_unread_events(void **state)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct puppet_pair *pair = *state;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(pair->e.ctx);
	struct ibv_qp *qp = new_qp(pair, channel);
	struct ibv_cq *cq = qp->recv_cq;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	ibv_req_notify_cq(cq, 0);
	ibv_modify_qp(qp, &error, IBV_QP_STATE);
	assert_true(is_readable(channel->fd, PATIENCE_MS)); /* the flushed receive */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_false(is_readable(channel->fd, 0));
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void test_posts_flushed_at_once_raise_an_event_for_any_length(void **state)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr list[4] = { { .next = &list[1] },
				       { .next = &list[2] },
				       { .next = &list[3] } },
			   *bad;
	struct puppet_pair *pair = *state;
	struct ibv_comp_channel *channel;
	struct ibv_wc wc[4];
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int got;

	skip_on_soft_roce("a receive that is posted in the error state is not flushed");
	channel = ibv_create_comp_channel(pair->e.ctx);
	qp = new_qp(pair, channel);
	cq = qp->recv_cq;
	ibv_modify_qp(qp, &error, IBV_QP_STATE);
	assert_int_equal(ibv_post_recv(qp, list, &bad), 0);
	for (got = 0; got < 4;)
		got += ibv_poll_cq(cq, 4, wc);
	assert_int_equal(ibv_post_recv(qp, &list[3], &bad), 0);
	ibv_req_notify_cq(cq, 0);
	assert_true(is_readable(channel->fd, PATIENCE_MS));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_without_an_arm_there_is_no_event),
		cmocka_unit_test(test_one_arm_gives_one_event),
		cmocka_unit_test(test_arming_twice_gives_one_event),
		cmocka_unit_test(test_an_arm_fires_for_entries_since_the_last_event),
		cmocka_unit_test(test_entries_before_an_event_is_taken_raise_another),
		cmocka_unit_test(test_entries_left_by_a_poll_raise_an_event),
		cmocka_unit_test(
			test_an_arm_for_solicited_ones_fires_if_one_came_since_the_last_event),
		cmocka_unit_test(test_a_channel_may_be_set_to_not_block),
		cmocka_unit_test(test_an_arm_that_has_rung_is_not_the_next_one),
		cmocka_unit_test(test_each_event_is_edge_triggered),
		cmocka_unit_test(test_a_waiter_resumes_after_a_restarting_signal),
		cmocka_unit_test(test_a_waiter_is_interrupted_by_any_other_signal),
		cmocka_unit_test(test_each_of_many_waiters_gets_an_event),
		cmocka_unit_test(test_a_send_is_complete_when_its_answer_is_there),
		cmocka_unit_test(test_a_message_wakes_a_process_that_sleeps),
		cmocka_unit_test(test_an_arm_for_solicited_ones_waits_for_one),
		cmocka_unit_test(test_no_event_is_lost),
		cmocka_unit_test(test_destroying_waits_for_the_acknowledgement),
		cmocka_unit_test(test_destroying_discards_unread_events),
		cmocka_unit_test(test_posts_flushed_at_once_raise_an_event_for_any_length),
	};

	return cmocka_run_group_tests(all, pair_up, pair_down);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
