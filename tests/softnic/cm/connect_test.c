// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm connect; devices: softnic */
/* Connecting, accepting, rejecting, disconnecting: the events and the states of the QPs. */
#include "cm_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

static enum ibv_qp_state qp_state(struct rdma_cm_id *id, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(id->qp, attr,
				      IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_MAX_QP_RD_ATOMIC |
					      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_RNR_RETRY |
					      IBV_QP_RETRY_CNT,
				      &init),
			 0);
	return attr->qp_state;
}

static void request_from_a(struct cm_ends *e, struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	if (!param || !param->qp_num)
		create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, param), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(event->listen_id, e->listener);
	e->b = event->id;
	rdma_ack_cm_event(event);
}

static void both_qps_can_send_once_established(void **state)
{
	struct cm_ends *e = *state;
	struct ibv_qp_attr attr;

	connect_ends(e);
	assert_int_equal(qp_state(e->a, &attr), IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, e->b->qp->qp_num);
	assert_int_equal(qp_state(e->b, &attr), IBV_QPS_RTS);
	assert_int_equal(attr.dest_qp_num, e->a->qp->qp_num);
	assert_ptr_equal(e->b->context, e);
	assert_int_equal(rdma_get_dst_port(e->b), rdma_get_src_port(e->a));
	assert_int_equal(rdma_get_src_port(e->b), rdma_get_dst_port(e->a));
}

static void disconnecting_is_told_to_both_ends_once(void **state)
{
	struct cm_ends *e = *state;
	struct ibv_qp_attr attr;

	connect_ends(e);
	assert_int_equal(rdma_disconnect(e->a), 0);
	assert_int_equal(qp_state(e->a, &attr), IBV_QPS_ERR);
	expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
	expect(e->b_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(e->b), 0);
	assert_int_equal(qp_state(e->b, &attr), IBV_QPS_ERR);
	assert_int_equal(rdma_disconnect(e->a), 0);
	expect_silence(e->a_channel);
	expect_silence(e->b_channel);
}

static void destroying_an_id_disconnects_the_other(void **state)
{
	struct cm_ends *e = *state;

	connect_ends(e);
	rdma_destroy_qp(e->b);
	rdma_destroy_id(e->b);
	e->b = NULL;
	expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void private_data_and_depths_arrive(void **state)
{
	struct cm_ends *e = *state;
	uint8_t req[56], rep[196];
	struct rdma_conn_param a = {
		.private_data = req,
		.private_data_len = sizeof(req),
		.responder_resources = 4,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.flow_control = 1,
	};
	struct rdma_conn_param b = {
		.private_data = rep,
		.private_data_len = sizeof(rep),
		.responder_resources = 1,
		.initiator_depth = 3,
		.rnr_retry_count = 4,
	};
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;

	memset(req, 'q', sizeof(req));
	memset(rep, 'p', sizeof(rep));
	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, &a), 0);

	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.private_data_len, 56);
	assert_memory_equal(event->param.conn.private_data, req, 56);
	assert_int_equal(event->param.conn.qp_num, e->a->qp->qp_num);
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(event->param.conn.initiator_depth, 4);
	assert_int_equal(event->param.conn.retry_count, 5);
	assert_int_equal(event->param.conn.rnr_retry_count, 6);
	assert_int_equal(event->param.conn.flow_control, 1);
	e->b = event->id;
	rdma_ack_cm_event(event);
	create_qp(e->b);
	assert_int_equal(rdma_accept(e->b, &b), 0);

	event = next_event(e->a_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.conn.private_data_len, 196);
	assert_memory_equal(event->param.conn.private_data, rep, 196);
	assert_int_equal(event->param.conn.qp_num, e->b->qp->qp_num);
	rdma_ack_cm_event(event);

	qp_state(e->a, &attr);
	assert_int_equal(attr.max_dest_rd_atomic, 3);
	assert_int_equal(attr.max_rd_atomic, 1);
	assert_int_equal(attr.retry_cnt, 5);
	assert_int_equal(attr.rnr_retry, 4);
	qp_state(e->b, &attr);
	assert_int_equal(attr.max_dest_rd_atomic, 1);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.retry_cnt, 5);
	assert_int_equal(attr.rnr_retry, 6);
}

