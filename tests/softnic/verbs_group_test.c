// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Multicast groups: who is in one, what its members get, and that nobody who is in one, or came and
 * died, keeps it from the others. Each test has a group of its own, for others run beside it.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "datagram_harness.h"
#include "softnic/group.h"
#include "softnic/qp.h"

enum { IN_B = 8192, IN_C = 65536 };

/* Two ends, and a group that a sends to; nobody is attached yet. */
struct crowd {
	struct two t;
	union ibv_gid gid;
};

static void invent_group(union ibv_gid *gid, bool is_ipv4)
{
	*gid = (union ibv_gid){ .raw = { 0xff, 0x0e } };
	if (is_ipv4)
		*gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = 239 } };
	assert_int_equal(getrandom(gid->raw + 13, 3, 0), 3);
	if (!is_ipv4)
		assert_int_equal(getrandom(gid->raw + 2, 11, 0), 11);
}

static void crowd_up(struct crowd *c, bool is_ipv4)
{
	char address[INET6_ADDRSTRLEN];

	two_up(&c->t, IBV_QPT_UD);
	invent_group(&c->gid, is_ipv4);
	inet_ntop(AF_INET6, &c->gid, address, sizeof(address));
	ibv_destroy_ah(c->t.ah);
	c->t.ah = make_ah(&c->t.a, address);
	assert_non_null(c->t.ah);
}

static struct wr *to_group(struct wr *w, struct crowd *c, uint32_t length)
{
	datagram(w, &c->t, length)->wr.wr.ud.remote_qpn = GROUP_QPN;
	return w;
}

static void attach(struct end *e, struct crowd *c)
{
	assert_int_equal(ibv_attach_mcast(e->qp, &c->gid, 0), 0);
}

static void detach(struct end *e, struct crowd *c)
{
	assert_int_equal(ibv_detach_mcast(e->qp, &c->gid, 0), 0);
}

static void open_another(struct end *e, struct crowd *c, uint32_t flags)
{
	lossy_open(e, &c->t.base, IBV_QPT_UD, flags);
	to_init(e);
	to_ready(e, 0);
}

/* One datagram, which each end that is attached is to have room for. */
static void send_to_group(struct crowd *c)
{
	struct wr w;

	do_wr(&c->t.a, to_group(&w, c, 8), IBV_WC_SUCCESS);
}

