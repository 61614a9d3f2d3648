// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs mcast members; devices: softnic; timeout: 120 */
/*
 * Multicast groups with members in other processes that come and die. Each test has its own
 * group, because tests run in parallel.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "mcast_fixture.h"
#include "softnic/qp/qp.h"

/* Another process in the group. */
struct mcast_member {
	pid_t pid;
	int fd;
};

enum { READY = 'r', DONE = 'd', FOR_EVER = 0 };

/* Receive @count datagrams numbered from 0; or all, until killed. */
static int play_member(const char *group, uint32_t count, int fd)
{
	struct mcast_ends c = { 0 };
	const uint32_t *got;
	struct ibv_wc wc;
	uint32_t i;

	assert_int_equal(inet_pton(AF_INET6, group, &c.gid), 1);
	two_up(&c.t, IBV_QPT_UD);
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(post_recv(&c.t.b, i, IN_B + 256 * i, 200), 0);
	attach(&c.t.b, &c);
	assert_int_equal(write(fd, &(char){ READY }, 1), 1);
	for (i = 0; i < count || count == FOR_EVER; i++) {
		while (!ibv_poll_cq(c.t.b.cq, 1, &wc))
			usleep(100);
		got = (void *)(c.t.base.buf + IN_B + 256 * wc.wr_id + GRH);
		assert_true(*got == i || count == FOR_EVER);
		assert_int_equal(post_recv(&c.t.b, wc.wr_id, IN_B + 256 * wc.wr_id, 200), 0);
	}
	assert_int_equal(write(fd, &(char){ DONE }, 1), 1);
	detach(&c.t.b, &c);
	two_down(&c.t);
	return 0;
}

static struct mcast_member start_member(const struct mcast_ends *c, uint32_t count)
{
	char group[INET6_ADDRSTRLEN], number[16], fd[16];
	struct mcast_member m;
	int fds[2];

	inet_ntop(AF_INET6, &c->gid, group, sizeof(group));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	snprintf(number, sizeof(number), "%u", count);
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	m.pid = fork();
	assert_true(m.pid >= 0);
	if (!m.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		execl("/proc/self/exe", "member", "--member", group, number, fd, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	m.fd = fds[0];
	return m;
}

static void hear(const struct mcast_member *m, char word)
{
	struct pollfd p = { m->fd, POLLIN, 0 };
	char got;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(read(m->fd, &got, 1), 1);
	assert_int_equal(got, word);
}

static void end_member(struct mcast_member *m, bool kills)
{
	int status;

	if (kills)
		kill(m->pid, SIGKILL);
	assert_int_equal(waitpid(m->pid, &status, 0), m->pid);
	assert_int_equal(status, kills ? SIGKILL : 0);
	close(m->fd);
}

/* Send as many as there are receives, without a pause. */
static void send_counting(struct mcast_ends *c)
{
	struct test_wr w;
	uint32_t i;

	for (i = 0; i < QUEUE_DEPTH; i++) {
		memcpy(c->t.base.buf, &i, sizeof(i));
		to_group(&w, c, sizeof(i))->wr.send_flags |= IBV_SEND_INLINE;
		assert_int_equal(post(&c->t.a, &w), 0);
	}
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(wait_wc(&c->t.a).status, IBV_WC_SUCCESS);
}

static void test_members_in_several_processes_get_all_of_it_in_order(void **state)
{
	enum { MEMBERS = 3 };
	struct mcast_member m[MEMBERS];
	struct mcast_ends c;
	int i;

	(void)state;
	crowd_up(&c, true);
	for (i = 0; i < MEMBERS; i++)
		m[i] = start_member(&c, QUEUE_DEPTH);
	for (i = 0; i < MEMBERS; i++)
		hear(&m[i], READY);
	send_counting(&c);
	for (i = 0; i < MEMBERS; i++) {
		hear(&m[i], DONE);
		end_member(&m[i], false);
	}
	two_down(&c.t);
}

static void test_posted_sends_survive_destroying_the_queue_pair(void **state)
{
	struct mcast_member m;
	struct mcast_ends c;
	struct test_wr w;

	(void)state;
	crowd_up(&c, true);
	m = start_member(&c, 1);
	hear(&m, READY);
	memset(c.t.base.buf, 0, 8);
	assert_int_equal(post(&c.t.a, to_group(&w, &c, 8)), 0);
	end_close(&c.t.a);
	hear(&m, DONE);
	end_member(&m, false);
	endpoint_open_unreliable(&c.t.a, &c.t.base, IBV_QPT_UD, 0);
	two_down(&c.t);
}

/* The number of remote ends remembered by @e. */
static uint32_t num_remotes(struct endpoint *e)
{
	struct qp *qp = to_qp(e->qp);
	struct remote_qp *r;
	uint32_t i, n = 0;

	pthread_mutex_lock(&qp->lock);
	for (i = 0; i < REMOTE_HASHES; i++)
		for (r = qp->remotes[i]; r; r = r->next)
			n++;
	pthread_mutex_unlock(&qp->lock);
	return n;
}

static void wait_until_forgotten(struct endpoint *e)
{
	uint64_t deadline = now_ms() + PATIENCE_MS;

	while (num_remotes(e) > 2) { /* the survivor, and the last end sent to */
		assert_true(now_ms() < deadline);
		usleep(1000);
	}
}

/*
 * Some members are killed before they are up. The survivor gets each datagram once, and nothing
 * hangs.
 */
static void test_a_process_that_stays_gets_every_message(void **state)
{
	enum { VISITORS = 3, ROUNDS = 24, SENDS = 10 };
	struct mcast_member visitors[VISITORS], *visitor;
	struct mcast_ends c;
	int i, round;

	(void)state;
	crowd_up(&c, true);
	attach(&c.t.b, &c);
	for (i = 0; i < VISITORS; i++)
		visitors[i] = start_member(&c, FOR_EVER);
	for (round = 0; round < ROUNDS; round++) {
		visitor = &visitors[round % VISITORS];
		if (round & 1)
			hear(visitor, READY);
		for (i = 0; i < SENDS; i++) {
			assert_int_equal(post_recv(&c.t.b, i, IN_B, 200), 0);
			send_to_group(&c);
			assert_got(&c.t.b, i);
			assert_nothing(&c.t.b);
		}
		end_member(visitor, true);
		*visitor = start_member(&c, FOR_EVER);
	}
	for (i = 0; i < VISITORS; i++)
		end_member(&visitors[i], true);
	wait_until_forgotten(&c.t.a);
	visitors[0] = start_member(&c, QUEUE_DEPTH);
	hear(&visitors[0], READY);
	send_counting(&c);
	hear(&visitors[0], DONE);
	end_member(&visitors[0], false);
	detach(&c.t.b, &c);
	two_down(&c.t);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_members_in_several_processes_get_all_of_it_in_order),
		cmocka_unit_test(test_posted_sends_survive_destroying_the_queue_pair),
		cmocka_unit_test(test_a_process_that_stays_gets_every_message),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--member"))
		return play_member(argv[2], atoi(argv[3]), atoi(argv[4]));
	return test_main(argc, argv, tests);
}
