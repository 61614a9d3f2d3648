// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm datagram; devices: softnic */
/*
 * Ids without connections: the address to send to, and multicast groups. Sending itself is
 * tested elsewhere.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "cm_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

enum { QP_NUM = 0x123456 };

static uint16_t listen_udp(struct cm_ends *e, const char *text)
{
	assert_int_equal(rdma_create_id(e->b_channel, &e->listener, e, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(e->listener, address(text, 0)), 0);
	assert_int_equal(rdma_listen(e->listener, 0), 0);
	return ntohs(rdma_get_src_port(e->listener));
}

static void resolve_udp(struct cm_ends *e, const char *text, uint16_t port)
{
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, e, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(e->a, NULL, address(text, port), 1000), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
}

static void resolve_route(struct cm_ends *e)
{
	assert_int_equal(rdma_resolve_route(e->a, 1000), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
}

/* Return: the event of the request; e->b is its id. */
static struct rdma_cm_event *ask(struct cm_ends *e, const char *text, struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	resolve_udp(e, text, listen_udp(e, text));
	resolve_route(e);
	assert_int_equal(rdma_connect(e->a, param), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	return event;
}

static void the_answer_says_whom_to_send_to(void **state)
{
	struct rdma_conn_param question = { .private_data = "who?", .private_data_len = 5 };
	struct rdma_conn_param answer = { .private_data = "me",
					  .private_data_len = 3,
					  .qp_num = QP_NUM };
	struct cm_ends *e = *state;
	struct rdma_cm_event *event = ask(e, "127.0.0.1", &question);
	struct ibv_ah_attr *ah = &event->param.ud.ah_attr;

	assert_ptr_equal(event->listen_id, e->listener);
	assert_int_equal(event->param.ud.private_data_len, 180);
	assert_string_equal(event->param.ud.private_data, "who?");
	assert_int_equal(e->b->qp_type, IBV_QPT_UD);
	assert_int_equal(e->b->ps, RDMA_PS_UDP);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_accept(e->b, &answer), 0);

	event = next_event(e->a_channel, RDMA_CM_EVENT_ESTABLISHED);
	ah = &event->param.ud.ah_attr;
	assert_int_equal(event->status, 0);
	assert_int_equal(event->param.ud.qp_num, QP_NUM);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_string_equal(event->param.ud.private_data, "me");
	assert_int_equal(ah->is_global, 1);
	assert_int_equal(ah->port_num, e->a->port_num);
	assert_memory_equal(&ah->grh.dgid, &e->a->route.addr.addr.ibaddr.dgid, 16);
	rdma_ack_cm_event(event);
}

static void an_answer_is_the_end_of_it(void **state)
{
	struct rdma_conn_param param = { .qp_num = QP_NUM };
	struct cm_ends *e = *state;

	rdma_ack_cm_event(ask(e, "::1", NULL));
	assert_int_equal(rdma_accept(e->b, &param), 0);
	expect(e->a_channel, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_id(e->b);
	e->b = NULL;
	expect_silence(e->a_channel);
	expect_silence(e->b_channel);
	assert_int_equal(rdma_disconnect(e->a), 0);
	expect_silence(e->a_channel);
	assert_int_equal(rdma_connect(e->a, &param), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_rejection_is_unreachable_with_the_status_of_the_answer(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;

	rdma_ack_cm_event(ask(e, "127.0.0.1", NULL));
	assert_int_equal(rdma_reject(e->b, "no", 3), 0);
	event = next_event(e->a_channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(event->status, 2);
	assert_string_equal(event->param.ud.private_data, "no");
	rdma_ack_cm_event(event);
}

static void a_request_destroyed_unanswered_is_rejected(void **state)
{
	struct cm_ends *e = *state;

	rdma_ack_cm_event(ask(e, "127.0.0.1", NULL));
	rdma_destroy_id(e->b);
	e->b = NULL;
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_UNREACHABLE), 2);
}

static void without_a_listener_it_is_unsupported(void **state)
{
	struct cm_ends *e = *state;
	uint16_t port;

	assert_int_equal(rdma_create_id(e->b_channel, &e->listener, e, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(e->listener, address("127.0.0.1", 0)), 0);
	assert_int_equal(rdma_listen(e->listener, 0), 0);
	port = ntohs(rdma_get_src_port(e->listener));
	resolve_udp(e, "127.0.0.1", port);
	resolve_route(e);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_UNREACHABLE), 1);
	expect_silence(e->b_channel);
}

static void too_much_private_data_are_refused(void **state)
{
	static const char data[256];
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 181 };
	struct cm_ends *e = *state;
	uint16_t port = listen_udp(e, "127.0.0.1");
	struct rdma_cm_event *event;

	resolve_udp(e, "127.0.0.1", port);
	resolve_route(e);
	assert_int_equal(rdma_connect(e->a, &param), -1);
	assert_int_equal(errno, EINVAL);
	param.private_data_len = 180;
	assert_int_equal(rdma_connect(e->a, &param), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	rdma_ack_cm_event(event);
	param.private_data_len = 137;
	assert_int_equal(rdma_reject(e->b, data, 137), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_accept(e->b, &param), -1);
	assert_int_equal(errno, EINVAL);
	param.private_data_len = 136;
	assert_int_equal(rdma_accept(e->b, &param), 0);
	expect(e->a_channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void its_qp_needs_a_key_and_no_connection(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct cm_ends *e = *state;
	int mask;

	resolve_udp(e, "127.0.0.1", 1);
	assert_int_equal(rdma_init_qp_attr(e->a, &attr, &mask), 0);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
}

static void a_qp_of_another_type_is_refused(void **state)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct cm_ends *e = *state;

	resolve_udp(e, "127.0.0.1", 1);
	assert_int_equal(rdma_create_qp(e->a, NULL, &attr), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_synchronous_id_asks_and_waits(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_UDP };
	struct cm_ends *e = *state;
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	char port[8];

	snprintf(port, sizeof(port), "%u", listen_udp(e, "127.0.0.1"));
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", port, &hints, &res), 0);
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(id->qp_type, IBV_QPT_UD);
	rdma_destroy_id(e->listener);
	e->listener = NULL;
	assert_int_equal(rdma_connect(id, NULL), -1);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_UNREACHABLE);
	rdma_destroy_ep(id);
}

static struct rdma_cm_event *join(struct cm_ends *e, const char *group, void *context)
{
	resolve_udp(e, group, 0);
	assert_int_equal(rdma_join_multicast(e->a, address(group, 0), context), 0);
	return next_event(e->a_channel, RDMA_CM_EVENT_MULTICAST_JOIN);
}

static void joining_says_how_to_send_to_the_group(void **state)
{
	static const struct {
		const char *text, *gid;
	} groups[] = {
		{ "239.1.2.3", "::ffff:239.1.2.3" },
		{ "::ffff:239.1.2.3", "::ffff:239.1.2.3" },
		{ "ff0e::77", "ff0e::77" },
	};
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;
	struct in6_addr gid;
	size_t i;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		event = join(e, groups[i].text, &gid);
		assert_int_equal(inet_pton(AF_INET6, groups[i].gid, &gid), 1);
		assert_int_equal(event->status, 0);
		assert_ptr_equal(event->param.ud.private_data, &gid);
		assert_int_equal(event->param.ud.qp_num, 0xffffff);
		assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
		assert_int_equal(event->param.ud.ah_attr.is_global, 1);
		assert_memory_equal(&event->param.ud.ah_attr.grh.dgid, &gid, sizeof(gid));
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_leave_multicast(e->a, address(groups[i].text, 0)), 0);
		rdma_destroy_id(e->a);
		e->a = NULL;
	}
}

