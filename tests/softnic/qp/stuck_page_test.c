// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic stuck page; devices: softnic; timeout: 120 */
/*
 * A peer registers memory whose pages never come, by userfaultfd. A copy to these pages waits in
 * the kernel. Only work for this peer may wait with it.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "softnic/qp/qp.h"
#include "tests/support/verbs_puppet.h"

enum {
	QPS = 2,
	LARGE = 2 << 20, /* for the engine */
	SMALL = 64, /* for the posting thread */
	PRESENT = BUF_SIZE - 4096, /* the last page is not stuck */
};

/* Never gives up: the retries have no limit. */
static const struct manners patient = { .min_rnr_timer = 1, .rnr_retry = 7, .retry_cnt = 7 };

/* The peer with stuck pages. */
struct stuck_peer {
	struct endpoint e[QPS];
	pid_t pid;
	int fd;
};

static int open_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Nobody reads the descriptor, so no missing page of the range comes until it is closed. */
static int stick(void *at, size_t length)
{
	struct uffdio_register range = {
		.range = { (uintptr_t)at, length },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = open_userfaultfd();

	assert_true(fd >= 0);
	assert_int_equal(madvise(at, length, MADV_DONTNEED), 0);
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &range), 0);
	return fd;
}

static void exchange(int fd, const struct endpoint_name *ours, struct endpoint_name *theirs)
{
	assert_int_equal(write(fd, ours, QPS * sizeof(*ours)), QPS * sizeof(*ours));
	assert_int_equal(read(fd, theirs, QPS * sizeof(*theirs)), QPS * sizeof(*theirs));
}

static void connect_ends(struct endpoint *e, int fd)
{
	struct endpoint_name ours[QPS], theirs[QPS];
	char word = 'c';
	int i;

	end_open(&e[0], ALL_ACCESS);
	end_open_sharing(&e[1], &e[0]);
	for (i = 0; i < QPS; i++)
		ours[i] = end_name(&e[i]);
	exchange(fd, ours, theirs);
	for (i = 0; i < QPS; i++)
		end_connect(&e[i], &theirs[i], &patient);
	assert_int_equal(write(fd, &word, 1), 1);
	assert_int_equal(read(fd, &word, 1), 1);
}

/* Each word on the socket asks for the next step. */
static int play_stuck_peer(int fd)
{
	struct endpoint e[QPS];
	char word;
	int uffd;

	connect_ends(e, fd);
	if (read(fd, &word, 1) != 1) /* the ways to copy are found */
		return 1;
	uffd = stick(e[0].buf, PRESENT);
	if (write(fd, &word, 1) != 1 || read(fd, &word, 1) != 1)
		return 1;
	close(uffd);
	if (write(fd, &word, 1) != 1 || read(fd, &word, 1) != 1)
		return 1;
	end_close(&e[1]);
	end_close(&e[0]);
	return 0;
}

static void next_step(const struct stuck_peer *s)
{
	char word = 'n';

	assert_int_equal(write(s->fd, &word, 1), 1);
	assert_int_equal(read(s->fd, &word, 1), 1);
}

static void start(struct stuck_peer *s)
{
	struct test_wr w;
	int i;

	s->pid = start_again("--stuck", &s->fd);
	connect_ends(s->e, s->fd);
	for (i = 0; i < QPS; i++)
		do_wr(&s->e[i], wr_make(&w, &s->e[i], IBV_WR_RDMA_WRITE, 0, SMALL, PRESENT),
		      IBV_WC_SUCCESS);
	next_step(s);
}

/* The pages come, as zeros. */
static void release(const struct stuck_peer *s)
{
	next_step(s);
}

static void wait_for_end(const struct stuck_peer *s)
{
	char word = 's';
	int status;

	assert_int_equal(write(s->fd, &word, 1), 1);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_int_equal(status, 0);
	close(s->fd);
}

static void stop(struct stuck_peer *s)
{
	end_close(&s->e[1]);
	end_close(&s->e[0]);
	wait_for_end(s);
}

static bool is_copying(struct endpoint *e)
{
	struct qp *qp = to_qp(e->qp);
	bool copies;

	pthread_mutex_lock(&qp->lock);
	copies = qp->sq.is_copying;
	pthread_mutex_unlock(&qp->lock);
	return copies;
}

static void await_copy(struct endpoint *e)
{
	while (!is_copying(e))
		usleep(100);
}