static void short_private_data_are_padded_with_zeros(void **state)
{
	static const uint8_t zeros[196];
	struct cm_ends *e = *state;
	struct rdma_conn_param param = { .private_data = "x", .private_data_len = 1 };
	struct rdma_cm_event *event;
	const uint8_t *data;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, &param), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	data = event->param.conn.private_data;
	assert_int_equal(event->param.conn.private_data_len, 56);
	assert_int_equal(data[0], 'x');
	assert_memory_equal(data + 1, zeros, 55);
	e->b = event->id;
	rdma_ack_cm_event(event);
}

static void too_much_private_data_are_refused(void **state)
{
	static const uint8_t data[255];
	struct cm_ends *e = *state;
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 57 };
	struct rdma_cm_event *event;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, &param), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	rdma_ack_cm_event(event);
	create_qp(e->b);
	param.private_data_len = 197;
	assert_int_equal(rdma_accept(e->b, &param), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_reject(e->b, data, 149), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_reject(e->b, data, 148), 0);
	expect(e->a_channel, RDMA_CM_EVENT_REJECTED);
}

static void more_reads_than_the_device_serves_are_refused(void **state)
{
	struct cm_ends *e = *state;
	struct ibv_device_attr device;
	struct rdma_conn_param param = { 0 };

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	create_qp(e->a);
	assert_int_equal(ibv_query_device(e->a->verbs, &device), 0);
	assert_true(device.max_qp_rd_atom < 254);
	param.responder_resources = device.max_qp_rd_atom + 1;
	assert_int_equal(rdma_connect(e->a, &param), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_rejection_carries_its_reason(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;

	request_from_a(e, NULL);
	assert_int_equal(rdma_reject(e->b, "no", 2), 0);
	event = next_event(e->a_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28);
	assert_int_equal(event->param.conn.private_data_len, 148);
	assert_memory_equal(event->param.conn.private_data, "no", 3);
	rdma_ack_cm_event(event);
	expect_silence(e->b_channel);
	assert_int_equal(rdma_connect(e->a, NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_rejection_for_ece_says_so(void **state)
{
	struct cm_ends *e = *state;

	request_from_a(e, NULL);
	assert_int_equal(rdma_reject_ece(e->b, NULL, 0), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_REJECTED), 35);
}

static void without_a_listener_the_call_is_rejected(void **state)
{
	struct cm_ends *e = *state;
	struct ibv_qp_attr attr;

	resolve(e, "127.0.0.1", 9);
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_REJECTED), 8);
	assert_int_equal(qp_state(e->a, &attr), IBV_QPS_ERR);
}

static void a_bound_port_that_does_not_listen_rejects(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(e->b_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, address("127.0.0.1", 0)), 0);
	resolve(e, "127.0.0.1", ntohs(rdma_get_src_port(id)));
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_REJECTED), 8);
	rdma_destroy_id(id);
}

static void a_listener_that_comes_a_moment_later_is_reached(void **state)
{
	struct cm_ends *e = *state;
	uint16_t port = listen_on(e, "127.0.0.1", 0);
	struct rdma_cm_event *event;

	resolve(e, "127.0.0.1", port);
	create_qp(e->a);
	rdma_destroy_id(e->listener);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	expect_silence(e->a_channel);
	listen_on(e, "127.0.0.1", port);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	rdma_ack_cm_event(event);
}

static void leaving_a_closed_listener_is_silent(void **state)
{
	struct cm_ends *e = *state;

	resolve(e, "127.0.0.1", 9);
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	rdma_destroy_qp(e->a);
	rdma_destroy_id(e->a);
	e->a = NULL;
	expect_silence(e->a_channel);
}

static void a_request_not_fetched_is_turned_away_with_its_listener(void **state)
{
	struct cm_ends *e = *state;
	struct pollfd pfd = { .fd = e->b_channel->fd, .events = POLLIN };

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
	rdma_destroy_id(e->listener);
	e->listener = NULL;
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_REJECTED), 28);
	expect_silence(e->b_channel);
}

