// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Several devices with several ports: each is told from the others, and all of them talk
 * to each other, as NICs on one switch do.
 */
#include "verbs_harness.h"

enum { DEVICES = 3, PORTS = 2 };

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
		assert_int_equal(ibv_query_gid(ctx, entries[i].port_num, entries[i].gid_index, &gid),
				 0);
		assert_memory_equal(&entries[i].gid, &gid, sizeof(gid));
	}
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void test_every_device_reaches_every_other_in_another_process(void **state)
{
	struct puppet p;
	struct end e;
	struct wr w;
	int i;

	(void)state;
	for (i = 0; i < DEVICES; i++) {
		end_open_on(&e, ALL_ACCESS, i);
		puppet_start(&p, &e, ALL_ACCESS, &plain);	/* on the first */
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

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_each_device_has_its_own_name_guid_and_ports),
		cmocka_unit_test(test_no_two_ports_have_the_same_first_gid),
		cmocka_unit_test(test_the_gid_table_has_those_of_all_ports),
		cmocka_unit_test(test_every_device_reaches_every_other_in_another_process),
		cmocka_unit_test(test_objects_of_two_devices_do_not_mix),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	setenv("WEIR_SOFTNIC", "devices=3,ports=2", 1);
	return test_main(argc, argv, tests);
}