static bool has_completion(struct endpoint *e, struct ibv_wc *wc)
{
	return ibv_poll_cq(e->cq, 1, wc);
}

/* A new process, connections, large copies, messages, fork(), regions. */
static void use_another_peer(void)
{
	struct puppet_pair good;
	struct test_wr w;
	pid_t child;
	int status;

	end_open(&good.e, ALL_ACCESS);
	puppet_start(&good.p, &good.e, ALL_ACCESS, &plain);
	do_wr(&good.e, wr_make(&w, &good.e, IBV_WR_RDMA_WRITE, 0, LARGE, 0), IBV_WC_SUCCESS);
	do_wr(&good.e, wr_make(&w, &good.e, IBV_WR_RDMA_READ, 0, LARGE, 0), IBV_WC_SUCCESS);
	do_wr(&good.e, wr_make(&w, &good.e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&good.e, 7, 0, 64), 0);
	tell(&good.p, ORDER_SEND, 0, 64, 0);
	assert_int_equal(wait_wc(&good.e).wr_id, 7);
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(ibv_dereg_mr(good.e.mr), 0);
	good.e.mr = NULL;
	puppet_stop(&good.p, &good.e);
}

static void test_a_stuck_page_holds_up_its_peer_only(void **state)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct stuck_peer s;
	struct test_wr w;
	struct ibv_wc wc;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		start(&s);
		assert_int_equal(post(&s.e[0], wr_make(&w, &s.e[0], ops[i], 0, LARGE, 0)), 0);
		await_copy(&s.e[0]);
		use_another_peer();
		assert_false(has_completion(&s.e[0], &wc));
		release(&s);
		assert_int_equal(wait_wc(&s.e[0]).status, IBV_WC_SUCCESS);
		do_wr(&s.e[0], wr_make(&w, &s.e[0], ops[i], 0, LARGE, 0), IBV_WC_SUCCESS);
		stop(&s);
	}
}

/* The engine finds the peer stuck, and starts no second copy that waits. */
static void test_a_stuck_peer_costs_one_thread(void **state)
{
	struct stuck_peer s;
	struct test_wr w;
	struct ibv_wc wc;
	int i;

	(void)state;
	start(&s);
	assert_int_equal(post(&s.e[0], wr_make(&w, &s.e[0], IBV_WR_RDMA_WRITE, 0, LARGE, 0)), 0);
	await_copy(&s.e[0]);
	while (!load_acquire(&to_qp(s.e[0].qp)->remote.peer->is_stuck))
		usleep(100);
	for (i = 0; i < 3; i++)
		assert_int_equal(post(&s.e[1], wr_make(&w, &s.e[1], IBV_WR_RDMA_WRITE, 0, SMALL,
						       i ? 0 : PRESENT)),
				 0);
	use_another_peer();
	assert_false(is_copying(&s.e[1]));
	assert_false(has_completion(&s.e[1], &wc));
	release(&s);
	assert_int_equal(wait_wc(&s.e[0]).status, IBV_WC_SUCCESS);
	for (i = 0; i < 3; i++)
		assert_int_equal(wait_wc(&s.e[1]).status, IBV_WC_SUCCESS);
	stop(&s);
}

struct posting_thread {
	struct stuck_peer *s;
	struct test_wr w;
	pthread_t thread;
};

static void *post_one(void *arg)
{
	struct posting_thread *p = arg;

	assert_int_equal(post(&p->s->e[0], &p->w), 0);
	return NULL;
}

static void post_aside(struct posting_thread *p, struct stuck_peer *s, enum ibv_wr_opcode op)
{
	p->s = s;
	wr_make(&p->w, &s->e[0], op, 0, op == IBV_WR_RDMA_READ ? SMALL : 8, 0);
	assert_int_equal(pthread_create(&p->thread, NULL, post_one, p), 0);
	await_copy(&s->e[0]);
}

