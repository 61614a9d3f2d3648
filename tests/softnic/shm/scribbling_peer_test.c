// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic scribbling peer; devices: softnic; timeout: 120 */
/*
 * A peer attaches properly, and then writes at random into all reachable memory. Only the
 * peer's own connection may break. No process crashes, other bytes stay intact, and a receiver
 * asleep is woken by later messages.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/base/rng.h"
#include "softnic/qp/qp.h"
#include "tests/support/verbs_puppet.h"

enum { ROUNDS = 300 };

static uint32_t next_random(uint64_t *state)
{
	return weir_rng_next(state) >> 32;
}

/* The scribbler is the honest end's peer, and so has the same mappings as a hostile process. */
static void scribble(const struct endpoint *e, uint64_t *random)
{
	const struct remote_qp *r = &to_qp(e->qp)->remote;
	uint32_t *words = (uint32_t *)r->shared;
	uint32_t n = r->size / sizeof(*words), i;

	for (i = 0; i < n / 4; i++)
		store_relaxed(&words[next_random(random) % n],
			      next_random(random) % (next_random(random) % 2 ? 64 : UINT32_MAX));
}

/* No completion may claim a transfer that did not happen. */
static void drain(struct endpoint *e)
{
	struct ibv_wc wc[8];
	int i, n = ibv_poll_cq(e->cq, 8, wc);

	for (i = 0; i < n; i++)
		assert_true(wc[i].opcode != IBV_WC_RECV || wc[i].byte_len <= 64);
}

static void connect_both(struct endpoint *a, struct endpoint *b)
{
	struct endpoint_name name = end_name(b);

	end_connect(a, &name, &plain);
	name = end_name(a);
	end_connect(b, &name, &plain);
}

static void be_victim(uint64_t seed)
{
	struct endpoint victim, hostile;
	struct test_wr w;
	int i;

	end_open(&victim, ALL_ACCESS);
	end_open_sharing(&hostile, &victim);
	connect_both(&victim, &hostile);
	do_wr(&hostile, wr_make(&w, &hostile, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	do_wr(&victim, wr_make(&w, &victim, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	for (i = 0; i < ROUNDS; i++) {
		scribble(&hostile, &seed);
		post_recv(&victim, i, 64 * (i % 16), 64);
		post(&victim,
		     wr_make(&w, &victim, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_READ, 4096, 64, 4096));
		post(&hostile, wr_make(&w, &hostile, IBV_WR_SEND, 8192, 64, 0));
		drain(&victim);
		drain(&hostile);
	}
	end_close(&hostile);
	end_close(&victim);
}

static void test_a_scribbling_peer_crashes_no_other_peer(void **state)
{
	struct puppet_pair *honest = *state;
	uint64_t seed;
	struct test_wr w;

	for (seed = 1; seed <= 20; seed++) {
		be_victim(seed);
		memset(honest->e.buf, seed, 4096);
		do_wr(&honest->e, wr_make(&w, &honest->e, IBV_WR_RDMA_WRITE, 0, 4096, 0),
		      IBV_WC_SUCCESS);
		assert_int_equal(tell(&honest->p, ORDER_PEEK, 4088, 0, 0).value,
				 0x0101010101010101ull * seed);
	}
}

/* Misuse a wake-up socket in every way, except for the sleeper's end. */
static void pull_badly(int fd, uint64_t *random)
{
	char bytes[64];

	switch (next_random(random) % 8) {
	case 0:
		(void)!recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		break;
	case 1:
		(void)!send(fd, bytes, next_random(random) % sizeof(bytes), MSG_DONTWAIT);
		break;
	case 2:
		fcntl(fd, F_SETFL, next_random(random) % 2 ? O_NONBLOCK : 0);
		break;
	default:
		(void)!send(fd, NULL, 0, MSG_DONTWAIT);
	}
}

/*
 * All writable mappings of the victim: the queue pair and the doorbell page; and the wake-up
 * socket.
 */
static void scribble_for_ever(const struct endpoint *e, uint64_t random)
{
	int wakeup = to_qp(e->qp)->remote.waker->fd;
	const struct remote_qp *r = &to_qp(e->qp)->remote;
	uint32_t *doorbell_page = (uint32_t *)r->peer->doorbell_page,
		 n = sizeof(*r->peer->doorbell_page) / sizeof(*doorbell_page);
	uint32_t *at = (uint32_t *)r->cq, i;

	for (;;) {
		scribble(e, &random);
		pull_badly(wakeup, &random);
		store_relaxed(&doorbell_page[next_random(&random) % n], next_random(&random));
		for (i = 0; i < 16; i++)
			store_relaxed(&at[i], next_random(&random) % 4 ? 0 : next_random(&random));
	}
}

/* The scribbler's program: a connection, one write, then scribbling. */
static int be_scribbler(int fd)
{
	struct endpoint_name name;
	struct endpoint e;
	struct test_wr w;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&e, ALL_ACCESS);
	name = end_name(&e);
	assert_int_equal(write(fd, &name, sizeof(name)), sizeof(name));
	assert_int_equal(read(fd, &name, sizeof(name)), sizeof(name));
	end_connect(&e, &name, &plain);
	do_wr(&e, wr_make(&w, &e, IBV_WR_RDMA_WRITE, 0, 8, BUF_SIZE - 8), IBV_WC_SUCCESS);
	assert_int_equal(write(fd, "", 1), 1);
	scribble_for_ever(&e, name.qpn);
	return 1;
}

/* Return when the scribbler has begun. */
static pid_t start_scribbler(struct endpoint *e)
{
	struct endpoint_name ours = end_name(e), theirs;
	char byte;
	int fd;
	pid_t pid = start_again("--scribbler", &fd);

	assert_int_equal(read(fd, &theirs, sizeof(theirs)), sizeof(theirs));
	end_connect(e, &theirs, &plain);
	assert_int_equal(write(fd, &ours, sizeof(ours)), sizeof(ours));
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	return pid;
}

/* Another queue pair on the same completion queue. */
static void end_open_on_queue(struct endpoint *e, const struct endpoint *other)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = other->cq,
		.recv_cq = other->cq,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, 1, 1, 0 },
	};

	*e = *other;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

static void sleep_until_event(struct endpoint *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

/* Take the honest peer's messages, ignoring the scribbler's. Return: their number. */
static int take_messages(struct endpoint *e)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
		if (wc.qp_num != e->qp->qp_num)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, 64);
		assert_memory_equal(e->buf + 64 * wc.wr_id, e->buf + BUF_SIZE / 2, 64);
		memset(e->buf + 64 * wc.wr_id, 0, 64);
		assert_int_equal(post_recv(e, wc.wr_id, 64 * wc.wr_id, 64), 0);
		n++;
	}
	return n;
}

