/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload processes; devices: softnic rxe; timeout: 300 */
/* Stopped processes, and children of processes that unload. */
#include "tests/support/stop_process.h"
#include "tests/preload/unload/drive.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS "4000" /* of an initiator whose target is stopped */

/* The data that one process needs about the other's pair. */
struct pair_address {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
};

/**
 * struct target_process - another process, the target of unloaded writes
 * @fd: socket to the process; @there: memory of its second half; @pair: the first queue pair is
 *	connected to the process
 */
struct target_process {
	struct loopback_pair pair;
	struct pair_address there;
	pid_t pid;
	int fd;
};

/* Under ThreadSanitizer a child of a process with threads cannot have threads. */
static void skip_where_no_child_has_threads(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

static void send_all(int fd, const void *what, size_t size)
{
	assert_int_equal(write(fd, what, size), size);
}

static void receive_all(int fd, void *what, size_t size)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&readable, 1, PATIENCE_S * 1000), 1);
	assert_int_equal(read(fd, what, size), size);
}

static struct pair_address place_of(const struct loopback_pair *pair, int which)
{
	return (struct pair_address){ pair->qp[which]->qp_num, pair->mr->rkey,
				      (uintptr_t)pair->bytes + PAIR_BYTES };
}

/* After two unloaded writes the service thread has handled all earlier events. */
static void await_service(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct loopback_pair pair;

	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	complete(&pair, &wr);
	complete(&pair, &wr);
	pair_close(&pair);
}

/* After being stopped and continued, the process reports the memory's content. */
static void be_target(int fd)
{
	struct pair_address here, there;
	struct loopback_pair pair;
	char go;

	alarm(3 * PATIENCE_S);
	pair_open(&pair);
	assert_true(pair_connect(&pair, NULL));
	here = place_of(&pair, 1);
	send_all(fd, &here, sizeof(here));
	receive_all(fd, &there, sizeof(there));
	pair_lead_to(&pair, 1, there.qpn);
	send_all(fd, &here, sizeof(here));
	receive_all(fd, &go, sizeof(go));
	await_service();
	send_all(fd, pair.bytes + PAIR_BYTES, SMALL);
	_exit(0);
}

static struct ibv_send_wr target_write(struct target_process *t, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = small_write(&t->pair, sge);

	wr.wr.rdma.remote_addr = t->there.addr;
	wr.wr.rdma.rkey = t->there.rkey;
	return wr;
}

static void target_open(struct target_process *t)
{
	uint64_t before, until = now_ns() + PATIENCE_S * 1000000000ull;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair_address here;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	t->fd = fds[0];
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid)
		be_target(fds[1]);
	close(fds[1]);
	pair_open(&t->pair);
	assert_true(pair_connect(&t->pair, NULL));
	receive_all(t->fd, &t->there, sizeof(t->there));
	here = place_of(&t->pair, 0);
	send_all(t->fd, &here, sizeof(here));
	receive_all(t->fd, &t->there, sizeof(t->there));
	pair_lead_to(&t->pair, 0, t->there.qpn);
	wr = target_write(t, &sge);
	memset(t->pair.bytes, 0x11, SMALL);
	for (before = unloaded(); unloaded() == before; complete(&t->pair, &wr))
		assert_true(now_ns() < until);
}

/* Continues the process; its memory has the data written before the stop. */
static void target_close(struct target_process *t)
{
	char found[SMALL], expected[SMALL];
	int status;

	memset(expected, 0x11, SMALL);
	assert_int_equal(kill(t->pid, SIGCONT), 0);
	send_all(t->fd, "g", 1);
	receive_all(t->fd, found, sizeof(found));
	assert_memory_equal(found, expected, SMALL);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_int_equal(status, 0);
	close(t->fd);
	pair_close(&t->pair);
}

static void a_stopped_process_never_copies_writes_that_have_timed_out(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct target_process t;
	uint64_t before;

	(void)state;
	target_open(&t);
	stop_process(t.pid);
	before = unloaded();
	wr = target_write(&t, &sge);
	memset(t.pair.bytes, 0x77, SMALL);
	post(&t.pair, &wr);
	assert_int_equal(next_wc(&t.pair).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(unloaded(), before + 1);
	target_close(&t);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* An unsignalled write does not wait either, and its queue pair can be destroyed. */
static void unsignalled_writes_do_not_wait_for_a_stopped_target(void **state)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct target_process t;
	uint64_t before;
	int i;

	(void)state;
	skip_where_no_child_has_threads();
	target_open(&t);
	stop_process(t.pid);
	before = unloaded();
	wr = target_write(&t, &sge);
	wr.send_flags = 0;
	memset(t.pair.bytes, 0x77, SMALL);
	for (i = 0; i < 3; i++)
		post(&t.pair, &wr);
	assert_int_equal(unloaded(), before + 3);
	assert_int_equal(state_of(t.pair.qp[0]), IBV_QPS_RTS);
	while (state_of(t.pair.qp[0]) != IBV_QPS_ERR) {
		assert_true(now_ns() < until);
		sched_yield();
	}
	target_close(&t);
}

/* In a child. Return: the exit status. */
static int unload_in_child(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct loopback_pair pair;

	alarm(2 * PATIENCE_S);
	if (unloaded())
		return 1;
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	memset(pair.bytes, 0x5a, SMALL);
	complete(&pair, &wr);
	if (unloaded() < 2 || memcmp(pair.bytes, pair.bytes + PAIR_BYTES, SMALL))
		return 2;
	pair_close(&pair);
	return 0;
}

/* The child opens the device itself, with or without closing the parent's objects first. */
static void a_child_begins_as_a_new_program_does(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct loopback_pair pair;
	uint64_t before;
	int i, status;
	pid_t pid;

	(void)state;
	skip_where_no_child_has_threads();
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	for (i = 0; i < 4; i++) {
		before = unloaded();
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			_exit(unload_in_child());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		memset(pair.bytes, i, SMALL);
		complete(&pair, &wr);
		assert_memory_equal(pair.bytes, pair.bytes + PAIR_BYTES, SMALL);
		assert_int_equal(unloaded(), before + 1);
	}
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_process_never_copies_writes_that_have_timed_out),
		cmocka_unit_test(unsignalled_writes_do_not_wait_for_a_stopped_target),
		cmocka_unit_test(a_child_begins_as_a_new_program_does),
	};

	setenv("WEIR_UNLOAD_PATIENCE_MS", PATIENCE_MS, 1);
	return cmocka_run_group_tests_name("unload processes", tests, NULL, NULL);
}
