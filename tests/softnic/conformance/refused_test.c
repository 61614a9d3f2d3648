// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic refused; devices: softnic */
/*
 * The refusals of softnic, each with an errno. conformance.py reads the table of
 * docs/reference/conformance.md from these lines. A verb that starts to work loses the line here.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cmocka.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_srq *srq;

static int setup(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	srq = ibv_create_srq(pd, &shared);
	return qp && srq ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_srq(srq) || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) ||
	       ibv_dealloc_pd(pd) || ibv_close_device(context);
}

static struct ibv_qp *queue_pair(enum ibv_qp_type type, uint64_t operations)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 1, 1, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = operations,
	};

	return ibv_create_qp_ex(context, &init);
}

static struct ibv_cq_ex *queue_that_tells(uint64_t what)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 1, .wc_flags = what };

	return ibv_create_cq_ex(context, &init);
}

static void refused_with(const char *verb, int error, int expected)
{
	if (error != expected)
		fail_msg("%s: errno %d, not %d", verb, error, expected);
}

/* For verbs that return an object, and for verbs that return 0, an errno, or -1 with errno set. */
#define REFUSES_OBJECT(expected, verb, ...)           \
	do {                                          \
		errno = 0;                            \
		assert_null(verb(__VA_ARGS__));       \
		refused_with(#verb, errno, expected); \
	} while (0)
#define REFUSES(expected, verb, ...)                                               \
	do {                                                                       \
		long result_ = (long)verb(__VA_ARGS__);                            \
                                                                                   \
		refused_with(#verb, result_ < 0 ? errno : (int)result_, expected); \
	} while (0)

/* For verbs on an object that cannot be created: @made is the attempt. */
#define REFUSES_USE(expected, verb, made)             \
	do {                                          \
		(void)verb;                           \
		errno = 0;                            \
		assert_null(made);                    \
		refused_with(#verb, errno, expected); \
	} while (0)

/* A part that a working verb refuses. @result is 0 or an errno. */
#define REFUSES_PART(expected, verb, what, result) refused_with(#verb ", " what, result, expected)

/* A verb with a constant answer. */
#define SAYS_ONLY(expected, verb, why, ...) assert_int_equal(verb(__VA_ARGS__), expected)

static int error_of(const void *made)
{
	return made ? 0 : errno;
}

static void objects_of_other_processes_are_refused(void **state)
{
	(void)state;
	REFUSES_OBJECT(EOPNOTSUPP, ibv_import_device, 0);
	REFUSES_OBJECT(EOPNOTSUPP, ibv_import_pd, context, 0);
	REFUSES_USE(EOPNOTSUPP, ibv_unimport_pd, ibv_import_pd(context, 0));
	REFUSES_OBJECT(EOPNOTSUPP, ibv_import_mr, pd, 0);
	REFUSES_USE(EOPNOTSUPP, ibv_unimport_mr, ibv_import_mr(pd, 0));
	REFUSES_OBJECT(EOPNOTSUPP, ibv_import_dm, context, 0);
	REFUSES_USE(EOPNOTSUPP, ibv_unimport_dm, ibv_import_dm(context, 0));
}

static void memory_that_is_not_the_programs(void **state)
{
	struct ibv_alloc_dm_attr dm = { .length = 4096 };

	(void)state;
	REFUSES_OBJECT(EOPNOTSUPP, ibv_alloc_dm, context, &dm);
	REFUSES_USE(EOPNOTSUPP, ibv_free_dm, ibv_alloc_dm(context, &dm));
	REFUSES_USE(EOPNOTSUPP, ibv_reg_dm_mr, ibv_alloc_dm(context, &dm));
	REFUSES_USE(EOPNOTSUPP, ibv_memcpy_to_dm, ibv_alloc_dm(context, &dm));
	REFUSES_USE(EOPNOTSUPP, ibv_memcpy_from_dm, ibv_alloc_dm(context, &dm));
}

static void raw_packets_and_flows(void **state)
{
	struct ibv_flow_attr flow = { 0 };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq
	};
	struct ibv_rwq_ind_table_init_attr table = { 0 };
	struct ibv_flow_action_esp_attr esp = { 0 };

	(void)state;
	REFUSES_OBJECT(EOPNOTSUPP, ibv_create_flow, qp, &flow);
	REFUSES_USE(EOPNOTSUPP, ibv_destroy_flow, ibv_create_flow(qp, &flow));
	REFUSES_OBJECT(EOPNOTSUPP, ibv_create_wq, context, &wq);
	REFUSES_USE(EOPNOTSUPP, ibv_modify_wq, ibv_create_wq(context, &wq));
	REFUSES_USE(EOPNOTSUPP, ibv_destroy_wq, ibv_create_wq(context, &wq));
	REFUSES_USE(EOPNOTSUPP, ibv_post_wq_recv, ibv_create_wq(context, &wq));
	REFUSES_OBJECT(EOPNOTSUPP, ibv_create_rwq_ind_table, context, &table);
	REFUSES_USE(EOPNOTSUPP, ibv_destroy_rwq_ind_table,
		    ibv_create_rwq_ind_table(context, &table));
	REFUSES_OBJECT(EOPNOTSUPP, ibv_create_flow_action_esp, context, &esp);
	REFUSES_USE(EOPNOTSUPP, ibv_modify_flow_action_esp,
		    ibv_create_flow_action_esp(context, &esp));
	REFUSES_USE(EOPNOTSUPP, ibv_destroy_flow_action, ibv_create_flow_action_esp(context, &esp));
	REFUSES_USE(EOPNOTSUPP, ibv_wc_read_cvlan, queue_that_tells(IBV_WC_EX_WITH_CVLAN));
	REFUSES_USE(EOPNOTSUPP, ibv_wc_read_flow_tag, queue_that_tells(IBV_WC_EX_WITH_FLOW_TAG));
}

static void tags_that_the_device_matches(void **state)
{
	struct ibv_ops_wr ops = { 0 }, *bad;

	(void)state;
	REFUSES(EOPNOTSUPP, ibv_post_srq_ops, srq, &ops, &bad);
	REFUSES_USE(EOPNOTSUPP, ibv_wc_read_tm_info, queue_that_tells(IBV_WC_EX_WITH_TM_INFO));
}

static void operations_of_later_devices(void **state)
{
	(void)state;
	REFUSES_USE(EOPNOTSUPP, ibv_wr_send_tso, queue_pair(IBV_QPT_RC, IBV_QP_EX_WITH_TSO));
}

static void options_of_a_nic_are_refused(void **state)
{
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_qp_rate_limit_attr rate = { 0 };
	struct ibv_modify_cq_attr moderation = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_ah_attr address = { .is_global = 1, .port_num = 1 };
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vlan;

	(void)state;
	REFUSES_OBJECT(EOPNOTSUPP, ibv_create_counters, context, &counters);
	REFUSES_USE(EOPNOTSUPP, ibv_attach_counters_point_flow,
		    ibv_create_counters(context, &counters));
	REFUSES_USE(EOPNOTSUPP, ibv_read_counters, ibv_create_counters(context, &counters));
	REFUSES_USE(EOPNOTSUPP, ibv_destroy_counters, ibv_create_counters(context, &counters));
	REFUSES(EOPNOTSUPP, ibv_modify_cq, cq, &moderation);
	REFUSES(EOPNOTSUPP, ibv_resolve_eth_l2_from_gid, context, &address, mac, &vlan);
	REFUSES(EOPNOTSUPP, ibv_modify_qp_rate_limit, qp, &rate);
}

static void constant_answers(void **state)
{
	(void)state;
	SAYS_ONLY(-1, ibv_get_device_index, "the kernel does not know the device", context->device);
	SAYS_ONLY(0, ibv_query_qp_data_in_order, "no order of bytes is promised", qp,
		  IBV_WR_RDMA_WRITE, 0);
}

static int error_of_post(enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *other = queue_pair(type, 0);
	struct ibv_send_wr wr = { .opcode = op }, *bad;
	int rc;

	assert_non_null(other);
	assert_int_equal(ibv_modify_qp(other, &attr, IBV_QP_STATE), 0);
	rc = ibv_post_send(other, &wr, &bad);
	assert_int_equal(ibv_destroy_qp(other), 0);
	return rc;
}

static int error_of_shared_queue(enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = type,
		.pd = pd,
	};

	return error_of(ibv_create_srq_ex(context, &init));
}

static int error_of_open_qp(uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return error_of(ibv_open_qp(context, &attr));
}

static int error_of_modify(int mask)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS |
				     mask);
}

