// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic gate; devices: softnic; timeout: 120 */
/*
 * A queue pair behind a closed gate: messages arrive, all else waits or fails, and the peer gets
 * nothing by which it could reach memory. When the gate opens, the peer gets all.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "softnic/qp/gate.h"
#include "softnic/verbs/nic.h"
#include "tests/support/redirect.h"
#include "tests/support/silent_slot.h"
#include "tests/support/verbs_puppet.h"

enum { LONG = 64 << 10, MANY = 500, FDS_MAX = 256, FAR = 1 << 20 };

static void start_behind_gate(struct puppet_pair *pair)
{
	end_open(&pair->e, ALL_ACCESS);
	assert_int_equal(softnic_gate_close(pair->e.qp), 0);
	puppet_start(&pair->p, &pair->e, ALL_ACCESS, &plain);
}

/* Whether the puppet has a descriptor of this process's memory. */
static bool puppet_has_memory(const struct puppet *p)
{
	char path[64], target[64], memory[32];
	bool has = false;
	ssize_t length;
	int fd;

	snprintf(memory, sizeof(memory), "/proc/%d/mem", getpid());
	for (fd = 0; fd < FDS_MAX && !has; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", p->pid, fd);
		length = readlink(path, target, sizeof(target) - 1);
		if (length <= 0)
			continue;
		target[length] = '\0';
		has = !strcmp(target, memory);
	}
	return has;
}

static bool puppet_maps_a_queue_pair(const struct puppet *p)
{
	unsigned int maps = 0;
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", p->pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		maps += !!strstr(line, "memfd:softnic-qp");
	fclose(file);
	return maps > 1; /* more than its own */
}

static void send_from_puppet(struct puppet_pair *pair, uint64_t length, uint64_t value)
{
	tell(&pair->p, ORDER_FILL, 0, length, value);
	assert_int_equal(tell(&pair->p, ORDER_SEND, 0, length, 0).result, 0);
}

static void expect_message(struct puppet_pair *pair, uint64_t offset, uint32_t length,
			   uint8_t value)
{
	struct ibv_wc wc = wait_wc(&pair->e);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, length);
	assert_int_equal(pair->e.buf[offset], value);
	assert_int_equal(pair->e.buf[offset + length - 1], value);
	assert_int_equal(tell(&pair->p, ORDER_POLL, 0, 0, 0).wc.status, IBV_WC_SUCCESS);
}

static void test_messages_pass_and_nothing_else_does(void **state)
{
	struct puppet_pair pair;

	(void)state;
	start_behind_gate(&pair);
	post_recv(&pair.e, 1, FAR, LONG);
	send_from_puppet(&pair, 100, 7);
	expect_message(&pair, FAR, 100, 7);
	/* No receive is posted yet. */
	send_from_puppet(&pair, 16, 8);
	usleep(20000);
	post_recv(&pair.e, 2, FAR, LONG);
	expect_message(&pair, FAR, 16, 8);
	assert_false(puppet_has_memory(&pair.p));
	assert_false(puppet_maps_a_queue_pair(&pair.p));
	/* The gate is this end's: the puppet has none. */
	assert_int_equal(tell(&pair.p, ORDER_POST_RECV, FAR, LONG, 0).result, 0);
	memset(pair.e.buf, 9, LONG);
	do_wr(&pair.e, wr_make(&(struct test_wr){ 0 }, &pair.e, IBV_WR_SEND, 0, LONG, 0),
	      IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair.p, ORDER_POLL, 0, 0, 0).wc.byte_len, LONG);
	puppet_stop(&pair.p, &pair.e);
}

static void test_long_messages_wait_for_the_opening(void **state)
{
	struct puppet_pair pair;
	struct ibv_wc wc;

	(void)state;
	start_behind_gate(&pair);
	post_recv(&pair.e, 1, FAR, LONG);
	send_from_puppet(&pair, LONG, 5);
	usleep(50000);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	softnic_gate_open(pair.e.qp);
	expect_message(&pair, FAR, LONG, 5);
	assert_true(puppet_has_memory(&pair.p));
	assert_true(puppet_maps_a_queue_pair(&pair.p));
	assert_int_equal(tell(&pair.p, ORDER_WRITE_ONCE, 0, 0, 0).result, 0);
	puppet_stop(&pair.p, &pair.e);
}

static void test_the_opening_keeps_the_order(void **state)
{
	struct puppet_pair pair;
	uint64_t i;

	(void)state;
	start_behind_gate(&pair);
	for (i = 0; i < QUEUE_DEPTH; i++)
		post_recv(&pair.e, i, FAR + 64 * i, 64);
	give_order(&pair.p, ORDER_SEND_MANY, 0, 64, MANY);
	for (i = 0; i < MANY; i++) {
		struct ibv_wc wc = wait_wc(&pair.e);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		if (i == MANY / 2)
			softnic_gate_open(pair.e.qp);
		post_recv(&pair.e, i + QUEUE_DEPTH, FAR, 64);
	}
	take_answer(&pair.p);
	assert_true(puppet_has_memory(&pair.p));
	puppet_stop(&pair.p, &pair.e);
}

