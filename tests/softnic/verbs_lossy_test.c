// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Unreliable connections and datagrams: what arrives, with what in front, and what is
 * dropped without a word. Both ends are in one process, or in a puppet that dies.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "datagram_harness.h"
#include "softnic/nic.h"
#include "softnic/qp.h"

static void test_a_datagram_arrives_with_its_addresses(void **state)
{
	struct ibv_ah_attr attr;
	struct ibv_grh *grh;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct two t;
	struct wr w;

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
	assert_int_equal(wc.sl, 8 | 2);		/* as ConnectX says UDP over IPv4 */
	assert_memory_equal(t.base.buf + 8192 + GRH, t.base.buf, 100);
	assert_int_equal(t.base.buf[8192 + GRH + 100], 0);
	/* Its sender can be answered. */
	grh = (void *)(t.base.buf + 8192);
	assert_int_equal(ibv_init_ah_from_wc(t.base.ctx, 1, &wc, grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.grh.dgid.raw[12], 127);
	ah = ibv_create_ah_from_wc(t.base.pd, &wc, grh, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	two_down(&t);
}

/* The first one finds the other end, and does so before the post returns. */
static void test_what_a_process_sends_itself_is_done_when_it_is_posted(void **state)
{
	struct ibv_wc wc;
	struct two t;
	struct wr w;

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

static void test_a_queue_pair_may_send_to_itself(void **state)
{
	struct two t;
	struct wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	assert_int_equal(post_recv(&t.a, 7, 8192, 200), 0);
	datagram(&w, &t, 32)->wr.wr.ud.remote_qpn = t.a.qp->qp_num;
	assert_int_equal(post(&t.a, &w), 0);
	assert_int_equal(wait_wc(&t.a).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.a).status, IBV_WC_SUCCESS);
	two_down(&t);
}

/* Each is sent and done; after them one that arrives, in the receive they left. */
static void test_what_is_not_wanted_is_dropped(void **state)
{
	struct ibv_ah *nowhere;
	struct two t;
	struct wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	do_wr(&t.a, datagram(&w, &t, 64), IBV_WC_SUCCESS);	/* no receive */
	assert_int_equal(post_recv(&t.b, 7, 8192, GRH + 64), 0);
	datagram(&w, &t, 64)->wr.wr.ud.remote_qkey = QKEY + 1;
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	do_wr(&t.a, datagram(&w, &t, 65), IBV_WC_SUCCESS);	/* too long for it */
	datagram(&w, &t, 64)->wr.wr.ud.remote_qpn ^= 0x2000;	/* nobody has that number */
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	assert_nothing(&t.b);
	do_wr(&t.a, datagram(&w, &t, 64), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 7);
	nowhere = make_ah(&t.a, "2001:db8::1");
	assert_null(nowhere);
	assert_int_equal(errno, EHOSTUNREACH);
	two_down(&t);
}

/* The send queue stops, and goes on when told to; receives come in meanwhile. */
static void test_a_datagram_larger_than_the_mtu_stops_the_send_queue(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp_init_attr init;
	struct two t;
	struct wr w;

	(void)state;
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

static void test_datagrams_and_connections_post_only_what_they_have(void **state)
{
	struct two t;
	struct wr w;

	(void)state;
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

/* Reset and made ready again, it has the same number and another segment. */
static void test_a_datagram_finds_a_queue_pair_that_was_reset(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct two t;
	struct wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	assert_int_equal(post_recv(&t.b, 1, 8192, 200), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 1);
	assert_int_equal(ibv_modify_qp(t.b.qp, &attr, IBV_QP_STATE), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	to_init(&t.b);
	to_ready(&t.b, 0);
	assert_int_equal(post_recv(&t.b, 2, 8192, 200), 0);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 2);
	two_down(&t);
}

static void test_an_unreliable_connection_drops_and_goes_on(void **state)
{
	struct two t;
	struct wr w;

	(void)state;
	two_up(&t, IBV_QPT_UC);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_SEND, 0, 64, 0), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&t.b, 7, 8192, 64), 0);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_SEND, 0, 65, 0), IBV_WC_SUCCESS);
	wr_make(&w, &t.a, IBV_WR_RDMA_WRITE, 0, 8, 4096)->wr.wr.rdma.rkey ^= 1;
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	assert_nothing(&t.b);
	memset(t.base.buf, 0x77, 64);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_RDMA_WRITE, 0, 8, 4096), IBV_WC_SUCCESS);
	assert_int_equal(t.base.buf[4096], 0x77);
	wr_make(&w, &t.a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, 5000)->wr.imm_data = 5;
	do_wr(&t.a, &w, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	two_down(&t);
}

