// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic devices; devices: softnic; timeout: 120 */
/*
 * Several devices with several ports: all are distinct, and all talk to each other, like NICs
 * on one switch. The addresses are the host's. The test runs in a private network namespace, to
 * add and remove addresses freely.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tests/support/datagram_pair.h"

enum { DEVICES = 3, PORTS = 2, ADDRESSES = 20 };

static struct ibv_context *open_nth(int n)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *ctx;

	assert_int_equal(count, DEVICES);
	assert_null(list[DEVICES]);
	ctx = ibv_open_device(list[n]);
	assert_non_null(ctx);
	assert_ptr_equal(ctx->device, list[n]);
	ibv_free_device_list(list);
	return ctx;
}

static void test_each_device_has_its_own_name_guid_and_ports(void **state)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	__be64 guids[DEVICES];
	char name[] = "softnic0";
	int i, k;

	(void)state;
	for (i = 0; i < DEVICES; i++, name[7]++) {
		struct ibv_context *ctx = open_nth(i);

		assert_string_equal(ibv_get_device_name(ctx->device), name);
		guids[i] = ibv_get_device_guid(ctx->device);
		for (k = 0; k < i; k++)
			assert_true(guids[i] != guids[k]);
		assert_int_equal(ibv_query_device(ctx, &attr), 0);
		assert_true(attr.node_guid == guids[i]);
		assert_int_equal(attr.phys_port_cnt, PORTS);
		assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
		assert_int_equal(ibv_query_port(ctx, PORTS, &port), 0);
		assert_int_equal(ibv_query_port(ctx, 0, &port), EINVAL);
		assert_int_equal(ibv_query_port(ctx, PORTS + 1, &port), EINVAL);
		assert_int_equal(ibv_close_device(ctx), 0);
	}
}

static void test_no_two_ports_have_the_same_first_gid(void **state)
{
	union ibv_gid gids[DEVICES * PORTS];
	struct ibv_gid_entry entry;
	int n = 0, i, port, k;

	(void)state;
	for (i = 0; i < DEVICES; i++) {
		struct ibv_context *ctx = open_nth(i);

		for (port = 1; port <= PORTS; port++, n++) {
			assert_int_equal(ibv_query_gid(ctx, port, 0, &gids[n]), 0);
			for (k = 0; k < n; k++)
				assert_memory_not_equal(&gids[k], &gids[n], sizeof(gids[n]));
			assert_int_equal(ibv_query_gid_ex(ctx, port, 0, &entry, 0), 0);
			assert_int_equal(entry.port_num, port);
			assert_memory_equal(&entry.gid, &gids[n], sizeof(gids[n]));
		}
		assert_int_equal(ibv_close_device(ctx), 0);
	}
}

static void test_the_gid_table_has_those_of_all_ports(void **state)
{
	struct ibv_context *ctx = open_nth(1);
	struct ibv_gid_entry entries[256];
	union ibv_gid gid;
	ssize_t n, i;

	(void)state;
	n = ibv_query_gid_table(ctx, entries, 256, 0);
	assert_true(n >= PORTS && n % PORTS == 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(entries[i].port_num, 1 + i / (n / PORTS));
		assert_int_equal(
			ibv_query_gid(ctx, entries[i].port_num, entries[i].gid_index, &gid), 0);
		assert_memory_equal(&entries[i].gid, &gid, sizeof(gid));
	}
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void test_every_device_reaches_every_other_in_another_process(void **state)
{
	struct puppet p;
	struct endpoint e;
	struct test_wr w;
	int i;

	(void)state;
	for (i = 0; i < DEVICES; i++) {
		end_open_on(&e, ALL_ACCESS, i);
		puppet_start(&p, &e, ALL_ACCESS, &plain); /* on the first */
		memset(e.buf, 1 + i, 64);
		do_wr(&e, wr_make(&w, &e, IBV_WR_RDMA_WRITE, 0, 64, 0), IBV_WC_SUCCESS);
		assert_int_equal(tell(&p, ORDER_PEEK, 0, 0, 0).value,
				 0x0101010101010101ull * (1 + i));
		tell(&p, ORDER_WRITE_ONCE, 0, 0, 0);
		puppet_stop(&p, &e);
	}
}

