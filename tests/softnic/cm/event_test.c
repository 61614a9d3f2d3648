// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm event; devices: softnic */
/* Channels and their events, acknowledgement, migration, and synchronous ids. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/time.h>

#include "cm_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

static bool is_readable(struct rdma_event_channel *channel)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void a_nonblocking_channel_says_when_it_is_empty(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;

	fcntl(e->a_channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(rdma_get_cm_event(e->a_channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_false(is_readable(e->a_channel));
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(e->a, NULL, address("127.0.0.1", 1), 1000), 0);
	assert_true(is_readable(e->a_channel));
	assert_int_equal(rdma_get_cm_event(e->a_channel, &event), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_false(is_readable(e->a_channel));
}

static void ignore(int signo)
{
	(void)signo;
}

static void a_signal_interrupts_the_wait(void **state)
{
	const struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct sigaction action = { .sa_handler = ignore };
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(rdma_get_cm_event(e->a_channel, &event), -1);
	assert_int_equal(errno, EINTR);
}

static void events_of_a_destroyed_id_are_withdrawn(void **state)
{
	struct cm_ends *e = *state;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(e->a, NULL, address("127.0.0.1", 1), 1000), 0);
	assert_true(is_readable(e->a_channel));
	rdma_destroy_id(e->a);
	e->a = NULL;
	assert_false(is_readable(e->a_channel));
}

struct destroyer {
	struct rdma_cm_id *id;
	atomic_bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;

	rdma_destroy_id(d->id);
	d->done = true;
	return NULL;
}

static void destroying_waits_for_acknowledgement(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;
	struct destroyer d = { 0 };
	pthread_t thread;

	assert_int_equal(rdma_create_id(e->a_channel, &d.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(d.id, NULL, address("127.0.0.1", 1), 1000), 0);
	event = next_event(e->a_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	pthread_create(&thread, NULL, destroy, &d);
	usleep(100000);
	assert_false(d.done);
	rdma_ack_cm_event(event);
	pthread_join(thread, NULL);
	assert_true(d.done);
}

static void events_move_with_their_id(void **state)
{
	struct cm_ends *e = *state;

	assert_int_equal(rdma_create_id(e->b_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(e->a, NULL, address("127.0.0.1", 1), 1000), 0);
	assert_int_equal(rdma_migrate_id(e->a, e->a_channel), 0);
	assert_false(is_readable(e->b_channel));
	assert_ptr_equal(e->a->channel, e->a_channel);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
}

static void a_connection_goes_on_after_it_moved(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_event_channel *other = rdma_create_event_channel();

	connect_ends(e);
	assert_int_equal(rdma_migrate_id(e->b, other), 0);
	assert_int_equal(rdma_disconnect(e->a), 0);
	expect(other, RDMA_CM_EVENT_DISCONNECTED);
	expect_silence(e->b_channel);
	rdma_destroy_qp(e->b);
	rdma_destroy_id(e->b);
	e->b = NULL;
	rdma_destroy_event_channel(other);
}

/*
 * A thread fetches events while other threads destroy ids. A destroyed id takes only its own
 * events along.
 */
static void *fetch(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct rdma_cm_event *event;
	bool last = false;

	while (!last && !rdma_get_cm_event(channel, &event)) {
		last = event->event == RDMA_CM_EVENT_ROUTE_RESOLVED;
		rdma_ack_cm_event(event);
	}
	return NULL;
}

static void withdrawing_races_with_fetching(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_id *id;
	pthread_t thread;
	int i;

	pthread_create(&thread, NULL, fetch, e->a_channel);
	for (i = 0; i < 500; i++) {
		assert_int_equal(rdma_create_id(e->a_channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, address("127.0.0.1", 1), 1000), 0);
		rdma_destroy_id(id);
	}
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(e->a, NULL, address("127.0.0.1", 1), 1000), 0);
	assert_int_equal(rdma_resolve_route(e->a, 1000), 0);
	pthread_join(thread, NULL);
	assert_false(is_readable(e->a_channel));
}

static struct ibv_qp_init_attr small_qp(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
}

static struct rdma_addrinfo *look_up(const char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo("127.0.0.1", port, &hints, &res), 0);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	return res;
}

static void *serve_one(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;

	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_non_null(id->qp);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_disconnect(id), 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void endpoints_need_no_channel(void **state)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_addrinfo *res = look_up("0", RAI_PASSIVE);
	struct rdma_cm_id *listener, *id;
	pthread_t thread;
	char port[8];

	(void)state;
	assert_int_equal(rdma_create_ep(&listener, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(listener, 0), 0);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(listener)));
	pthread_create(&thread, NULL, serve_one, listener);

	res = look_up(port, 0);
	attr = small_qp();
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_non_null(id->qp);
	assert_non_null(id->send_cq);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_disconnect(id), 0);
	rdma_destroy_ep(id);
	pthread_join(thread, NULL);
	rdma_destroy_ep(listener);
}

static void a_synchronous_call_fails_with_its_event(void **state)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_addrinfo *res = look_up("9", 0);
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_connect(id, NULL), -1);
	assert_int_equal(errno, ECONNREFUSED);
	rdma_destroy_ep(id);

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&loopback,
					   address("192.0.2.1", 1), 1000),
			 -1);
	assert_int_equal(errno, EHOSTUNREACH);
	rdma_destroy_id(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_nonblocking_channel_says_when_it_is_empty),
		TEST(a_signal_interrupts_the_wait),
		TEST(events_of_a_destroyed_id_are_withdrawn),
		TEST(destroying_waits_for_acknowledgement),
		TEST(events_move_with_their_id),
		TEST(a_connection_goes_on_after_it_moved),
		TEST(withdrawing_races_with_fetching),
		cmocka_unit_test(endpoints_need_no_channel),
		cmocka_unit_test(a_synchronous_call_fails_with_its_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
