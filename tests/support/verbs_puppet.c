// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "verbs_puppet.h"

enum {
	LIMIT_SECONDS = 120,
	EMULATED = 5, /* factor for an emulated processor */
};

/* A retry count of 7 means for ever on Soft-RoCE. */
const struct manners plain = { .min_rnr_timer = 1, .rnr_retry = 7, .timeout = 18, .retry_cnt = 6 };

struct puppet_command {
	enum puppet_order order;
	uint64_t offset, length, value;
};

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void open_queues(struct endpoint *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, SGES_MAX, SGES_MAX, INLINE_MAX },
	};

	e->channel = ibv_create_comp_channel(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4 * QUEUE_DEPTH, e, e->channel, 0);
	assert_non_null(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
	e->cap = init.cap;
}

void end_open(struct endpoint *e, int access)
{
	end_open_on(e, access, 0);
}

void end_open_with(struct endpoint *e, struct ibv_cq *(*make)(struct endpoint *e))
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, SGES_MAX, SGES_MAX, INLINE_MAX },
	};

	end_open(e, ALL_ACCESS);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	e->cq = make(e);
	assert_non_null(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

struct ibv_cq *make_cq_of_three(struct endpoint *e)
{
	return ibv_create_cq(e->ctx, 3, e, e->channel, 0);
}

int sealed_file(size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

/* TEST_MEMORY=shared: in a file that peers may map; the descriptor is closed. */
static void open_region(struct endpoint *e, int access)
{
	bool shared = getenv("TEST_MEMORY") && !strcmp(getenv("TEST_MEMORY"), "shared");
	int fd = shared ? sealed_file(BUF_SIZE) : -1;

	e->buf = mmap(NULL, BUF_SIZE, PROT_READ | PROT_WRITE,
		      shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	assert_true(e->buf != MAP_FAILED);
	e->access = access;
	e->mr = ibv_reg_mr(e->pd, e->buf, BUF_SIZE, access);
	assert_non_null(e->mr);
	if (shared)
		close(fd);
}

void end_open_on(struct endpoint *e, int access, int device)
{
	memset(e, 0, sizeof(*e));
	e->ctx = open_device(device);
	e->pd = ibv_alloc_pd(e->ctx);
	open_queues(e);
	open_region(e, access);
}

void end_open_sharing(struct endpoint *e, const struct endpoint *other)
{
	*e = *other;
	e->shares = true;
	open_queues(e);
}

struct endpoint_name end_name(const struct endpoint *e)
{
	return (struct endpoint_name){ e->qp->qp_num, e->mr->rkey, (uintptr_t)e->buf };
}

void end_connect(struct endpoint *e, const struct endpoint_name *remote, const struct manners *m)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = remote->qpn,
		.max_dest_rd_atomic = !m->bears_no_reads,
		.min_rnr_timer = m->min_rnr_timer,
		.ah_attr = way_to_self(e->ctx),
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = m->timeout,
		.retry_cnt = m->retry_cnt,
		.rnr_retry = m->rnr_retry,
		.max_rd_atomic = !m->makes_no_reads,
	};

	e->remote = *remote;
	assert_int_equal(ibv_modify_qp(e->qp, &init,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rtr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC),
			 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rts,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

void end_close(struct endpoint *e)
{
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(e->channel), 0);
	if (e->shares)
		return;
	if (e->mr)
		assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->ctx), 0);
	if (e->buf)
		munmap(e->buf, BUF_SIZE);
}

struct test_wr *wr_make(struct test_wr *w, struct endpoint *e, enum ibv_wr_opcode op,
			uint64_t offset, uint32_t length, uint64_t remote_offset)
{
	*w = (struct test_wr){
		.sge = { (uintptr_t)e->buf + offset, length, e->mr->lkey },
		.wr = {
			.wr_id = 1,
			.num_sge = 1,
			.opcode = op,
			.send_flags = IBV_SEND_SIGNALED,
		},
	};
	w->wr.sg_list = &w->sge;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		w->wr.wr.atomic.remote_addr = e->remote.addr + remote_offset;
		w->wr.wr.atomic.rkey = e->remote.rkey;
	} else {
		w->wr.wr.rdma.remote_addr = e->remote.addr + remote_offset;
		w->wr.wr.rdma.rkey = e->remote.rkey;
	}
	return w;
}

int post(struct endpoint *e, struct test_wr *w)
{
	struct ibv_send_wr *bad;

	/* Soft-RoCE: negative if the queue is full */
	return abs(ibv_post_send(e->qp, &w->wr, &bad));
}

void wr_give_inline(struct endpoint *e, const char *text)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e->qp);
	uint8_t *at = e->buf + INLINE_STAGE;
	size_t length = strlen(text);

	if (!soft_roce_differs("a work request with inline data by ibv_wr_* fails")) {
		ibv_wr_set_inline_data(ex, (void *)text, length);
		return;
	}
	memcpy(at, text, length);
	ibv_wr_set_sge(ex, e->mr->lkey, (uintptr_t)at, length);
}