static void test_objects_of_two_devices_do_not_mix(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_context *a = open_nth(0), *b = open_nth(1);
	struct ibv_pd *pd = ibv_alloc_pd(a);

	(void)state;
	init.send_cq = init.recv_cq = ibv_create_cq(b, 1, NULL, NULL, 0);
	assert_non_null(init.send_cq);
	errno = 0;
	assert_null(ibv_create_qp(pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(init.send_cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(a), 0);
	assert_int_equal(ibv_close_device(b), 0);
}

/* Send a datagram from @ah's port, and an answer back to the source. */
static void assert_they_talk(struct endpoint *from, struct endpoint *to, struct ibv_ah *ah,
			     uint8_t port)
{
	struct ibv_ah *back;
	struct ibv_wc wc;
	struct test_wr w;

	assert_non_null(ah);
	assert_int_equal(post_recv(to, 1, 0, 100), 0);
	wr_make(&w, from, IBV_WR_SEND, 0, 8, 0);
	w.wr.wr.ud.ah = ah;
	w.wr.wr.ud.remote_qpn = to->qp->qp_num;
	w.wr.wr.ud.remote_qkey = QKEY;
	do_wr(from, &w, IBV_WC_SUCCESS);
	wc = wait_wc(to);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, GRH + 8);
	back = ibv_create_ah_from_wc(to->pd, &wc, (void *)to->buf, port);
	assert_non_null(back);
	assert_int_equal(post_recv(from, 2, 0, 100), 0);
	wr_make(&w, to, IBV_WR_SEND, 0, 8, 0);
	w.wr.wr.ud.ah = back;
	w.wr.wr.ud.remote_qpn = wc.src_qp;
	w.wr.wr.ud.remote_qkey = QKEY;
	do_wr(to, &w, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(from).byte_len, GRH + 8);
	assert_int_equal(ibv_destroy_ah(back), 0);
}

static struct ibv_ah *ah_to_gid(struct endpoint *e, uint8_t port, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = port,
		.grh = { .dgid = *to, .hop_limit = 1 },
	};

	return ibv_create_ah(e->pd, &attr);
}

static void datagram_end_open(struct endpoint *e, const struct endpoint *base, uint8_t port)
{
	endpoint_open_unreliable(e, base, IBV_QPT_UD, 0);
	to_init_at(e, port);
	to_ready(e, 0);
}

static void test_the_own_gid_of_every_port_is_reached_from_every_port(void **state)
{
	struct endpoint bases[DEVICES], ends[DEVICES * PORTS];
	union ibv_gid gid;
	struct ibv_ah *ah;
	int i, k;

	(void)state;
	for (i = 0; i < DEVICES; i++)
		end_open_on(&bases[i], ALL_ACCESS, i);
	for (i = 0; i < DEVICES * PORTS; i++)
		datagram_end_open(&ends[i], &bases[i / PORTS], 1 + i % PORTS);
	for (i = 0; i < DEVICES * PORTS; i++) {
		for (k = 0; k < DEVICES * PORTS; k++) {
			if (k == i)
				continue;
			assert_int_equal(ibv_query_gid(ends[k].ctx, 1 + k % PORTS, 0, &gid), 0);
			ah = ah_to_gid(&ends[i], 1 + i % PORTS, &gid);
			assert_they_talk(&ends[i], &ends[k], ah, 1 + k % PORTS);
			assert_int_equal(ibv_destroy_ah(ah), 0);
		}
	}
	for (i = 0; i < DEVICES * PORTS; i++)
		end_close(&ends[i]);
	for (i = 0; i < DEVICES; i++)
		end_close(&bases[i]);
}

static void test_a_gid_that_no_port_can_have_is_not_reached(void **state)
{
	struct endpoint base;
	union ibv_gid gid;

	(void)state;
	end_open(&base, ALL_ACCESS);
	assert_int_equal(ibv_query_gid(base.ctx, 1, 0, &gid), 0);
	gid.raw[14] += 8; /* softnic8 does not exist: there are at most eight devices */
	assert_null(ah_to_gid(&base, 1, &gid));
	assert_int_equal(errno, EHOSTUNREACH);
	gid.raw[14] -= 8;
	gid.raw[15] += 8;
	assert_null(ah_to_gid(&base, 1, &gid));
	gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, 10, 9, 8, 7 } };
	assert_null(ah_to_gid(&base, 1, &gid));
	memset(&gid, 0, sizeof(gid));
	assert_null(ah_to_gid(&base, 1, &gid));
	end_close(&base);
}

/* With the attributes required on the way to RTS, and those in @mask. */
static int move_by(struct endpoint *e, enum ibv_qp_state to, int mask, uint8_t port,
		   uint8_t path_port)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = port,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xfffffd,
		.ah_attr = { .port_num = path_port },
	};

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | mask);
}

