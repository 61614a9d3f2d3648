// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: verbs query; devices: softnic rxe; timeout: 120 */
/* The attributes of the device, its ports and its objects. */
#include <endian.h>
#include <net/if.h>

#include "tests/support/verbs_puppet.h"

enum { PORT = 1, PKEY = 0xffff };

static int setup(void **state)
{
	struct endpoint *e = calloc(1, sizeof(*e));

	*state = e;
	end_open(e, ALL_ACCESS);
	return 0;
}

static int teardown(void **state)
{
	end_close(*state);
	free(*state);
	return 0;
}

static void test_the_extended_query_says_the_same_and_more(void **state)
{
	struct ibv_query_device_ex_input unknown = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;
	struct endpoint *e = *state;

	assert_int_equal(ibv_query_device(e->ctx, &attr), 0);
	memset(&ex, 0xff, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(e->ctx, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_int_equal((uint32_t)ex.device_cap_flags_ex, attr.device_cap_flags);
	if (!soft_roce_differs("it may lack atomic writes, and have others that need 64 bits"))
		/* atomic writes, and flushes to global visibility */
		assert_int_equal(ex.device_cap_flags_ex >> 32, 1 << 8 | 1 << 6);
	assert_int_equal(ex.phys_port_cnt_ex, attr.phys_port_cnt);
	if (!soft_roce_differs("there is no clock"))
		assert_true(ex.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(ex.tso_caps.max_tso, 0);
	assert_int_equal(ex.tm_caps.max_num_tags, 0);
	assert_int_equal(ex.max_dm_size, 0);
	assert_int_equal(ibv_query_device_ex(e->ctx, &unknown, &ex), EINVAL);
}

static void test_a_port_has_the_default_partition_only(void **state)
{
	struct endpoint *e = *state;
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(e->ctx, PORT, 0, &pkey), 0);
	assert_int_equal(be16toh(pkey), PKEY);
	assert_int_equal(ibv_get_pkey_index(e->ctx, PORT, pkey), 0);
	assert_int_equal(ibv_query_pkey(e->ctx, PORT, 1, &pkey), -1);
	assert_int_equal(errno,
			 soft_roce_differs("beyond the table errno is ENOENT") ? ENOENT : EINVAL);
	assert_int_equal(ibv_query_pkey(e->ctx, PORT + 1, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(e->ctx, PORT, htobe16(PKEY - 1)), -1);
}

static void test_gids_are_those_of_roce_v2(void **state)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	struct endpoint *e = *state;
	char name[IF_NAMESIZE];
	union ibv_gid gid;
	int i, there = 0;

	assert_int_equal(ibv_query_port(e->ctx, PORT, &port), 0);
	for (i = 0; i < port.gid_tbl_len; i++) {
		assert_int_equal(ibv_query_gid(e->ctx, PORT, i, &gid), 0);
		if (!gid.global.subnet_prefix && !gid.global.interface_id) {
			assert_int_equal(ibv_query_gid_ex(e->ctx, PORT, i, &entry, 0), ENODATA);
			continue;
		}
		assert_int_equal(ibv_query_gid_ex(e->ctx, PORT, i, &entry, 0), 0);
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
		assert_memory_equal(&entry.gid, &gid, sizeof(gid));
		assert_non_null(if_indextoname(entry.ndev_ifindex, name));
		there++;
	}
	assert_true(there >= 2);
	assert_int_equal(ibv_query_gid_ex(e->ctx, PORT, i, &entry, 0),
			 soft_roce_differs("beyond the table it is EINVAL") ? EINVAL : ENODATA);
	assert_int_equal(ibv_query_gid(e->ctx, PORT, i, &gid), -1);
}

static void test_a_number_that_the_kernel_gives_is_not_made_up(void **state)
{
	struct endpoint *e = *state;

	skip_on_soft_roce("the kernel gives it one");
	assert_int_equal(ibv_get_device_index(e->ctx->device), -1);
}

static void test_a_fork_needs_no_preparation(void **state)
{
	(void)state;
	skip_on_soft_roce("it must be prepared before anything is registered");
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

static void test_the_order_of_bytes_within_a_message_is_not_promised(void **state)
{
	struct endpoint *e = *state;

	assert_int_equal(ibv_query_qp_data_in_order(e->qp, IBV_WR_RDMA_WRITE, 0), 0);
}

static void test_a_region_may_be_known_by_other_addresses(void **state)
{
	struct endpoint *e = *state;
	struct ibv_mr *mr = ibv_reg_mr_iova2(e->pd, e->buf, 4096, 1 << 20, ALL_ACCESS);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, e->buf);
	assert_int_equal(mr->length, 4096);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void test_a_shared_receive_queue_reports_its_size(void **state)
{
	struct endpoint *e = *state;
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 10, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = e->pd,
	};
	struct ibv_srq *srq;
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_recv_wr wr = { 0 }, *bad;
	int i;

	skip_on_soft_roce("its size is one less than a power of two");
	srq = ibv_create_srq_ex(e->ctx, &init);
	assert_non_null(srq);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 10);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(attr.srq_limit, 0);
	attr = (struct ibv_srq_attr){ .max_wr = 20, .srq_limit = 4 };
	for (i = 0; i < 5; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 10);
	assert_int_equal(attr.srq_limit, 4);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	init.srq_type = IBV_SRQT_XRC;
	assert_null(ibv_create_srq_ex(e->ctx, &init));
}

static void test_functions_of_the_headers(void **state)
{
	(void)state;
	assert_int_equal(ibv_inc_rkey(0x1234ff), 0x123400);
	assert_true(ibv_is_qpt_supported(1 << IBV_QPT_RC, IBV_QPT_RC));
	assert_true(ibv_flow_label_to_udp_sport(0) >= IB_ROCE_UDP_ENCAP_VALID_PORT_MIN);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_the_extended_query_says_the_same_and_more),
		cmocka_unit_test(test_a_port_has_the_default_partition_only),
		cmocka_unit_test(test_gids_are_those_of_roce_v2),
		cmocka_unit_test(test_a_number_that_the_kernel_gives_is_not_made_up),
		cmocka_unit_test(test_a_fork_needs_no_preparation),
		cmocka_unit_test(test_the_order_of_bytes_within_a_message_is_not_promised),
		cmocka_unit_test(test_a_region_may_be_known_by_other_addresses),
		cmocka_unit_test(test_a_shared_receive_queue_reports_its_size),
		cmocka_unit_test(test_functions_of_the_headers),
	};

	return cmocka_run_group_tests_name("softnic queries", all, setup, teardown);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
