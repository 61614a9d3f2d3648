// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs peer; devices: softnic; timeout: 120 */
/* Peers that are late, stopped, or dead without notice. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "tests/support/stop_process.h"
#include "tests/support/verbs_puppet.h"

static void start(struct puppet_pair *pair)
{
	end_open(&pair->e, ALL_ACCESS);
	puppet_start(&pair->p, &pair->e, ALL_ACCESS, &plain);
}

static void to_reset(struct endpoint *e)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(e->qp, &reset, IBV_QP_STATE), 0);
}

/* Let the next process get the number @pid. Return: false where not permitted. */
static bool choose_next_pid(pid_t pid)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", pid - 1);
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	bool chosen = fd >= 0 && write(fd, text, n) == n;

	if (fd >= 0)
		close(fd);
	return chosen;
}

/*
 * A bystander with memory at the address of the dead peer's region; reports whether a byte
 * changed.
 */
static int watch_memory(uint64_t addr, int fd)
{
	uint8_t *map = mmap((void *)(uintptr_t)addr, BUF_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	char word = 'r';
	int i;

	if (map == MAP_FAILED || write(fd, &word, 1) != 1 || read(fd, &word, 1) != 1)
		return 2;
	for (i = 0; i < BUF_SIZE; i++)
		if (map[i])
			return 1;
	return 0;
}

/* Fork until the kernel hands out the wanted pid, or 0: other processes fork too. */
static pid_t take_place(pid_t wanted, uint64_t addr, int fd)
{
	pid_t pid;
	int i;

	for (i = 0; i < 1000; i++) {
		if (!choose_next_pid(wanted))
			return 0;
		pid = fork();
		if (!pid)
			_exit(getpid() == wanted ? watch_memory(addr, fd) : 0);
		if (pid == wanted)
			return pid;
		waitpid(pid, NULL, 0);
	}
	return 0;
}

/*
 * A child of the dead process keeps the sockets open, so no peer is notified. The pid goes to
 * another process at once, which must not be written to.
 */
static void test_a_number_that_went_to_another_process_is_not_written_to(void **state)
{
	struct puppet_pair pair;
	struct puppet_answer a;
	int fds[2], status;
	char word;
	struct test_wr w;
	pid_t pid;

	(void)state;
	if (!choose_next_pid(getpid() + 1))
		skip();
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	memset(pair.e.buf, 0xee, 4096);
	a = tell(&pair.p, ORDER_FORK_RAW, 0, 0, 0);
	puppet_kill(&pair.p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pid = take_place(pair.p.pid, pair.e.remote.addr, fds[1]);
	if (pid) {
		assert_int_equal(read(fds[0], &word, 1), 1);
		do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 4096, 0),
		      IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(write(fds[0], &word, 1), 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	kill(a.value, SIGKILL);
	close(fds[0]);
	close(fds[1]);
	end_close(&pair.e);
	if (!pid)
		skip();
}

enum { GOODBYES = 2000 }; /* more than a socket holds */

/* The stopped peer is told of each destroyed queue pair, and reads nothing. */
static void test_a_stopped_peer_delays_no_leaving_process(void **state)
{
	struct puppet_pair pair;
	struct endpoint e;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	stop_process(pair.p.pid);
	end_open_sharing(&e, &pair.e);
	for (i = 0; i < GOODBYES; i++) {
		end_connect(&e, &pair.p.name, &plain);
		to_reset(&e);
	}
	end_close(&e);
	kill(pair.p.pid, SIGCONT);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void test_an_atomic_does_not_wait_for_ever_behind_one_that_is_stopped(void **state)
{
	struct flock held = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct puppet_pair pair;
	struct test_wr w;
	int fd;

	(void)state;
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0), IBV_WC_SUCCESS);
	fd = reopen(to_qp(pair.e.qp)->remote.peer->atomic_fd);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &held), 0);
	do_wr(&pair.e, &w, IBV_WC_RETRY_EXC_ERR);
	close(fd);
	puppet_stop(&pair.p, &pair.e);
}

