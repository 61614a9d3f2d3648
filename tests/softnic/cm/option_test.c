// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm option; devices: softnic */
/* Options, types of endpoints, and how an id ends: backlog, TIMEWAIT_EXIT, device removal. */
#include <infiniband/sa.h>

#include "cm_fixture.h"
#include "softnic/control/fault.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

static int set(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	return rdma_set_option(id, level, name, value, len) < 0 ? errno : 0;
}

static void each_option_wants_its_length(void **state)
{
	static const struct {
		int name;
		size_t len;
	} options[] = {
		{ RDMA_OPTION_ID_TOS, 1 },
		{ RDMA_OPTION_ID_REUSEADDR, 4 },
		{ RDMA_OPTION_ID_AFONLY, 4 },
		{ RDMA_OPTION_ID_ACK_TIMEOUT, 1 },
	};
	struct cm_ends *e = *state;
	int value = 1;
	size_t i;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int name = options[i].name;

		assert_int_equal(set(e->a, RDMA_OPTION_ID, name, &value, options[i].len), 0);
		assert_int_equal(set(e->a, RDMA_OPTION_ID, name, &value, 2), EINVAL);
		assert_int_equal(set(e->a, RDMA_OPTION_ID, name, NULL, options[i].len), EFAULT);
	}
}

static void unknown_options_are_refused(void **state)
{
	struct cm_ends *e = *state;
	int value = 1;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, 99, &value, 4), ENOSYS);
	assert_int_equal(set(e->a, RDMA_OPTION_IB, 99, &value, 4), ENOSYS);
	assert_int_equal(set(e->a, 99, RDMA_OPTION_ID_TOS, &value, 1), ENOSYS);
}

static void options_that_come_too_late_are_refused(void **state)
{
	struct cm_ends *e = *state;
	int yes = 1, no = 0;

	listen_on(e, "127.0.0.1", 0);
	assert_int_equal(set(e->listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, 4), EINVAL);
	assert_int_equal(set(e->listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, 4),
			 EINVAL);
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(e->a, address("127.0.0.1", 0)), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, 4), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, 4), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &no, 4), EINVAL);
}

static void a_timeout_is_for_reliable_connections_and_has_five_bits(void **state)
{
	struct cm_ends *e = *state;
	uint8_t timeout = 32;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
			 EINVAL);
	timeout = 31;
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	rdma_destroy_id(e->a);
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
			 EINVAL);
}