/* A taker that is no more: what it had comes back, and the next one gets it. */
static void test_a_receive_that_a_dead_process_had_is_received_into(void **state)
{
	const uint32_t slot = 1000, dead = slot << SOFTNIC_QP_INDEX_BITS;
	struct rq_receive r;
	struct two t;
	struct qp *qp;
	struct wr w;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	qp = to_qp(t.b.qp);
	assert_int_equal(post_recv(&t.b, 7, 8192, 200), 0);
	store_release(&qp->segment.guards.at[5].user, dead);
	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, dead));
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_nothing(&t.b);
	qp_guest_ended(NULL, slot);
	do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 7);
	assert_int_equal(load_acquire(&qp->segment.guards.at[5].user), 0);
	two_down(&t);
}

/* The sender may not use a region that is gone, so what it had taken is given back. */
static void test_a_receive_that_was_given_back_is_received_into(void **state)
{
	struct rq_result nothing = { .status = RECV_VOID };
	struct rq_receive r;
	struct two t;
	struct qp *qp;
	struct wr w;

	(void)state;
	two_up(&t, IBV_QPT_UC);
	qp = to_qp(t.b.qp);
	nothing.dest_qp = qp->ibv.qp_num;
	assert_int_equal(post_recv(&t.b, 7, 8192, 200), 0);
	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, t.a.qp->qp_num));
	assert_true(rq_finish(&qp->rq->ring, &r, t.a.qp->qp_num, &nothing, &qp->arrivals.ring));
	cq_nudge(to_cq(t.b.cq)->line.at, t.b.qp->qp_num);
	assert_nothing(&t.b);
	do_wr(&t.a, wr_make(&w, &t.a, IBV_WR_SEND, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&t.b).wr_id, 7);
	two_down(&t);
}

static void test_the_end_of_a_process_is_no_answer_from_another(void **state)
{
	struct peer stranger = { 0 };
	uint64_t begin;
	struct two t;
	struct wr w;
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

static void send_for_ever(struct end *e, const uint32_t *qpn)
{
	struct two t;
	struct wr w;

	(void)e;
	two_up(&t, IBV_QPT_UD);
	for (;;) {
		datagram(&w, &t, MTU)->wr.wr.ud.remote_qpn = *qpn;
		do_wr(&t.a, &w, IBV_WC_SUCCESS);
	}
}

/* Several processes send, and are killed anywhere; whoever is left is still received from. */
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
	struct two t;
	struct wr w;

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
			assert_int_equal(post_recv(&t.b, wc.wr_id, 65536 * (1 + wc.wr_id),
						   GRH + MTU), 0);
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
	/* All of them fill up, once the last death is noticed. */
	for (n = 0; n < RECEIVES; ) {
		do_wr(&t.a, datagram(&w, &t, 8), IBV_WC_SUCCESS);
		n += ibv_poll_cq(t.b.cq, 1, &wc);
	}
	two_down(&t);
}

static int mapped_queue_pairs(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:softnic-qp") != NULL;
	fclose(maps);
	return n;
}

/* Each of these was mapped twice: by its owner, and by who sent to it. */
static void test_who_sends_to_one_after_the_other_keeps_none_that_has_gone(void **state)
{
	enum { MANY = 20 };
	uint64_t give_up_ms;
	struct end after;
	struct two t;
	struct wr w;
	int first, i;

	(void)state;
	two_up(&t, IBV_QPT_UD);
	first = mapped_queue_pairs();
	for (i = 0; i < MANY; i++) {
		lossy_open(&after, &t.base, IBV_QPT_UD, 0);
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
		cmocka_unit_test(test_a_datagram_arrives_with_its_addresses),
		cmocka_unit_test(test_what_a_process_sends_itself_is_done_when_it_is_posted),
		cmocka_unit_test(test_a_queue_pair_may_send_to_itself),
		cmocka_unit_test(test_what_is_not_wanted_is_dropped),
		cmocka_unit_test(test_a_datagram_larger_than_the_mtu_stops_the_send_queue),
		cmocka_unit_test(test_datagrams_and_connections_post_only_what_they_have),
		cmocka_unit_test(test_a_datagram_finds_a_queue_pair_that_was_reset),
		cmocka_unit_test(test_an_unreliable_connection_drops_and_goes_on),
		cmocka_unit_test(test_a_receive_that_a_dead_process_had_is_received_into),
		cmocka_unit_test(test_a_receive_that_was_given_back_is_received_into),
		cmocka_unit_test(test_the_end_of_a_process_is_no_answer_from_another),
		cmocka_unit_test(test_senders_that_are_killed_leave_every_receive_usable),
		cmocka_unit_test(test_who_sends_to_one_after_the_other_keeps_none_that_has_gone),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--sender"))
		return play_sender(argv[2]);
	return test_main(argc, argv, tests);
}