static void assert_got(struct end *e, uint64_t wr_id)
{
	struct ibv_wc wc = wait_wc(e);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

static void check_addresses(const struct crowd *c, bool is_ipv4)
{
	const uint8_t *grh = c->t.base.buf + IN_B;

	if (is_ipv4)
		assert_memory_equal(grh + GRH - 4, c->gid.raw + 12, 4);
	else
		assert_memory_equal(grh + GRH - 16, c->gid.raw, 16);
}

static void test_each_member_gets_it_and_nobody_else(void **state)
{
	struct crowd c;
	struct ibv_wc wc;
	struct end other;
	struct wr w;
	int is_ipv4;

	(void)state;
	for (is_ipv4 = 0; is_ipv4 < 2; is_ipv4++) {
		crowd_up(&c, is_ipv4);
		open_another(&other, &c, 0);
		attach(&c.t.b, &c);
		memset(c.t.base.buf, 0x5a, 100);
		assert_int_equal(post_recv(&c.t.b, 7, IN_B, 200), 0);
		assert_int_equal(post_recv(&other, 8, IN_C, 200), 0);
		do_wr(&c.t.a, to_group(&w, &c, 100), IBV_WC_SUCCESS);
		wc = wait_wc(&c.t.b);
		assert_int_equal(wc.byte_len, GRH + 100);
		assert_int_equal(wc.wc_flags, IBV_WC_GRH);
		assert_int_equal(wc.src_qp, c.t.a.qp->qp_num);
		assert_memory_equal(c.t.base.buf + IN_B + GRH, c.t.base.buf, 100);
		check_addresses(&c, is_ipv4);
		assert_nothing(&other);
		/* Who has no receive, or another key, loses it; the others do not. */
		attach(&other, &c);
		do_wr(&c.t.a, to_group(&w, &c, 100), IBV_WC_SUCCESS);
		assert_got(&other, 8);
		assert_nothing(&c.t.b);
		detach(&other, &c);
		detach(&c.t.b, &c);
		end_close(&other);
		two_down(&c.t);
	}
}

static void test_the_sender_gets_its_own_unless_it_blocks_that(void **state)
{
	struct end blocks;
	struct crowd c;
	struct wr w;

	(void)state;
	crowd_up(&c, true);
	open_another(&blocks, &c, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	attach(&c.t.a, &c);
	attach(&blocks, &c);
	assert_int_equal(post_recv(&c.t.a, 1, IN_B, 200), 0);
	assert_int_equal(post_recv(&blocks, 2, IN_C, 200), 0);
	assert_int_equal(post(&blocks, to_group(&w, &c, 8)), 0);
	assert_int_equal(wait_wc(&blocks).opcode, IBV_WC_SEND);
	assert_nothing(&blocks);
	assert_got(&c.t.a, 1);
	assert_int_equal(post_recv(&c.t.a, 3, IN_B, 200), 0);
	assert_int_equal(post(&c.t.a, to_group(&w, &c, 8)), 0);
	assert_int_equal(wait_wc(&c.t.a).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&c.t.a).status, IBV_WC_SUCCESS);
	assert_got(&blocks, 2);
	detach(&blocks, &c);
	detach(&c.t.a, &c);
	end_close(&blocks);
	two_down(&c.t);
}

static void test_who_is_detached_gets_nothing(void **state)
{
	struct crowd c;

	(void)state;
	crowd_up(&c, true);
	assert_int_equal(ibv_detach_mcast(c.t.b.qp, &c.gid, 0), EINVAL);
	assert_int_equal(post_recv(&c.t.b, 1, IN_B, 200), 0);
	assert_int_equal(post_recv(&c.t.b, 2, IN_B, 200), 0);
	/* Attached twice, it is in once. */
	attach(&c.t.b, &c);
	attach(&c.t.b, &c);
	send_to_group(&c);
	assert_got(&c.t.b, 1);
	assert_nothing(&c.t.b);
	assert_int_equal(ibv_destroy_qp(c.t.b.qp), EBUSY);
	detach(&c.t.b, &c);
	assert_int_equal(ibv_detach_mcast(c.t.b.qp, &c.gid, 0), EINVAL);
	send_to_group(&c);
	assert_nothing(&c.t.b);
	two_down(&c.t);
}

static void test_only_datagram_queue_pairs_and_groups_are_attached(void **state)
{
	struct crowd c;
	struct two uc;

	(void)state;
	crowd_up(&c, true);
	two_up(&uc, IBV_QPT_UC);
	assert_int_equal(ibv_attach_mcast(uc.a.qp, &c.gid, 0), EINVAL);
	c.gid.raw[12] = 127;
	assert_int_equal(ibv_attach_mcast(c.t.b.qp, &c.gid, 0), EINVAL);
	two_down(&uc);
	two_down(&c.t);
}

static void test_no_more_are_attached_than_the_device_says(void **state)
{
	struct ibv_device_attr attr;
	union ibv_gid *gids;
	struct ibv_qp **qps;
	struct crowd c;
	int i;

	(void)state;
	crowd_up(&c, true);
	assert_int_equal(ibv_query_device(c.t.base.ctx, &attr), 0);
	qps = calloc(attr.max_mcast_qp_attach + 1, sizeof(*qps));
	for (i = 0; i <= attr.max_mcast_qp_attach; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_UD, .send_cq = c.t.b.cq, .recv_cq = c.t.b.cq,
		};

		qps[i] = ibv_create_qp(c.t.base.pd, &init);
		assert_non_null(qps[i]);
		assert_int_equal(ibv_attach_mcast(qps[i], &c.gid, 0),
				 i < attr.max_mcast_qp_attach ? 0 : ENOMEM);
	}
	for (i = 0; i <= attr.max_mcast_qp_attach; i++) {
		ibv_detach_mcast(qps[i], &c.gid, 0);
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
	free(qps);

	gids = calloc(attr.max_mcast_grp + 1, sizeof(*gids));
	for (i = 0; i <= attr.max_mcast_grp; i++) {
		invent_group(&gids[i], false);
		assert_int_equal(ibv_attach_mcast(c.t.b.qp, &gids[i], 0),
				 i < attr.max_mcast_grp ? 0 : ENOMEM);
	}
	for (i = 0; i < attr.max_mcast_grp; i++)
		assert_int_equal(ibv_detach_mcast(c.t.b.qp, &gids[i], 0), 0);
	free(gids);
	two_down(&c.t);
}

/* The child of a fork is in no group, though it has all descriptors. */
static void test_a_child_does_not_keep_its_parent_in_a_group(void **state)
{
	struct crowd c;
	char word = 0;
	int fds[2];
	pid_t pid;

	(void)state;
	crowd_up(&c, true);
	attach(&c.t.b, &c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(fds[1], &word, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &word, 1), 1);
	assert_int_equal(post_recv(&c.t.b, 1, IN_B, 200), 0);
	detach(&c.t.b, &c);
	send_to_group(&c);
	assert_nothing(&c.t.b);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
	close(fds[1]);
	two_down(&c.t);
}

/* As if a process that answers nobody were attached. */
static int attach_mute(const struct crowd *c, uint32_t qpn)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char *name = addr.sun_path + 1;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), n, i;

	n = sprintf(name, "weir-softnic-%u-group-", (unsigned int)geteuid());
	for (i = 0; i < 16; i++)
		n += sprintf(name + n, "%02x", c->gid.raw[i]);
	n += sprintf(name + n, "-%u", qpn);
	n += offsetof(struct sockaddr_un, sun_path) + 1;
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, n), 0);
	return fd;
}

