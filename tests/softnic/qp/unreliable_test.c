// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs unreliable; devices: softnic; timeout: 120 */
/*
 * Softnic's UC and UD: completion of sends, and the death of senders and receivers. Both ends
 * are in the test's process, or one is a puppet that dies.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "tests/support/datagram_pair.h"
#include "tests/support/silent_slot.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"

/* The first send looks up the other end before the post returns. */
static void test_a_send_to_the_own_process_completes_at_once(void **state)
{
	struct ibv_wc wc;
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	assert_int_equal(post_recv(&t.b, 7, 8192, 200), 0);
	assert_int_equal(post(&t.a, datagram(&w, &t, 32)), 0);
	assert_int_equal(ibv_poll_cq(t.a.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(t.b.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 7);
	two_down(&t);
}

/* A dead sender had taken the receive: the receive comes back, and the next message gets it. */
static void test_a_receive_that_a_dead_process_had_is_received_into(void **state)
{
	const uint32_t slot = 1000, dead = slot << SOFTNIC_QP_INDEX_BITS;
	struct rq_receive r;
	struct datagram_pair t;
	struct qp *qp;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	qp = to_qp(t.b.qp);
	assert_int_equal(post_recv(&t.b, 7, 8192, 200), 0);
	store_release(&qp->segment.guards.at[5].user, dead);
	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, dead));
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_nothing(&t.b);
	pthread_mutex_lock(&nic.lock);
	qp_client_ended(NULL, slot);
	pthread_mutex_unlock(&nic.lock);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 7);
	assert_int_equal(load_acquire(&qp->segment.guards.at[5].user), 0);
	two_down(&t);
}

/* The sender may not use a deregistered region, and returns the receive. */
static void test_a_receive_that_was_given_back_is_received_into(void **state)
{
	struct rq_result nothing = { .status = RECV_VOID };
	struct rq_receive r;
	struct datagram_pair t;
	struct qp *qp;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UC);
	qp = to_qp(t.b.qp);
	nothing.dest_qp = qp->ibv.qp_num;
	assert_int_equal(post_recv(&t.b, 7, 8192, 200), 0);
	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, t.a.qp->qp_num));
	assert_true(rq_finish(&qp->rq->ring, &r, t.a.qp->qp_num, &nothing, &qp->arrivals.ring));
	cq_mark(to_cq(t.b.cq)->doorbell.at, t.b.qp->qp_num);
	assert_nothing(&t.b);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_SEND, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 7);
	two_down(&t);
}

static void test_the_end_of_a_process_is_no_answer_from_another(void **state)
{
	struct shm_peer stranger = { 0 };
	uint64_t begin;
	struct datagram_pair t;
	struct test_wr w;
	int fd;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	datagram(&w, &t, 8)->wr.wr.ud.remote_qpn = take_slot(&fd) << SOFTNIC_QP_INDEX_BITS;
	begin = now_ms();
	assert_int_equal(post(&t.a, &w), 0);
	pthread_mutex_lock(&nic.lock);
	qp_peer_ended(&stranger);
	pthread_mutex_unlock(&nic.lock);
	assert_int_equal(wait_wc(&t.a).status, IBV_WC_SUCCESS);
	assert_true(now_ms() - begin >= 1000);
	close(fd);
	two_down(&t);
}

static void send_for_ever(struct endpoint *e, const uint32_t *qpn)
{
	struct datagram_pair t;
	struct test_wr w;

	(void)e;
	two_up(&t, IBV_QPT_UD);
	for (;;) {
		datagram(&w, &t, MTU)->wr.wr.ud.remote_qpn = *qpn;
		do_wr(&t.a, &w, IBV_WC_SUCCESS);
	}
}

/*
 * Several processes send and are killed at random points. Messages of the survivors still
 * arrive.
 */
static int play_sender(const char *number)
{
	uint32_t qpn = strtoul(number, NULL, 0);

	send_for_ever(NULL, &qpn);
	return 0;
}

static pid_t start_sender(uint32_t qpn)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%u", qpn);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execl("/proc/self/exe", "sender", "--sender", number, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void test_senders_that_are_killed_leave_every_receive_usable(void **state)
{
	enum { SENDERS = 3, ROUNDS = 9, RECEIVES = 8 };
	pid_t pids[SENDERS];
	uint32_t i, n, round;
	struct ibv_wc wc;
	struct datagram_pair t;
	struct test_wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	for (i = 0; i < SENDERS; i++)
		pids[i] = start_sender(t.b.qp->qp_num);
	for (i = 0; i < RECEIVES; i++)
		assert_int_equal(post_recv(&t.b, i, 65536 * (1 + i), GRH + MTU), 0);
	for (round = 0; round < ROUNDS; round++) {
		for (n = 0; n < 50; n++) {
			wc = wait_wc(&t.b);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(
				post_recv(&t.b, wc.wr_id, 65536 * (1 + wc.wr_id), GRH + MTU), 0);
		}
		i = round % SENDERS;
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		pids[i] = start_sender(t.b.qp->qp_num);
	}
	for (i = 0; i < SENDERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	/* Once the last death is noticed, messages fill all receives. */
	for (n = 0; n < RECEIVES;) {
		do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
		n += ibv_poll_cq(t.b.cq, 1, &wc);
	}
	two_down(&t);
}

static int mapped_queue_pairs(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char doorbell[512];
	int n = 0;

	assert_non_null(maps);
	while (fgets(doorbell, sizeof(doorbell), maps))
		n += strstr(doorbell, "/memfd:softnic-qp") != NULL;
	fclose(maps);
	return n;
}

/* Each segment is mapped twice: by its owner, and by the sender. */
static void test_a_sender_keeps_no_peer_that_has_gone(void **state)
{
	enum { MANY = 20 };
	uint64_t give_up_ms;
	struct endpoint after;
	struct datagram_pair t;
	struct test_wr w;
	int first, i;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	first = mapped_queue_pairs();
	for (i = 0; i < MANY; i++) {
		endpoint_open_unreliable(&after, &t.base, IBV_QPT_UD, 0);
		to_init(&after);
		to_ready(&after, 0);
		assert_int_equal(post_recv(&after, 1, 4096, 100), 0);
		datagram(&w, &t, 8);
		w.wr.wr.ud.remote_qpn = after.qp->qp_num;
		do_wr(&t.a, &w, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(&after).status, IBV_WC_SUCCESS);
		end_close(&after);
	}
	give_up_ms = now_ms() + PATIENCE_MS;
	while (mapped_queue_pairs() != first) {
		assert_true(now_ms() < give_up_ms);
		usleep(1000);
	}
	assert_int_equal(post_recv(&t.b, 1, 4096, 100), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).status, IBV_WC_SUCCESS);
	two_down(&t);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_a_send_to_the_own_process_completes_at_once),
		cmocka_unit_test(test_a_receive_that_a_dead_process_had_is_received_into),
		cmocka_unit_test(test_a_receive_that_was_given_back_is_received_into),
		cmocka_unit_test(test_the_end_of_a_process_is_no_answer_from_another),
		cmocka_unit_test(test_senders_that_are_killed_leave_every_receive_usable),
		cmocka_unit_test(test_a_sender_keeps_no_peer_that_has_gone),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--sender"))
		return play_sender(argv[2]);
	return test_main(argc, argv, tests);
}