int post_recv(struct endpoint *e, uint64_t wr_id, uint64_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + offset, length, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

static uint64_t patience_ms(void)
{
	return on_softnic() ? PATIENCE_MS : PATIENCE_MS * EMULATED;
}

struct ibv_wc wait_wc(struct endpoint *e)
{
	uint64_t deadline = now_ms() + patience_ms();
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (!n)
			usleep(20);
	} while (!n && now_ms() < deadline);
	assert_int_equal(n, 1);
	return wc;
}

void do_wr(struct endpoint *e, struct test_wr *w, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(post(e, w), 0);
	wc = wait_wc(e);
	assert_int_equal(refused_status(wc.status, status), status);
	assert_int_equal(wc.wr_id, w->wr.wr_id);
}

struct ibv_wc wait_wc_awake(struct endpoint *e)
{
	uint64_t deadline = now_ms() + patience_ms();
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (!n && now_ms() < deadline);
	assert_int_equal(n, 1);
	return wc;
}

uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int post_wrong_recv(struct endpoint *e, uint64_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + offset, length, e->mr->lkey ^ 1 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

void wait_event(struct endpoint *e)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), 0);
	assert_ptr_equal(cq, e->cq);
	assert_ptr_equal(context, e);
	ibv_ack_cq_events(cq, 1);
}

static void echo(struct endpoint *e, uint64_t offset, uint64_t length, uint64_t times)
{
	struct test_wr w;

	while (times--) {
		assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
		assert_int_equal(post_recv(e, times, offset, length), 0);
		wait_event(e);
		assert_int_equal(wait_wc_awake(e).opcode, IBV_WC_RECV);
		assert_int_equal(post(e, wr_make(&w, e, IBV_WR_SEND, offset, 8, 0)), 0);
		assert_int_equal(wait_wc_awake(e).opcode, IBV_WC_SEND);
	}
}

static uint64_t async_event(struct endpoint *e)
{
	struct ibv_async_event event;
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(e->ctx, &event), 0);
	assert_ptr_equal(event.element.qp, e->qp);
	ibv_ack_async_event(&event);
	return event.event_type;
}

static void spin_add(struct endpoint *e, uint64_t offset, uint64_t times)
{
	struct test_wr w;

	while (times--) {
		wr_make(&w, e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, offset);
		w.wr.wr.atomic.compare_add = 1;
		do_wr(e, &w, IBV_WC_SUCCESS);
	}
}

static void send_many(struct endpoint *e, uint64_t offset, uint32_t length, uint64_t times)
{
	struct test_wr w;

	while (times--)
		do_wr(e, wr_make(&w, e, IBV_WR_SEND, offset, length, 0), IBV_WC_SUCCESS);
}

static void write_for_ever(struct endpoint *e)
{
	struct test_wr w;

	while (!post(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, BUF_SIZE, 0)))
		if (wait_wc(e).status != IBV_WC_SUCCESS)
			break;
}

static void obey(struct endpoint *e, int fd, const struct puppet_command *c)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct puppet_answer a = { 0 };
	struct test_wr w;

	switch (c->order) {
	case ORDER_POST_RECV:
		a.result = post_recv(e, c->value, c->offset, c->length);
		break;
	case ORDER_POST_WRONG_RECV:
		a.result = post_wrong_recv(e, c->offset, c->length);
		break;
	case ORDER_SEND:
		wr_make(&w, e, IBV_WR_SEND, c->offset, c->length, 0);
		w.wr.send_flags |= c->value ? IBV_SEND_SOLICITED : 0;
		a.result = post(e, &w);
		break;
	case ORDER_SEND_MANY:
		send_many(e, c->offset, c->length, c->value);
		break;
	case ORDER_ECHO:
		echo(e, c->offset, c->length, c->value);
		break;
	case ORDER_POLL:
		a.wc = wait_wc(e);
		break;
	case ORDER_ARM:
		a.result = ibv_req_notify_cq(e->cq, c->value);
		break;
	case ORDER_WAIT_EVENT:
		wait_event(e);
		break;
	case ORDER_PEEK:
		memcpy(&a.value, e->buf + c->offset, sizeof(a.value));
		break;
	case ORDER_POKE:
		memcpy(e->buf + c->offset, &c->value, sizeof(c->value));
		break;
	case ORDER_FILL:
		memset(e->buf + c->offset, c->value, c->length);
		break;
	case ORDER_DEREGISTER:
		a.result = ibv_dereg_mr(e->mr);
		munmap(e->buf, BUF_SIZE);
		e->mr = NULL;
		e->buf = NULL;
		break;
	case ORDER_TO_ERROR:
		a.result = ibv_modify_qp(e->qp, &error, IBV_QP_STATE);
		break;
	case ORDER_ASYNC_EVENT:
		a.value = async_event(e);
		break;
	case ORDER_SPIN_ADD:
		spin_add(e, c->offset, c->value);
		break;
	case ORDER_WRITE_ONCE:
		do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
		break;
	case ORDER_WRITE_FOR_EVER:
		assert_int_equal(write(fd, &a, sizeof(a)), sizeof(a));
		write_for_ever(e);
		return;
	case ORDER_FORK:
		a.value = fork();
		if (!a.value) {
			close(fd);
			sleep(PATIENCE_MS / 1000);
			_exit(0);
		}
		break;
	case ORDER_FORK_RAW:
		a.value = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!a.value) {
			close(fd);
			alarm(PATIENCE_MS / 1000); /* if never killed */
			pause();
		}
		break;
	case ORDER_CPU_NS:
		a.value = cpu_ns();
		break;
	case ORDER_CLOSE:
		end_close(e);
		break;
	}
	assert_int_equal(write(fd, &a, sizeof(a)), sizeof(a));
}