/*
 * At most one event for this arm, and one pending from the last arm, whatever wakes the
 * channel.
 */
static void assert_no_event_without_an_arm(struct endpoint *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };
	int events = 0;

	ibv_req_notify_cq(e->cq, 0);
	do
		sleep_until_event(e);
	while (++events < 3 && poll(&p, 1, 50) == 1);
	assert_in_range(events, 1, 2);
}

static void test_a_sleeper_is_woken_beside_a_scribbling_peer(void **state)
{
	enum { MESSAGES = 2000 };
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e, bad;
	int left = MESSAGES, i;
	pid_t pid;

	end_open_on_queue(&bad, e);
	pid = start_scribbler(&bad);
	memset(e->buf + BUF_SIZE / 2, 0x5a, 64);
	tell(&pair->p, ORDER_FILL, 0, 64, 0x5a);
	for (i = 0; i < QUEUE_DEPTH; i++) {
		assert_int_equal(post_recv(e, i, 64 * i, 64), 0);
		assert_int_equal(post_recv(&bad, i, BUF_SIZE / 4, 64), 0);
	}
	give_order(&pair->p, ORDER_SEND_MANY, 0, 64, MESSAGES);
	while (left) {
		ibv_req_notify_cq(e->cq, 0);
		left -= take_messages(e);
		if (left)
			sleep_until_event(e);
	}
	assert_int_equal(take_answer(&pair->p).result, 0);
	assert_no_event_without_an_arm(e);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(ibv_destroy_qp(bad.qp), 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_a_scribbling_peer_crashes_no_other_peer,
						pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_a_sleeper_is_woken_beside_a_scribbling_peer,
						pair_up, pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--scribbler"))
		return be_scribbler(atoi(argv[2]));
	return test_main(argc, argv, tests);
}