static void a_path_given_resolves_the_route(void **state)
{
	struct ibv_path_data path[2] = { 0 };
	struct cm_ends *e = *state;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	path[1].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	assert_int_equal(set(e->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof(path)),
			 EINVAL);
	assert_int_equal(rdma_resolve_addr(e->a, NULL, address("127.0.0.1", 1), 1000), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	assert_int_equal(set(e->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof(path) - 1),
			 EINVAL);
	assert_int_equal(set(e->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof(path[0])),
			 EINVAL);
	assert_int_equal(set(e->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof(path)), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	assert_int_equal(e->a->route.num_paths, 1);
	assert_int_equal(rdma_resolve_route(e->a, 1000), -1);
	assert_int_equal(errno, EINVAL);
}

static int try_endpoint(int ps, int type)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_addrinfo res = {
		.ai_flags = RAI_PASSIVE,
		.ai_port_space = ps,
		.ai_qp_type = type,
		.ai_src_addr = (struct sockaddr *)&any,
		.ai_src_len = sizeof(any),
	};
	struct rdma_cm_id *id;

	if (rdma_create_ep(&id, &res, NULL, NULL) < 0)
		return errno;
	rdma_destroy_ep(id);
	return 0;
}

static void endpoints_have_the_type_of_their_port_space(void **state)
{
	(void)state;
	assert_int_equal(try_endpoint(RDMA_PS_TCP, IBV_QPT_RC), 0);
	assert_int_equal(try_endpoint(RDMA_PS_TCP, 0), 0);
	assert_int_equal(try_endpoint(RDMA_PS_UDP, IBV_QPT_UD), 0);
	assert_int_equal(try_endpoint(RDMA_PS_IB, IBV_QPT_RC), 0);
	assert_int_equal(try_endpoint(RDMA_PS_IB, IBV_QPT_UC), 0);
	assert_int_equal(try_endpoint(RDMA_PS_TCP, IBV_QPT_UD), EINVAL);
	assert_int_equal(try_endpoint(RDMA_PS_UDP, IBV_QPT_RC), EINVAL);
	assert_int_equal(try_endpoint(RDMA_PS_TCP, IBV_QPT_XRC_SEND), EOPNOTSUPP);
	assert_int_equal(try_endpoint(RDMA_PS_TCP, IBV_QPT_XRC_RECV), EOPNOTSUPP);
	assert_int_equal(try_endpoint(0, IBV_QPT_RC), EINVAL);
}

static void requests_beyond_the_backlog_are_rejected(void **state)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct rdma_cm_id *a[3];
	struct cm_ends *e = *state;
	uint16_t port;
	int i;

	assert_int_equal(rdma_create_id(e->b_channel, &e->listener, e, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_listen(e->listener, 2), 0);
	port = ntohs(rdma_get_src_port(e->listener));
	for (i = 0; i < 3; i++) {
		resolve(e, "127.0.0.1", port);
		a[i] = e->a;
		assert_int_equal(rdma_connect(a[i], &param), 0);
	}
	e->a = NULL;
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_REJECTED), 28);
	for (i = 0; i < 2; i++) {
		struct rdma_cm_event *event =
			next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *b = event->id;

		rdma_ack_cm_event(event);
		rdma_destroy_id(b);
		assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_REJECTED), 28);
	}
	for (i = 0; i < 3; i++)
		rdma_destroy_id(a[i]);
}

static void the_time_after_a_connection_ends_once(void **state)
{
	struct cm_ends *e = *state;

	connect_ends(e);
	assert_int_equal(rdma_disconnect(e->a), 0);
	assert_int_equal(rdma_disconnect(e->a), 0);
	expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
	expect(e->b_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	assert_int_equal(expect(e->b_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	assert_int_equal(rdma_disconnect(e->b), 0);
	expect_silence(e->a_channel);
}

static void destroying_meets_the_end_of_that_time(void **state)
{
	struct cm_ends *e = *state;
	uint8_t timeout = 0;

	connect_ends(e);
	assert_int_equal(set(e->a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	assert_int_equal(rdma_disconnect(e->a), 0);
	rdma_destroy_qp(e->a);
	rdma_destroy_id(e->a);
	e->a = NULL;
	expect_silence(e->a_channel);
}

static void a_removed_device_is_told_to_each_of_its_ids(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_id *idle;

	connect_ends(e);
	assert_int_equal(rdma_create_id(e->a_channel, &idle, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(fault_set(OPTION_DEVICE_GONE_AFTER, 0), 0);
	expect(e->a_channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
	expect_silence(e->a_channel);
	expect(e->b_channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
	expect(e->b_channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
	expect_silence(e->b_channel);
	assert_int_equal(rdma_connect(e->a, NULL), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_resolve_addr(idle, NULL, address("127.0.0.1", 1), 1000), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ADDR_ERROR), -ENODEV);
	rdma_destroy_id(idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_option_wants_its_length),
		TEST(unknown_options_are_refused),
		TEST(options_that_come_too_late_are_refused),
		TEST(a_timeout_is_for_reliable_connections_and_has_five_bits),
		TEST(a_path_given_resolves_the_route),
		TEST(endpoints_have_the_type_of_their_port_space),
		TEST(requests_beyond_the_backlog_are_rejected),
		TEST(the_time_after_a_connection_ends_once),
		TEST(destroying_meets_the_end_of_that_time),
		/* the device does not come back */
		TEST(a_removed_device_is_told_to_each_of_its_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