static void test_a_thread_that_waits_holds_up_no_other(void **state)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;
	struct stuck_peer s;
	struct posting_thread p;
	struct test_wr w;
	struct ibv_wc wc;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		start(&s);
		post_aside(&p, &s, ops[i]);
		assert_int_equal(ibv_query_qp(s.e[0].qp, &attr, IBV_QP_STATE, &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_RTS);
		assert_int_equal(post(&s.e[0],
				      wr_make(&w, &s.e[0], IBV_WR_RDMA_WRITE, 0, SMALL, PRESENT)),
				 0);
		if (ops[i] == IBV_WR_ATOMIC_FETCH_AND_ADD) /* the lock of atomics is taken */
			assert_int_equal(post(&s.e[1], wr_make(&w, &s.e[1], ops[i], 0, 8, PRESENT)),
					 0);
		use_another_peer();
		attr.qp_state = IBV_QPS_ERR;
		assert_int_equal(ibv_modify_qp(s.e[0].qp, &attr, IBV_QP_STATE), 0);
		assert_false(has_completion(&s.e[0], &wc)); /* the buffer is in use */
		release(&s);
		assert_int_equal(wait_wc(&s.e[0]).status, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(&s.e[0]).status, IBV_WC_WR_FLUSH_ERR);
		pthread_join(p.thread, NULL);
		if (ops[i] == IBV_WR_ATOMIC_FETCH_AND_ADD)
			assert_int_equal(wait_wc(&s.e[1]).status, IBV_WC_SUCCESS);
		stop(&s);
	}
}

struct deletion {
	struct endpoint *e;
	struct ibv_mr *mr;
	bool is_done;
};

static void *destroy(void *arg)
{
	struct deletion *d = arg;

	assert_int_equal(d->mr ? ibv_dereg_mr(d->mr) : ibv_destroy_qp(d->e->qp), 0);
	store_release(&d->is_done, true);
	return NULL;
}

/* What a copy uses stays until the copy has ended. */
static void test_a_copy_outlives_nothing_that_it_uses(void **state)
{
	struct deletion d[2] = { 0 };
	pthread_t threads[2];
	struct stuck_peer s;
	struct ibv_mr *mr;
	struct test_wr w;
	int i;

	(void)state;
	start(&s);
	mr = ibv_reg_mr(s.e[0].pd, s.e[0].buf, BUF_SIZE, ALL_ACCESS);
	assert_non_null(mr);
	wr_make(&w, &s.e[0], IBV_WR_RDMA_READ, 0, LARGE, 0);
	w.sge.lkey = mr->lkey;
	assert_int_equal(post(&s.e[0], &w), 0);
	await_copy(&s.e[0]);
	d[0] = (struct deletion){ .mr = mr };
	d[1] = (struct deletion){ .e = &s.e[0] };
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, destroy, &d[i]), 0);
	use_another_peer();
	for (i = 0; i < 2; i++)
		assert_false(load_acquire(&d[i].is_done));
	release(&s);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	s.e[0].qp = s.e[1].qp;
	assert_int_equal(ibv_destroy_cq(s.e[0].cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(s.e[0].channel), 0);
	s.e[0].cq = s.e[1].cq;
	s.e[0].channel = s.e[1].channel;
	end_close(&s.e[0]);
	wait_for_end(&s);
}

/* Its memory goes with it, and so does the wait. */
static void test_a_killed_peer_fails_what_waits(void **state)
{
	struct stuck_peer s;
	struct test_wr w;
	struct ibv_wc wc;
	int i;

	(void)state;
	start(&s);
	for (i = 0; i < 2; i++)
		assert_int_equal(
			post(&s.e[0], wr_make(&w, &s.e[0], IBV_WR_RDMA_WRITE, 0, LARGE, 0)), 0);
	await_copy(&s.e[0]);
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	wc = wait_wc(&s.e[0]);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&s.e[0]).status, IBV_WC_WR_FLUSH_ERR);
	use_another_peer();
	close(s.fd);
	end_close(&s.e[1]);
	end_close(&s.e[0]);
}

static int run_all(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stuck_page_holds_up_its_peer_only),
		cmocka_unit_test(test_a_stuck_peer_costs_one_thread),
		cmocka_unit_test(test_a_thread_that_waits_holds_up_no_other),
		cmocka_unit_test(test_a_copy_outlives_nothing_that_it_uses),
		cmocka_unit_test(test_a_killed_peer_fails_what_waits),
	};
	int fd = open_userfaultfd();

	if (fd < 0) {
		printf("1..0 # SKIP no userfaultfd that the kernel's own copies wait for: %s\n",
		       strerror(errno));
		return 0;
	}
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The kernel refuses a missing page at once where /proc/PID/mem is read or written. */
int main(int argc, char **argv)
{
	setenv("WEIR_SOFTNIC_COPY", "cma", 1);
	if (argc == 3 && !strcmp(argv[1], "--stuck"))
		return play_stuck_peer(atoi(argv[2]));
	return test_main(argc, argv, run_all);
}