static void test_a_path_leaves_by_the_port_of_its_queue_pair(void **state)
{
	enum {
		TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		TO_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			 IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	assert_int_equal(move_by(&e, IBV_QPS_INIT, TO_INIT, 1, 0), 0);
	assert_int_equal(move_by(&e, IBV_QPS_RTR, TO_RTR, 0, 2), EINVAL);
	assert_int_equal(move_by(&e, IBV_QPS_RTR, TO_RTR, 0, 1), 0);
	assert_int_equal(move_by(&e, IBV_QPS_RTS, TO_RTS, 0, 0), 0);
	assert_int_equal(move_by(&e, IBV_QPS_SQD, 0, 0, 0), 0);
	assert_int_equal(move_by(&e, IBV_QPS_SQD, IBV_QP_AV | IBV_QP_PORT, 1, 2), EINVAL);
	assert_int_equal(move_by(&e, IBV_QPS_SQD, IBV_QP_AV, 0, 2), 0);
	assert_int_equal(ibv_query_qp(e.qp, &attr, IBV_QP_AV | IBV_QP_PORT, &init), 0);
	assert_int_equal(attr.port_num, 2);
	assert_int_equal(attr.ah_attr.port_num, 2);
	end_close(&e);
}

static bool has_own_network;

static void address_gid(int n, union ibv_gid *gid)
{
	*gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, 10, 1, 0, n } };
}

/* 10.1.0.n, on the loopback interface. */
static void set_address(int n, bool there)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "lo:%d", n);
	if (there) {
		struct sockaddr_in *in = (void *)&r.ifr_addr;

		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(0x0a010000 + n);
		assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	} else {
		assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0); /* not up */
	}
	close(fd);
}

/* -1 if absent from the GID table. */
static int index_of_address(struct endpoint *e, int n)
{
	union ibv_gid gid, found;
	int i;

	address_gid(n, &gid);
	for (i = 0; !ibv_query_gid(e->ctx, 1, i, &found); i++)
		if (!memcmp(&gid, &found, sizeof(gid)))
			return i;
	return -1;
}

/* The GID belongs to the loopback interface, which has the address. */
static void assert_interface(struct endpoint *e, int index)
{
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_ex(e->ctx, 1, index, &entry, 0), 0);
	assert_int_equal(entry.ndev_ifindex, if_nametoindex("lo"));
}

static void assert_gid_change(struct endpoint *e)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(e->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_GID_CHANGE);
	assert_in_range(event.element.port_num, 1, PORTS);
	ibv_ack_async_event(&event);
}

static void test_addresses_that_come_later_are_reached_and_keep_their_index(void **state)
{
	int at[1 + ADDRESSES], i;
	struct endpoint base, a, b;
	union ibv_gid gid;
	struct ibv_ah *ah;

	(void)state;
	if (!has_own_network)
		skip();
	end_open(&base, ALL_ACCESS);
	datagram_end_open(&a, &base, 1);
	datagram_end_open(&b, &base, 1);
	for (i = 1; i <= ADDRESSES; i++) {
		assert_int_equal(index_of_address(&a, i), -1);
		set_address(i, true);
		address_gid(i, &gid);
		ah = ah_to_gid(&a, 1, &gid); /* before any other query */
		assert_they_talk(&a, &b, ah, 1);
		assert_int_equal(ibv_destroy_ah(ah), 0);
		at[i] = index_of_address(&a, i);
		assert_true(at[i] > 1);
		assert_interface(&a, at[i]);
	}
	assert_gid_change(&base);
	set_address(3, false);
	address_gid(3, &gid);
	assert_null(ah_to_gid(&a, 1, &gid));
	assert_int_equal(index_of_address(&a, 3), -1);
	for (i = 4; i <= ADDRESSES; i++)
		assert_int_equal(index_of_address(&a, i), at[i]);
	/* removing the first address of a subnet would remove all */
	for (i = ADDRESSES; i > 0; i--)
		if (i != 3)
			set_address(i, false);
	end_close(&a);
	end_close(&b);
	end_close(&base);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_each_device_has_its_own_name_guid_and_ports),
		cmocka_unit_test(test_no_two_ports_have_the_same_first_gid),
		cmocka_unit_test(test_the_gid_table_has_those_of_all_ports),
		cmocka_unit_test(test_every_device_reaches_every_other_in_another_process),
		cmocka_unit_test(test_objects_of_two_devices_do_not_mix),
		cmocka_unit_test(test_the_own_gid_of_every_port_is_reached_from_every_port),
		cmocka_unit_test(test_a_gid_that_no_port_can_have_is_not_reached),
		cmocka_unit_test(test_a_path_leaves_by_the_port_of_its_queue_pair),
		cmocka_unit_test(test_addresses_that_come_later_are_reached_and_keep_their_index),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

/* A namespace for the test, inherited by its puppets. Where not permitted, use the host's. */
static void enter_own_network(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0))) {
		fprintf(stderr, "# no network of its own: addresses stay as they are\n");
		return;
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	has_own_network = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 1)
		enter_own_network();
	setenv("WEIR_SOFTNIC", "devices=3,ports=2", 1);
	return test_main(argc, argv, tests);
}