static void test_a_member_that_does_not_answer_keeps_it_from_nobody(void **state)
{
	uint64_t begin = now_ms();
	int slot_fd, member_fd;
	struct crowd c;
	struct wr w;

	(void)state;
	crowd_up(&c, true);
	member_fd = attach_mute(&c, take_slot(&slot_fd) << SOFTNIC_QP_INDEX_BITS);
	attach(&c.t.b, &c);
	assert_int_equal(post_recv(&c.t.b, 1, IN_B, 200), 0);
	assert_int_equal(post_recv(&c.t.b, 2, IN_B, 200), 0);
	assert_int_equal(post(&c.t.a, to_group(&w, &c, 8)), 0);
	assert_got(&c.t.b, 1);
	assert_int_equal(wait_wc(&c.t.a).status, IBV_WC_SUCCESS);
	assert_true(now_ms() - begin >= 1000);	/* it was given its time */
	send_to_group(&c);
	assert_got(&c.t.b, 2);
	detach(&c.t.b, &c);
	close(member_fd);
	close(slot_fd);
	two_down(&c.t);
}

/* Another process that is in the group. */
struct member {
	pid_t pid;
	int fd;
};

enum { READY = 'r', DONE = 'd', FOR_EVER = 0 };

/* Receives so many datagrams, which count from 0; or all, until it is killed. */
static int play_member(const char *group, uint32_t count, int fd)
{
	struct crowd c = { 0 };
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

static struct member start_member(const struct crowd *c, uint32_t count)
{
	char group[INET6_ADDRSTRLEN], number[16], fd[16];
	struct member m;
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

static void hear(const struct member *m, char word)
{
	struct pollfd p = { m->fd, POLLIN, 0 };
	char got;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(read(m->fd, &got, 1), 1);
	assert_int_equal(got, word);
}

static void end_member(struct member *m, bool kills)
{
	int status;

	if (kills)
		kill(m->pid, SIGKILL);
	assert_int_equal(waitpid(m->pid, &status, 0), m->pid);
	assert_int_equal(status, kills ? SIGKILL : 0);
	close(m->fd);
}

/* As many as there are receives, without waiting in between. */
static void send_counting(struct crowd *c)
{
	struct wr w;
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
	struct member m[MEMBERS];
	struct crowd c;
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

static void test_what_was_posted_is_sent_though_the_queue_pair_is_destroyed(void **state)
{
	struct member m;
	struct crowd c;
	struct wr w;

	(void)state;
	crowd_up(&c, true);
	m = start_member(&c, 1);
	hear(&m, READY);
	memset(c.t.base.buf, 0, 8);
	assert_int_equal(post(&c.t.a, to_group(&w, &c, 8)), 0);
	end_close(&c.t.a);
	hear(&m, DONE);
	end_member(&m, false);
	lossy_open(&c.t.a, &c.t.base, IBV_QPT_UD, 0);
	two_down(&c.t);
}

/* How many other ends it remembers. */
static uint32_t num_remotes(struct end *e)
{
	struct qp *qp = to_qp(e->qp);
	struct remote *r;
	uint32_t i, n = 0;

	pthread_mutex_lock(&qp->lock);
	for (i = 0; i < REMOTE_HASHES; i++)
		for (r = qp->remotes[i]; r; r = r->next)
			n++;
	pthread_mutex_unlock(&qp->lock);
	return n;
}

static void wait_until_forgotten(struct end *e)
{
	uint64_t deadline = now_ms() + PATIENCE_MS;

	while (num_remotes(e) > 2) {	/* who stays, and the last one sent to */
		assert_true(now_ms() < deadline);
		usleep(1000);
	}
}

/* Some are killed before they are up. Who stays gets each datagram, once, and nothing hangs. */
static void test_who_stays_gets_all_while_others_come_and_die(void **state)
{
	enum { VISITORS = 3, ROUNDS = 24, SENDS = 10 };
	struct member visitors[VISITORS], *visitor;
	struct crowd c;
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
		cmocka_unit_test(test_each_member_gets_it_and_nobody_else),
		cmocka_unit_test(test_the_sender_gets_its_own_unless_it_blocks_that),
		cmocka_unit_test(test_who_is_detached_gets_nothing),
		cmocka_unit_test(test_only_datagram_queue_pairs_and_groups_are_attached),
		cmocka_unit_test(test_no_more_are_attached_than_the_device_says),
		cmocka_unit_test(test_a_child_does_not_keep_its_parent_in_a_group),
		cmocka_unit_test(test_a_member_that_does_not_answer_keeps_it_from_nobody),
		cmocka_unit_test(test_members_in_several_processes_get_all_of_it_in_order),
		cmocka_unit_test(test_what_was_posted_is_sent_though_the_queue_pair_is_destroyed),
		cmocka_unit_test(test_who_stays_gets_all_while_others_come_and_die),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--member"))
		return play_member(argv[2], atoi(argv[3]), atoi(argv[4]));
	return test_main(argc, argv, tests);
}