struct greeting {
	struct endpoint_name name;
	struct manners manners;
	int access;
};

/* A failed assertion ends a puppet like a failed command: the test sees the socket close. */
static int play_puppet(int fd)
{
	struct greeting g;
	struct puppet_command c = { 0 };
	struct endpoint_name name;
	struct endpoint e;

	assert_int_equal(read(fd, &g, sizeof(g)), sizeof(g));
	end_open(&e, g.access);
	name = end_name(&e);
	assert_int_equal(write(fd, &name, sizeof(name)), sizeof(name));
	end_connect(&e, &g.name, &g.manners);
	assert_int_equal(write(fd, &name, sizeof(name)), sizeof(name));
	while (c.order != ORDER_CLOSE && read(fd, &c, sizeof(c)) == sizeof(c))
		obey(&e, fd, &c);
	return c.order != ORDER_CLOSE;
}

#define NAMESPACES "TEST_PID_NAMESPACES"

/* On request each puppet has its own PID namespace, so that neither side can name the other. */
static pid_t fork_puppet(void)
{
	const unsigned long flags = CLONE_NEWPID | (geteuid() ? CLONE_NEWUSER : 0);

	return getenv(NAMESPACES) ? syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0) : fork();
}

pid_t start_again(const char *option, int *fd)
{
	char number[16];
	int fds[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	pid = fork_puppet();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[0]);
		snprintf(number, sizeof(number), "%d", fds[1]);
		execl("/proc/self/exe", option + strlen("--"), option, number, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

void puppet_start(struct puppet *p, struct endpoint *e, int access, const struct manners *m)
{
	struct greeting g = { end_name(e), *m, access };

	p->pid = start_again("--puppet", &p->fd);
	assert_int_equal(write(p->fd, &g, sizeof(g)), sizeof(g));
	assert_int_equal(read(p->fd, &p->name, sizeof(p->name)), sizeof(p->name));
	end_connect(e, &p->name, m);
	assert_int_equal(read(p->fd, &p->name, sizeof(p->name)), sizeof(p->name));
}

void give_order(struct puppet *p, enum puppet_order order, uint64_t offset, uint64_t length,
		uint64_t value)
{
	struct puppet_command c = { order, offset, length, value };

	assert_int_equal(write(p->fd, &c, sizeof(c)), sizeof(c));
}

struct puppet_answer take_answer(struct puppet *p)
{
	struct puppet_answer a;

	assert_int_equal(read(p->fd, &a, sizeof(a)), sizeof(a));
	return a;
}

struct puppet_answer tell(struct puppet *p, enum puppet_order order, uint64_t offset,
			  uint64_t length, uint64_t value)
{
	give_order(p, order, offset, length, value);
	return take_answer(p);
}

void puppet_stop(struct puppet *p, struct endpoint *e)
{
	int status;

	tell(p, ORDER_CLOSE, 0, 0, 0);
	end_close(e);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	assert_int_equal(status, 0);
	close(p->fd);
}

void puppet_kill(struct puppet *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->fd);
}

int pair_up(void **state)
{
	struct puppet_pair *pair = calloc(1, sizeof(*pair));

	*state = pair;
	end_open(&pair->e, ALL_ACCESS);
	puppet_start(&pair->p, &pair->e, ALL_ACCESS, &plain);
	return 0;
}

int pair_down(void **state)
{
	struct puppet_pair *pair = *state;

	puppet_stop(&pair->p, &pair->e);
	free(pair);
	return 0;
}

/* Whether PID namespaces are requested but not permitted. */
static bool lacks_namespaces(void)
{
	pid_t pid;

	if (!getenv(NAMESPACES))
		return false;
	pid = fork_puppet();
	if (!pid)
		_exit(0);
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}

int test_main(int argc, char **argv, int (*tests)(void))
{
	signal(SIGPIPE, SIG_IGN);
	alarm(on_softnic() ? LIMIT_SECONDS : LIMIT_SECONDS * EMULATED);
	if (argc == 3 && !strcmp(argv[1], "--puppet"))
		return play_puppet(atoi(argv[2]));
	if (lacks_namespaces()) {
		printf("1..0 # SKIP no PID namespace may be made here: %s\n", strerror(errno));
		return 0;
	}
	return tests();
}

void write_times(struct endpoint *e, int n)
{
	struct test_wr w;
	int i;

	for (i = 0; i < n; i++) {
		wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0);
		w.wr.wr_id = i;
		assert_int_equal(post(e, &w), 0);
	}
}
