// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic scale; devices: softnic; timeout: 120 */
/*
 * Many queue pairs in a process, many processes on a device, and too few descriptors.
 *
 * The test wires up processes, the members. Queue pair "out j" of member i leads to "in j" of
 * another member, for each j a different one if there are enough. Each member writes on all
 * outs, reads on all ins, and adds one on all outs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support/verbs_puppet.h"

enum { OUTS_MAX = 500, MEMBERS_MAX = 64, PIECE = 64 };

struct plan {
	uint32_t members, outs, self;
};

/* A member's address, for the others. */
struct card {
	uint64_t addr;
	uint32_t rkey;
	uint32_t out[OUTS_MAX], in[OUTS_MAX]; /* QP numbers */
};

/* A member's region. */
struct board {
	uint64_t counter, sink[OUTS_MAX];
	uint8_t mine[OUTS_MAX][PIECE];
	uint8_t written[OUTS_MAX][PIECE]; /* by other members */
	uint8_t read[OUTS_MAX][PIECE]; /* from other members */
};

static uint32_t target(const struct plan *p, uint32_t member, uint32_t j)
{
	return (member + 1 + j % (p->members - 1)) % p->members;
}

static uint32_t source(const struct plan *p, uint32_t member, uint32_t j)
{
	return (member + 2 * p->members - 1 - j % (p->members - 1)) % p->members;
}

static void fill(uint8_t *piece, uint32_t member, uint32_t j)
{
	for (uint32_t k = 0; k < PIECE; k++)
		piece[k] = member * 31 + j * 7 + k;
}

static void transfer(int fd, void *bytes, size_t length, bool send)
{
	char *at = bytes;
	ssize_t n;

	for (; length; at += n, length -= n) {
		n = send ? write(fd, at, length) : read(fd, at, length);
		assert_true(n > 0);
	}
}

static void meet(int fd)
{
	char word = 0;

	transfer(fd, &word, 1, true);
	transfer(fd, &word, 1, false);
}

struct scale_process {
	struct plan plan;
	struct endpoint out[OUTS_MAX], in[OUTS_MAX];
	struct board *board;
	struct card cards[MEMBERS_MAX];
};

static void open_queue(struct endpoint *e, const struct endpoint *first)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	*e = *first;
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

static void open_member(struct scale_process *m, struct endpoint *first, struct card *card)
{
	for (uint32_t j = 0; j < m->plan.outs; j++) {
		open_queue(&m->out[j], first);
		open_queue(&m->in[j], first);
		card->out[j] = m->out[j].qp->qp_num;
		card->in[j] = m->in[j].qp->qp_num;
		fill(m->board->mine[j], m->plan.self, j);
	}
	card->addr = (uintptr_t)first->buf;
	card->rkey = first->mr->rkey;
}

static void connect_member(struct scale_process *m)
{
	for (uint32_t j = 0; j < m->plan.outs; j++) {
		const struct card *to = &m->cards[target(&m->plan, m->plan.self, j)];
		const struct card *from = &m->cards[source(&m->plan, m->plan.self, j)];
		const struct endpoint_name out = { to->in[j], to->rkey, to->addr };
		const struct endpoint_name in = { from->out[j], from->rkey, from->addr };

		end_connect(&m->out[j], &out, &plain);
		end_connect(&m->in[j], &in, &plain);
	}
}

/* Post on all ends, then wait for all. */
static void do_all(struct scale_process *m, struct endpoint *ends, enum ibv_wr_opcode op,
		   size_t here, size_t there, size_t step)
{
	uint32_t length = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : PIECE, j;
	struct test_wr w;

	for (j = 0; j < m->plan.outs; j++) {
		/* Each atomic has its own result slot, because several threads deliver. */
		wr_make(&w, &ends[j], op, here + j * length, length, there + j * step);
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			w.wr.wr.atomic.compare_add = 1;
		assert_int_equal(post(&ends[j], &w), 0);
	}
	for (j = 0; j < m->plan.outs; j++)
		assert_int_equal(wait_wc(&ends[0]).status, IBV_WC_SUCCESS);
}

static void check(const struct scale_process *m)
{
	uint8_t expected[PIECE];

	for (uint32_t j = 0; j < m->plan.outs; j++) {
		fill(expected, source(&m->plan, m->plan.self, j), j);
		assert_memory_equal(m->board->written[j], expected, PIECE);
		assert_memory_equal(m->board->read[j], expected, PIECE);
	}
	assert_int_equal(m->board->counter, m->plan.outs);
}