static void accepting_a_peer_that_left_fails(void **state)
{
	struct cm_ends *e = *state;

	request_from_a(e, NULL);
	rdma_destroy_qp(e->a);
	rdma_destroy_id(e->a);
	e->a = NULL;
	create_qp(e->b);
	assert_int_equal(rdma_accept(e->b, NULL), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void the_caller_too_can_reject(void **state)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct cm_ends *e = *state;

	request_from_a(e, &param);
	assert_int_equal(rdma_accept(e->b, &param), 0);
	expect(e->a_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_reject(e->a, NULL, 0), 0);
	assert_int_equal(expect(e->b_channel, RDMA_CM_EVENT_REJECTED), 28);
}

static void without_a_qp_the_user_establishes(void **state)
{
	struct rdma_conn_param param = { .qp_num = 0x123456, .responder_resources = 1 };
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	request_from_a(e, &param);
	param.qp_num = 0x654321;
	assert_int_equal(rdma_accept(e->b, &param), 0);
	event = next_event(e->a_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event->param.conn.qp_num, 0x654321);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_init_qp_attr(e->a, &attr, &mask), 0);
	assert_int_equal(attr.dest_qp_num, 0x654321);
	assert_true(mask & IBV_QP_AV);
	expect_silence(e->b_channel);
	assert_int_equal(rdma_establish(e->a), 0);
	expect(e->b_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_disconnect(e->b), 0);
	expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void data_that_overtake_the_last_message_establish(void **state)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct cm_ends *e = *state;

	request_from_a(e, &param);
	assert_int_equal(rdma_accept(e->b, &param), 0);
	assert_int_equal(rdma_notify(e->b, IBV_EVENT_COMM_EST), 0);
	expect(e->b_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect(e->a_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_establish(e->a), 0);
	expect_silence(e->b_channel);
}

static void many_connections_live_side_by_side(void **state)
{
	enum { N = 64 };
	struct rdma_cm_id *a[N], *b[N];
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;
	uint16_t port = listen_on(e, "127.0.0.1", 0);
	int i;

	for (i = 0; i < N; i++) {
		resolve(e, "127.0.0.1", port);
		create_qp(e->a);
		a[i] = e->a;
		assert_int_equal(rdma_connect(a[i], NULL), 0);
	}
	for (i = 0; i < N; i++) {
		event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		b[i] = event->id;
		rdma_ack_cm_event(event);
	}
	for (i = 0; i < N; i++) {
		create_qp(b[i]);
		assert_int_equal(rdma_accept(b[i], NULL), 0);
	}
	for (i = 0; i < N; i++) {
		expect(e->a_channel, RDMA_CM_EVENT_ESTABLISHED);
		expect(e->b_channel, RDMA_CM_EVENT_ESTABLISHED);
	}
	for (i = 0; i < N; i++)
		assert_int_equal(rdma_disconnect(i % 2 ? a[i] : b[i]), 0);
	for (i = 0; i < N; i++) {
		expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
		expect(e->b_channel, RDMA_CM_EVENT_DISCONNECTED);
	}
	for (i = 0; i < N; i++) {
		rdma_destroy_qp(b[i]);
		rdma_destroy_id(b[i]);
		rdma_destroy_qp(a[i]);
		rdma_destroy_id(a[i]);
	}
	e->a = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_qps_can_send_once_established),
		TEST(disconnecting_is_told_to_both_ends_once),
		TEST(destroying_an_id_disconnects_the_other),
		TEST(private_data_and_depths_arrive),
		TEST(short_private_data_are_padded_with_zeros),
		TEST(too_much_private_data_are_refused),
		TEST(more_reads_than_the_device_serves_are_refused),
		TEST(a_rejection_carries_its_reason),
		TEST(a_rejection_for_ece_says_so),
		TEST(without_a_listener_the_call_is_rejected),
		TEST(a_bound_port_that_does_not_listen_rejects),
		TEST(a_listener_that_comes_a_moment_later_is_reached),
		TEST(leaving_a_closed_listener_is_silent),
		TEST(a_request_not_fetched_is_turned_away_with_its_listener),
		TEST(accepting_a_peer_that_left_fails),
		TEST(the_caller_too_can_reject),
		TEST(without_a_qp_the_user_establishes),
		TEST(data_that_overtake_the_last_message_establish),
		TEST(many_connections_live_side_by_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