/* A child has the rights of a puppet. */
static bool child_opens_memory(void)
{
	char path[32];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/mem", getpid());
	pid = fork();
	if (!pid)
		_exit(open(path, O_RDWR | O_CLOEXEC) >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

/* The kernel refuses, except to a process with CAP_SYS_PTRACE. Such a puppet needs a moment. */
static void test_the_kernel_decides_when_a_process_is_undumpable(void **state)
{
	struct puppet_pair pair;
	bool is_open;

	(void)state;
	start_behind_gate(&pair);
	post_recv(&pair.e, 1, FAR, LONG);
	send_from_puppet(&pair, 8, 3);
	expect_message(&pair, FAR, 8, 3);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	is_open = child_opens_memory();
	softnic_gate_open(pair.e.qp);
	usleep(50000);
	while (is_open && !puppet_has_memory(&pair.p))
		usleep(1000);
	assert_int_equal(puppet_has_memory(&pair.p), is_open);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	puppet_kill(&pair.p);
	end_close(&pair.e);
}

static void test_rdma_is_refused(void **state)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct endpoint gated, other;
	struct endpoint_name name;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		end_open(&gated, ALL_ACCESS);
		end_open(&other, ALL_ACCESS);
		assert_int_equal(softnic_gate_close(gated.qp), 0);
		name = end_name(&other);
		end_connect(&gated, &name, &plain);
		name = end_name(&gated);
		end_connect(&other, &name, &plain);
		memset(other.buf, 1, 64);
		do_wr(&other, wr_make(&(struct test_wr){ 0 }, &other, ops[i], 0, 64, 0),
		      IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(gated.buf[0], 0);
		assert_int_equal(other.buf[0], 1);
		end_close(&other);
		end_close(&gated);
	}
}

/* A peer of an SRQ could have written there, and need not be the sender. */
static void test_the_engine_fills_the_buffers_that_were_posted(void **state)
{
	static uint8_t own[4096];
	struct puppet_pair pair;
	struct ibv_mr *mr;
	size_t i;

	(void)state;
	memset(own, 1, sizeof(own));
	start_behind_gate(&pair);
	mr = ibv_reg_mr(pair.e.pd, own, sizeof(own), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	post_recv(&pair.e, 1, FAR, 100);
	assert_int_equal(redirect(&pair.e, FAR, mr), 1);
	send_from_puppet(&pair, 100, 7);
	expect_message(&pair, FAR, 100, 7);
	for (i = 0; i < sizeof(own); i++)
		assert_int_equal(own[i], 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	puppet_stop(&pair.p, &pair.e);
}

/* A process beside softnic, without an engine; to the kernel it is this one. */
struct bare_peer {
	int listening, fd;
	uint32_t qpn;
};

static void hear(const struct bare_peer *p, uint32_t type, struct shm_msg *m)
{
	int fds[SHM_MSG_FDS_MAX], i;

	for (i = 0; i < PATIENCE_MS; i++, usleep(1000)) {
		if (shm_msg_receive(p->fd, m, fds))
			continue;
		shm_msg_close_fds(fds);
		assert_int_equal(m->type, type);
		return;
	}
	fail_msg("softnic says nothing");
}

static void bare_connect(struct bare_peer *p, struct endpoint *e)
{
	struct endpoint_name name = { 0 };
	struct sockaddr_un addr;
	struct shm_msg m = { .type = MSG_HELLO };
	socklen_t len = shared_address(nic.slot, &addr);
	uint32_t slot;

	p->listening = claim_slot(&slot);
	assert_true(p->listening >= 0);
	p->qpn = name.qpn = slot << SOFTNIC_QP_INDEX_BITS | 5;
	assert_int_equal(softnic_gate_close(e->qp), 0);
	end_connect(e, &name, &plain);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p->fd, (struct sockaddr *)&addr, len), 0);
	m.value = slot;
	assert_int_equal(shm_msg_send(p->fd, &m, NULL, 0), 0);
	hear(p, MSG_WELCOME, &m);
	m = (struct shm_msg){ .type = MSG_ASK_QP, .qpn = e->qp->qp_num, .from = p->qpn };
	assert_int_equal(shm_msg_send(p->fd, &m, NULL, 0), 0);
	hear(p, MSG_QP, &m);
	assert_int_equal(m.has, HAS_GATE);
}

/* Return: the answer. */
static uint64_t bare_send(const struct bare_peer *p, const struct endpoint *e, uint64_t number)
{
	struct shm_msg m = { .type = MSG_GATE_SEND, .qpn = e->qp->qp_num, .from = p->qpn };

	m.value = 5;
	m.channel = number;
	assert_int_equal(shm_msg_send_bytes(p->fd, &m, "12345"), 0);
	hear(p, MSG_GATE_DONE, &m);
	assert_int_equal(m.channel, number);
	return m.value;
}

static void test_an_open_gate_takes_no_message(void **state)
{
	struct bare_peer peer;
	struct endpoint e;
	struct shm_msg m;
	struct ibv_wc wc;

	(void)state;
	end_open(&e, ALL_ACCESS);
	bare_connect(&peer, &e);
	post_recv(&e, 1, FAR, 64);
	post_recv(&e, 2, FAR + 64, 64);
	assert_int_equal(bare_send(&peer, &e, 1), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&e).wr_id, 1);
	softnic_gate_open(e.qp);
	hear(&peer, MSG_QP, &m);
	assert_int_equal(m.has & HAS_GATE, 0);
	/* The answer to a message of before was lost; the message is not taken twice. */
	assert_int_equal(bare_send(&peer, &e, 1), IBV_WC_SUCCESS);
	assert_int_not_equal(bare_send(&peer, &e, 2), IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(e.cq, 1, &wc), 0);
	assert_int_equal(e.buf[FAR + 64], 0);
	close(peer.fd);
	close(peer.listening);
	end_close(&e);
}