static int play_member(int fd)
{
	struct scale_process *m = calloc(1, sizeof(*m));
	static struct card card;
	struct endpoint first;

	end_open(&first, ALL_ACCESS);
	assert_int_equal(ibv_resize_cq(first.cq, 2 * OUTS_MAX), 0);
	m->board = (struct board *)first.buf;
	transfer(fd, &m->plan, sizeof(m->plan), false);
	open_member(m, &first, &card);
	transfer(fd, &card, sizeof(card), true);
	transfer(fd, m->cards, sizeof(card) * m->plan.members, false);
	connect_member(m);
	meet(fd);
	do_all(m, m->out, IBV_WR_RDMA_WRITE, offsetof(struct board, mine),
	       offsetof(struct board, written), PIECE);
	do_all(m, m->in, IBV_WR_RDMA_READ, offsetof(struct board, read),
	       offsetof(struct board, mine), PIECE);
	do_all(m, m->out, IBV_WR_ATOMIC_FETCH_AND_ADD, offsetof(struct board, sink),
	       offsetof(struct board, counter), 0);
	meet(fd);
	check(m);
	for (uint32_t j = 0; j < m->plan.outs; j++) {
		assert_int_equal(ibv_destroy_qp(m->out[j].qp), 0);
		assert_int_equal(ibv_destroy_qp(m->in[j].qp), 0);
	}
	end_close(&first);
	free(m);
	return 0;
}

static pid_t spawn_member(int *fd)
{
	char number[16];
	int fds[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		fcntl(fds[1], F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", fds[1]);
		execl("/proc/self/exe", "member", "--member", number, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

static void let_meet(const int *fds, uint32_t members)
{
	char word;

	for (uint32_t i = 0; i < members; i++)
		transfer(fds[i], &word, 1, false);
	for (uint32_t i = 0; i < members; i++)
		transfer(fds[i], &word, 1, true);
}

static void run(uint32_t members, uint32_t outs)
{
	static struct card cards[MEMBERS_MAX];
	struct plan plan = { members, outs, 0 };
	pid_t pids[MEMBERS_MAX];
	int fds[MEMBERS_MAX] = { 0 }, status;
	uint32_t i;

	for (i = 0; i < members; i++) {
		pids[i] = spawn_member(&fds[i]);
		plan.self = i;
		transfer(fds[i], &plan, sizeof(plan), true);
	}
	for (i = 0; i < members; i++)
		transfer(fds[i], &cards[i], sizeof(cards[i]), false);
	for (i = 0; i < members; i++)
		transfer(fds[i], cards, sizeof(cards[0]) * members, true);
	let_meet(fds, members);
	let_meet(fds, members);
	for (i = 0; i < members; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
		close(fds[i]);
	}
}

static void test_a_process_may_have_a_thousand_queue_pairs(void **state)
{
	(void)state;
	run(2, 500);
}

static void test_sixty_four_processes_share_a_device(void **state)
{
	(void)state;
	run(64, 4);
}

static unsigned int num_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Leave @room descriptors: the limit concerns numbers, and numbers in use may have gaps. */
static void leave_fds(unsigned int room, struct rlimit *old)
{
	struct rlimit limit;
	int n = 0;

	for (; room; n++)
		room -= fcntl(n, F_GETFD) < 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, old), 0);
	limit = *old;
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static struct ibv_context *open_with_fds_left(unsigned int room)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct rlimit old;

	leave_fds(room, &old);
	errno = 0;
	ctx = ibv_open_device(list[0]);
	if (!ctx)
		assert_int_equal(errno, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	ibv_free_device_list(list);
	return ctx;
}

/*
 * At any point without descriptors the call fails, releases the rest, and works later. Some
 * descriptors stay, such as the running engine's. A second failure at the same point would show
 * a leak.
 */
static void test_too_few_descriptors_are_said_and_none_is_lost(void **state)
{
	struct ibv_context *ctx = NULL;
	unsigned int room, after;

	(void)state;
	for (room = 0; !ctx; room++) {
		assert_true(room < 16);
		ctx = open_with_fds_left(room);
		after = num_fds();
		if (ctx || (ctx = open_with_fds_left(room)))
			break;
		assert_int_equal(num_fds(), after);
	}
	assert_true(room > 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void test_one_queue_pair_more_than_there_are_descriptors_is_refused(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qps[8] = { NULL };
	struct rlimit old;
	struct endpoint e;
	int i, n;

	(void)state;
	end_open(&e, ALL_ACCESS);
	init.send_cq = init.recv_cq = e.cq;
	leave_fds(4, &old);
	errno = 0;
	for (n = 0; n < 8 && (qps[n] = ibv_create_qp(e.pd, &init)); n++)
		;
	assert_true(n < 8);
	assert_int_equal(errno, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (i = 0; i < n; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	end_close(&e);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_too_few_descriptors_are_said_and_none_is_lost),
		cmocka_unit_test(test_one_queue_pair_more_than_there_are_descriptors_is_refused),
		cmocka_unit_test(test_a_process_may_have_a_thousand_queue_pairs),
		cmocka_unit_test(test_sixty_four_processes_share_a_device),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--member"))
		return play_member(atoi(argv[2]));
	return test_main(argc, argv, tests);
}