static void test_an_atomic_that_cannot_be_locked_fails_at_once(void **state)
{
	struct puppet_pair pair;
	struct shm_peer *peer;
	struct test_wr w;
	int fd;

	(void)state;
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0), IBV_WC_SUCCESS);
	peer = to_qp(pair.e.qp)->remote.peer;
	fd = peer->atomic_fd;
	peer->atomic_fd = -1; /* as without a /proc to reopen it */
	do_wr(&pair.e, &w, IBV_WC_LOC_QP_OP_ERR);
	peer->atomic_fd = fd;
	puppet_stop(&pair.p, &pair.e);
}

static void test_an_answer_to_an_earlier_question_is_not_taken(void **state)
{
	struct puppet_pair pair;
	struct qp_segment segment;
	int fds[SHM_MSG_FDS_MAX] = { -1, -1, -1, -1, -1, -1 };
	struct shm_msg late = { .type = MSG_QP };
	struct qp *qp;
	struct test_wr w;

	(void)state;
	start(&pair);
	qp = to_qp(pair.e.qp);
	late.addr = qp->links;
	to_reset(&pair.e);
	stop_process(pair.p.pid);
	end_connect(&pair.e, &pair.p.name, &plain);
	late.from = pair.e.qp->qp_num;
	late.qpn = pair.p.name.qpn;
	assert_int_equal(qp_segment_create(qp, &segment), 0);
	store_relaxed(&segment.qp->state, SHARED_QP_READY);
	fds[0] = segment.fd;
	remote_qp_resolved(qp->remote.peer, &late, fds);
	pthread_mutex_lock(&qp->lock);
	assert_null(qp->remote.shared);
	pthread_mutex_unlock(&qp->lock);
	qp_segment_destroy(&segment);
	kill(pair.p.pid, SIGCONT);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

/* Only softnic's thread: a sanitizer may have threads of its own. */
static pid_t engine_tid(void)
{
	DIR *tasks = opendir("/proc/self/task");
	char path[300], name[16];
	struct dirent *task;
	pid_t tid = 0;
	FILE *comm;

	assert_non_null(tasks);
	while (!tid && (task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "re");
		if (comm && fgets(name, sizeof(name), comm) && !strcmp(name, "softnic\n"))
			tid = atoi(task->d_name);
		if (comm)
			fclose(comm);
	}
	closedir(tasks);
	assert_true(tid > 0);
	return tid;
}

/* As pthread_getcpuclockid() does for a thread of this process. */
static uint64_t thread_ns(pid_t tid)
{
	enum { OF_A_THREAD = 4, SCHEDULED = 2 };
	clockid_t clock = (clockid_t)(~(unsigned int)tid << 3 | OF_A_THREAD | SCHEDULED);
	struct timespec t;

	assert_int_equal(clock_gettime(clock, &t), 0);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* After finishing earlier work the engine thread does not run at all. */
static void test_an_idle_process_costs_no_cpu(void **state)
{
	enum { IDLE_US = 500000 };
	struct puppet_pair *pair = *state;
	uint64_t deadline = now_ms() + PATIENCE_MS, before, after;
	pid_t tid = engine_tid();
	struct test_wr w;

	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, BUF_SIZE, 0), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&pair->e, 1, 0, 8), 0);
	assert_int_equal(ibv_req_notify_cq(pair->e.cq, 0), 0);
	do {
		before = thread_ns(tid);
		usleep(IDLE_US);
		after = thread_ns(tid);
	} while (after != before && now_ms() < deadline);
	assert_int_equal(after, before);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_an_idle_process_costs_no_cpu, pair_up,
						pair_down),
		cmocka_unit_test(test_a_number_that_went_to_another_process_is_not_written_to),
		cmocka_unit_test(test_a_stopped_peer_delays_no_leaving_process),
		cmocka_unit_test(test_an_atomic_does_not_wait_for_ever_behind_one_that_is_stopped),
		cmocka_unit_test(test_an_atomic_that_cannot_be_locked_fails_at_once),
		cmocka_unit_test(test_an_answer_to_an_earlier_question_is_not_taken),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