static int error_of_endpoint(enum ibv_qp_type type)
{
	struct rdma_addrinfo info = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = type };
	struct rdma_cm_id *id;

	return rdma_create_ep(&id, &info, NULL, NULL) ? errno : 0;
}

static void parts_of_verbs_that_work(void **state)
{
	struct ibv_srq_attr larger = { .max_wr = 64 };
	uint32_t number;

	(void)state;
	REFUSES_PART(EOPNOTSUPP, ibv_create_qp, "queue pairs for raw packets",
		     error_of(queue_pair(IBV_QPT_RAW_PACKET, 0)));
	REFUSES_PART(EOPNOTSUPP, ibv_get_srq_num, "SRQs that are not of XRC",
		     ibv_get_srq_num(srq, &number));
	REFUSES_PART(EOPNOTSUPP, ibv_open_qp, "a queue pair of another process",
		     error_of_open_qp(qp->qp_num ^ 1u << 20));
	REFUSES_PART(EOPNOTSUPP, ibv_create_srq_ex, "SRQs that match tags",
		     error_of_shared_queue(IBV_SRQT_TM));
	REFUSES_PART(ENOMEM, ibv_modify_srq, "more than four times the first size",
		     ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR));
	REFUSES_PART(EINVAL, ibv_modify_qp, "another path to migrate to (`IBV_QP_ALT_PATH`)",
		     error_of_modify(IBV_QP_ALT_PATH));
	REFUSES_PART(EINVAL, ibv_modify_qp, "migration (`IBV_QP_PATH_MIG_STATE`)",
		     error_of_modify(IBV_QP_PATH_MIG_STATE));
	REFUSES_PART(EINVAL, ibv_modify_qp, "a rate (`IBV_QP_RATE_LIMIT`)",
		     error_of_modify(IBV_QP_RATE_LIMIT));
	REFUSES_PART(EINVAL, ibv_post_send, "reads of UC",
		     error_of_post(IBV_QPT_UC, IBV_WR_RDMA_READ));
	REFUSES_PART(EINVAL, ibv_post_send, "atomics of UC",
		     error_of_post(IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD));
	REFUSES_PART(EINVAL, ibv_post_send, "sends of UC that invalidate",
		     error_of_post(IBV_QPT_UC, IBV_WR_SEND_WITH_INV));
	REFUSES_PART(EINVAL, ibv_post_send, "writes of UD",
		     error_of_post(IBV_QPT_UD, IBV_WR_RDMA_WRITE));
	REFUSES_PART(EOPNOTSUPP, rdma_create_ep, "endpoints of XRC",
		     error_of_endpoint(IBV_QPT_XRC_SEND));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_of_other_processes_are_refused),
		cmocka_unit_test(memory_that_is_not_the_programs),
		cmocka_unit_test(raw_packets_and_flows),
		cmocka_unit_test(tags_that_the_device_matches),
		cmocka_unit_test(operations_of_later_devices),
		cmocka_unit_test(options_of_a_nic_are_refused),
		cmocka_unit_test(constant_answers),
		cmocka_unit_test(parts_of_verbs_that_work),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
