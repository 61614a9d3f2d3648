// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <arpa/inet.h>
#include <stdbool.h>

#include "cm_fixture.h"

static bool comes(struct rdma_event_channel *channel, int timeout_ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1;
}

/* The event of an earlier connection may come at any time. */
static bool is_late(struct rdma_cm_event *event, enum rdma_cm_event_type expected)
{
	if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT || expected == event->event)
		return false;
	rdma_ack_cm_event(event);
	return true;
}

struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	do {
		if (!comes(channel, PATIENCE_MS))
			fail_msg("%s did not come", rdma_event_str(type));
		assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	} while (is_late(event, type));
	if (event->event != type)
		fail_msg("%s (%d) came, not %s", rdma_event_str(event->event), event->status,
			 rdma_event_str(type));
	return event;
}

int expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(channel, type);
	int status = event->status;

	rdma_ack_cm_event(event);
	return status;
}

void expect_silence(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	while (comes(channel, 50)) {
		assert_int_equal(rdma_get_cm_event(channel, &event), 0);
		if (!is_late(event, RDMA_CM_EVENT_DISCONNECTED))
			fail_msg("%s (%d) came", rdma_event_str(event->event), event->status);
	}
}

struct sockaddr *address(const char *text, uint16_t port)
{
	static union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;

	memset(&addr, 0, sizeof(addr));
	if (inet_pton(AF_INET, text, &addr.in.sin_addr) == 1) {
		addr.in.sin_family = AF_INET;
		addr.in.sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &addr.in6.sin6_addr), 1);
		addr.in6.sin6_family = AF_INET6;
		addr.in6.sin6_port = htons(port);
	}
	return &addr.sa;
}

uint16_t listen_on(struct cm_ends *e, const char *text, uint16_t port)
{
	assert_int_equal(rdma_create_id(e->b_channel, &e->listener, e, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(e->listener, address(text, port)), 0);
	assert_int_equal(rdma_listen(e->listener, 0), 0);
	return ntohs(rdma_get_src_port(e->listener));
}

void resolve(struct cm_ends *e, const char *text, uint16_t port)
{
	resolve_to(e, address(text, port));
}

void resolve_to(struct cm_ends *e, struct sockaddr *sa)
{
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, e, RDMA_PS_TCP), 0);
	resolve_id(e->a, sa);
}

void resolve_id(struct rdma_cm_id *id, struct sockaddr *sa)
{
	assert_int_equal(rdma_resolve_addr(id, NULL, sa, 1000), 0);
	assert_int_equal(expect(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(expect(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
}

void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

void connect_ends(struct cm_ends *e)
{
	struct rdma_cm_event *event;

	resolve(e, "127.0.0.1", listen_on(e, "127.0.0.1", 0));
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	rdma_ack_cm_event(event);
	create_qp(e->b);
	assert_int_equal(rdma_accept(e->b, NULL), 0);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	assert_int_equal(expect(e->b_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
}

int open_ends(void **state)
{
	struct cm_ends *e = calloc(1, sizeof(*e));

	e->a_channel = rdma_create_event_channel();
	e->b_channel = rdma_create_event_channel();
	*state = e;
	return e->a_channel && e->b_channel ? 0 : -1;
}

static void destroy(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

int close_ends(void **state)
{
	struct cm_ends *e = *state;

	destroy(e->a);
	destroy(e->b);
	destroy(e->listener);
	rdma_destroy_event_channel(e->a_channel);
	rdma_destroy_event_channel(e->b_channel);
	free(e);
	return 0;
}