static bool waits_for_a_receive(struct qp *qp)
{
	bool waits;

	pthread_mutex_lock(&qp->lock);
	waits = qp->sq.rnr_begun && qp->sq.waiting;
	pthread_mutex_unlock(&qp->lock);
	return waits;
}

/* A copy of the message arrives, sent before the sender heard of the missing receive. */
static void repeat_message(const struct endpoint *gated, const struct endpoint *other)
{
	struct qp *qp = to_qp(gated->qp);
	struct shm_msg m = {
		.type = MSG_GATE_SEND,
		.qpn = qp->ibv.qp_num,
		.from = other->qp->qp_num,
		.value = 64,
		.channel = 1,
	};

	pthread_mutex_lock(&nic.lock);
	gate_take(qp->client, &m, other->buf);
	pthread_mutex_unlock(&nic.lock);
}

static void test_a_message_told_to_wait_arrives_once(void **state)
{
	const struct manners slow = { .min_rnr_timer = 31, .rnr_retry = 7, .timeout = 18 };
	struct endpoint gated, other;
	struct endpoint_name name;
	struct test_wr w;
	struct ibv_wc wc;
	int i;

	(void)state;
	end_open(&gated, ALL_ACCESS);
	end_open(&other, ALL_ACCESS);
	assert_int_equal(softnic_gate_close(gated.qp), 0);
	name = end_name(&other);
	end_connect(&gated, &name, &slow);
	name = end_name(&gated);
	end_connect(&other, &name, &plain);
	post(&other, wr_make(&w, &other, IBV_WR_SEND, 0, 64, 0));
	for (i = 0; i < PATIENCE_MS && !waits_for_a_receive(to_qp(other.qp)); i++)
		usleep(1000);
	post_recv(&gated, 1, FAR, 64);
	post_recv(&gated, 2, FAR, 64);
	repeat_message(&gated, &other);
	softnic_gate_open(gated.qp);
	assert_int_equal(wait_wc(&other).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&gated).wr_id, 1);
	assert_int_equal(ibv_poll_cq(gated.cq, 1, &wc), 0);
	/* The next message is another. */
	post(&other, &w);
	assert_int_equal(wait_wc(&gated).wr_id, 2);
	end_close(&other);
	end_close(&gated);
}

static void test_only_a_fresh_queue_pair_gets_a_gate(void **state)
{
	struct puppet_pair *pair = *state;

	assert_int_equal(softnic_gate_close(pair->e.qp), -EINVAL);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_messages_pass_and_nothing_else_does),
		cmocka_unit_test(test_long_messages_wait_for_the_opening),
		cmocka_unit_test(test_the_opening_keeps_the_order),
		cmocka_unit_test(test_the_kernel_decides_when_a_process_is_undumpable),
		cmocka_unit_test(test_rdma_is_refused),
		cmocka_unit_test(test_the_engine_fills_the_buffers_that_were_posted),
		cmocka_unit_test(test_an_open_gate_takes_no_message),
		cmocka_unit_test(test_a_message_told_to_wait_arrives_once),
		cmocka_unit_test_setup_teardown(test_only_a_fresh_queue_pair_gets_a_gate, pair_up,
						pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
