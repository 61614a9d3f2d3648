// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs mcast; devices: softnic; timeout: 120 */
/*
 * Multicast groups: membership, delivery, and that no member can hinder another. Each test has
 * its own group, because tests run in parallel.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "mcast_fixture.h"
#include "tests/support/silent_slot.h"
#include "softnic/qp/qp.h"

enum { IN_C = 65536 };

static void open_another(struct endpoint *e, struct mcast_ends *c, uint32_t flags)
{
	endpoint_open_unreliable(e, &c->t.base, IBV_QPT_UD, flags);
	to_init(e);
	to_ready(e, 0);
}

static void check_addresses(const struct mcast_ends *c, bool is_ipv4)
{
	const uint8_t *grh = c->t.base.buf + IN_B;

	if (is_ipv4)
		assert_memory_equal(grh + GRH - 4, c->gid.raw + 12, 4);
	else
		assert_memory_equal(grh + GRH - 16, c->gid.raw, 16);
}

static void test_each_member_and_no_other_gets_the_packet(void **state)
{
	struct mcast_ends c;
	struct ibv_wc wc;
	struct endpoint other;
	struct test_wr w;
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
		/*
		 * A member without a receive, or with another Q_Key, loses the datagram; the
		 * rest get it.
		 */
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
	struct endpoint blocks;
	struct mcast_ends c;
	struct test_wr w;

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

static void test_a_detached_member_gets_nothing(void **state)
{
	struct mcast_ends c;

	(void)state;
	crowd_up(&c, true);
	assert_int_equal(ibv_detach_mcast(c.t.b.qp, &c.gid, 0), EINVAL);
	assert_int_equal(post_recv(&c.t.b, 1, IN_B, 200), 0);
	assert_int_equal(post_recv(&c.t.b, 2, IN_B, 200), 0);
	/* Attaching twice counts once. */
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
	struct mcast_ends c;
	struct datagram_pair uc;

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
	struct mcast_ends c;
	int i;

	(void)state;
	crowd_up(&c, true);
	assert_int_equal(ibv_query_device(c.t.base.ctx, &attr), 0);
	qps = calloc(attr.max_mcast_qp_attach + 1, sizeof(*qps));
	for (i = 0; i <= attr.max_mcast_qp_attach; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_UD,
			.send_cq = c.t.b.cq,
			.recv_cq = c.t.b.cq,
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

/* A forked child is in no group, although it inherits all descriptors. */
static void test_a_child_does_not_keep_its_parent_in_a_group(void **state)
{
	struct mcast_ends c;
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

/* As if a process that never answers were attached. */
static int attach_mute(const struct mcast_ends *c, uint32_t qpn)
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

static void test_a_silent_member_delays_no_other_member(void **state)
{
	uint64_t begin = now_ms();
	int slot_fd, member_fd;
	struct mcast_ends c;
	struct test_wr w;

	(void)state;
	crowd_up(&c, true);
	member_fd = attach_mute(&c, take_slot(&slot_fd) << SOFTNIC_QP_INDEX_BITS);
	attach(&c.t.b, &c);
	assert_int_equal(post_recv(&c.t.b, 1, IN_B, 200), 0);
	assert_int_equal(post_recv(&c.t.b, 2, IN_B, 200), 0);
	assert_int_equal(post(&c.t.a, to_group(&w, &c, 8)), 0);
	assert_got(&c.t.b, 1);
	assert_int_equal(wait_wc(&c.t.a).status, IBV_WC_SUCCESS);
	assert_true(now_ms() - begin >= 1000); /* the mute member got its time */
	send_to_group(&c);
	assert_got(&c.t.b, 2);
	detach(&c.t.b, &c);
	close(member_fd);
	close(slot_fd);
	two_down(&c.t);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_each_member_and_no_other_gets_the_packet),
		cmocka_unit_test(test_the_sender_gets_its_own_unless_it_blocks_that),
		cmocka_unit_test(test_a_detached_member_gets_nothing),
		cmocka_unit_test(test_only_datagram_queue_pairs_and_groups_are_attached),
		cmocka_unit_test(test_no_more_are_attached_than_the_device_says),
		cmocka_unit_test(test_a_child_does_not_keep_its_parent_in_a_group),
		cmocka_unit_test(test_a_silent_member_delays_no_other_member),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