static void leaving_takes_back_a_join_not_fetched(void **state)
{
	struct cm_ends *e = *state;

	resolve_udp(e, "239.1.2.3", 0);
	assert_int_equal(rdma_join_multicast(e->a, address("239.1.2.3", 0), NULL), 0);
	assert_int_equal(rdma_leave_multicast(e->a, address("239.1.2.3", 0)), 0);
	expect_silence(e->a_channel);
	assert_int_equal(rdma_leave_multicast(e->a, address("239.1.2.3", 0)), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
}

static void joining_with_flags_checks_them(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_join_mc_attr_ex attr = { .addr = address("239.1.2.3", 0) };

	resolve_udp(e, "239.1.2.3", 0);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.addr = address("239.1.2.3", 0);
	attr.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	assert_int_equal(rdma_join_multicast_ex(e->a, &attr, NULL), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_MULTICAST_JOIN), 0);
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	assert_int_equal(rdma_join_multicast_ex(e->a, &attr, NULL), -1);
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	assert_int_equal(rdma_join_multicast_ex(e->a, &attr, NULL), -1);
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	assert_int_equal(rdma_join_multicast_ex(e->a, &attr, NULL), -1);
	assert_int_equal(errno, ENOTSUP);
}

static void joining_wants_a_group_and_a_datagram_id_on_the_device(void **state)
{
	struct cm_ends *e = *state;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, e, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_join_multicast(e->a, address("239.1.2.3", 0), NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_bind_addr(e->a, address("127.0.0.1", 0)), 0);
	assert_int_equal(rdma_join_multicast(e->a, address("127.0.0.1", 0), NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_join_multicast(e->a, address("239.1.2.3", 0), NULL), 0);
	rdma_destroy_id(e->a);
	resolve(e, "127.0.0.1", 1);
	assert_int_equal(rdma_join_multicast(e->a, address("239.1.2.3", 0), NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_synchronous_id_joins_and_leaves(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, address("239.1.2.3", 0), 1000), 0);
	assert_int_equal(rdma_join_multicast(id, address("239.1.2.3", 0), NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(rdma_leave_multicast(id, address("239.1.2.3", 0)), 0);
	rdma_destroy_id(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_answer_says_whom_to_send_to),
		TEST(an_answer_is_the_end_of_it),
		TEST(a_rejection_is_unreachable_with_the_status_of_the_answer),
		TEST(a_request_destroyed_unanswered_is_rejected),
		TEST(without_a_listener_it_is_unsupported),
		TEST(too_much_private_data_are_refused),
		TEST(its_qp_needs_a_key_and_no_connection),
		TEST(a_qp_of_another_type_is_refused),
		TEST(a_synchronous_id_asks_and_waits),
		TEST(joining_says_how_to_send_to_the_group),
		TEST(leaving_takes_back_a_join_not_fetched),
		TEST(joining_with_flags_checks_them),
		TEST(joining_wants_a_group_and_a_datagram_id_on_the_device),
		TEST(a_synchronous_id_joins_and_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
