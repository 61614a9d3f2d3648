// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm hostile; devices: softnic */
/*
 * The other side sends any message in any order. Only its own connection may break. Random
 * numbers from one seed drive both sides.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cm_fixture.h"
#include "core/base/rng.h"
#include "softnic/cm/msg.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

enum { ROUNDS = 400, SAYINGS_MAX = 4 };

static uint64_t state_of_the_die;

static unsigned int dice(unsigned int sides)
{
	return (unsigned int)weir_rng_scale(weir_rng_next(&state_of_the_die), sides);
}

static socklen_t name(struct sockaddr_un *un, const char *space, uint16_t port)
{
	int len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
			   "weir-softnic-cm-%u-%s-127.0.0.1-%u", geteuid(), space, port);

	un->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

static int raw_socket(void)
{
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* A message of any kind, mostly well-formed. */
static void say(int fd)
{
	uint8_t buf[CM_MSG_BYTES_MAX] = { 0 };
	struct cm_msg msg = {
		.type = CM_MSG_REQ + dice(CM_MSG_SIDR_REP),
		.qp_num = dice(1 << 24),
		.responder_resources = (uint8_t)dice(256),
		.initiator_depth = (uint8_t)dice(256),
		.reason = (uint16_t)dice(3),
		.src.sa.sa_family = dice(2) ? AF_INET : AF_INET6,
		.dst.sa.sa_family = dice(2) ? AF_INET : AF_INET6,
	};
	size_t len;

	msg.private_len = (uint8_t)dice(cm_msg_private_max(msg.type) + 1);
	len = cm_msg_encode(&msg, buf);
	if (!dice(4))
		buf[dice(len)] ^= 1 << dice(8);
	if (!dice(8))
		len = 1 + dice(sizeof(buf));
	(void)!send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * The ids of the honest side. Requests create ids; the seed decides when they are destroyed, or
 * else the end of the test.
 */
static struct rdma_cm_id *ids[ROUNDS + 1];
static int nr_ids;

static void forget(struct rdma_cm_id *id)
{
	int i;

	for (i = 0; i < nr_ids && ids[i] != id; i++)
		;
	assert_true(i < nr_ids);
	ids[i] = ids[--nr_ids];
	rdma_destroy_id(id);
}

static void forget_all(void)
{
	while (nr_ids)
		forget(ids[0]);
}

static void respond(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .qp_num = 1, .responder_resources = (uint8_t)dice(2) };

	switch (dice(4)) {
	case 0:
		rdma_accept(id, &param);
		break;
	case 1:
		rdma_reject(id, "no", 2);
		break;
	case 2:
		rdma_accept(id, &param);
		rdma_disconnect(id);
		break;
	default:
		break;
	}
}

static void handle(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		ids[nr_ids++] = id;
		respond(id);
	} else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		if (dice(2))
			rdma_establish(id);
		else
			rdma_reject(id, NULL, 0);
	}
	if (dice(2))
		forget(id);
}

static void handle_what_came(struct rdma_event_channel *channel)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	while (poll(&pfd, 1, 0) == 1) {
		assert_int_equal(rdma_get_cm_event(channel, &event), 0);
		id = event->id;
		type = event->event;
		rdma_ack_cm_event(event);
		handle(id, type);
	}
}

static void talk(int fd, struct rdma_event_channel *channel)
{
	int i;

	for (i = dice(SAYINGS_MAX + 1); i > 0; i--) {
		say(fd);
		if (dice(2))
			usleep(dice(200));
		handle_what_came(channel);
	}
	close(fd);
	handle_what_came(channel);
}

/* Afterwards an honest caller is served. */
static void call_a_listener(struct cm_ends *e, enum rdma_port_space ps, const char *space)
{
	struct sockaddr_un un = { 0 };
	struct rdma_cm_event *event;
	struct rdma_conn_param param = { .qp_num = 1 };
	uint16_t port;
	socklen_t len;
	int i, fd;

	assert_int_equal(rdma_create_id(e->b_channel, &e->listener, e, ps), 0);
	assert_int_equal(rdma_bind_addr(e->listener, address("127.0.0.1", 0)), 0);
	assert_int_equal(rdma_listen(e->listener, 0), 0);
	port = ntohs(rdma_get_src_port(e->listener));
	len = name(&un, space, port);
	for (i = 0; i < ROUNDS; i++) {
		fd = raw_socket();
		assert_int_equal(connect(fd, (struct sockaddr *)&un, len), 0);
		talk(fd, e->b_channel);
	}

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, e, ps), 0);
	resolve_id(e->a, address("127.0.0.1", port));
	param.private_data = "hello";
	param.private_data_len = 6;
	assert_int_equal(rdma_connect(e->a, &param), 0);
	for (;;) {
		struct pollfd pfd = { .fd = e->b_channel->fd, .events = POLLIN };
		const char *data;
		int found;

		assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
		assert_int_equal(rdma_get_cm_event(e->b_channel, &event), 0);
		data = ps == RDMA_PS_UDP ? event->param.ud.private_data :
					   event->param.conn.private_data;
		found = event->event == RDMA_CM_EVENT_CONNECT_REQUEST && !strcmp(data, "hello");
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			ids[nr_ids++] = event->id;
		rdma_ack_cm_event(event);
		if (found)
			break;
	}
	forget_all();
}

static void a_caller_that_babbles_spoils_its_call_only(void **state)
{
	call_a_listener(*state, RDMA_PS_TCP, "tcp");
}

static void one_that_asks_nonsense_spoils_its_question_only(void **state)
{
	call_a_listener(*state, RDMA_PS_UDP, "udp");
}

static void call_a_babbler(struct cm_ends *e, enum rdma_port_space ps, const char *space)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct sockaddr_un un = { 0 };
	struct rdma_cm_id *id;
	uint16_t port;
	socklen_t len;
	int i, fd, listener = raw_socket();

	do {
		port = 10000 + dice(20000);
		len = name(&un, space, port);
	} while (bind(listener, (struct sockaddr *)&un, len) < 0);
	assert_int_equal(listen(listener, 1), 0);
	for (i = 0; i < ROUNDS; i++) {
		assert_int_equal(rdma_create_id(e->a_channel, &id, e, ps), 0);
		resolve_id(id, address("127.0.0.1", port));
		ids[nr_ids++] = id;
		assert_int_equal(rdma_connect(id, &param), 0);
		fd = accept(listener, NULL, NULL);
		assert_true(fd >= 0);
		talk(fd, e->a_channel);
		forget_all();
	}
	close(listener);
}

static void a_listener_that_babbles_spoils_the_call_only(void **state)
{
	call_a_babbler(*state, RDMA_PS_TCP, "tcp");
}

static void one_that_answers_nonsense_spoils_the_question_only(void **state)
{
	call_a_babbler(*state, RDMA_PS_UDP, "udp");
}

/*
 * More silent callers than allowed at a time: the oldest are dropped, the latest stay, and a
 * caller that speaks is heard.
 */
static void silent_callers_keep_no_other_caller_out(void **state)
{
	enum { CALLERS = 400, PATIENT = 200 };
	struct rdma_conn_param param = { .qp_num = 1 };
	struct cm_ends *e = *state;
	struct sockaddr_un un = { 0 };
	struct rdma_cm_event *event;
	int fds[CALLERS], i;
	uint16_t port;
	socklen_t len;
	char word;

	port = listen_on(e, "127.0.0.1", 0);
	len = name(&un, "tcp", port);
	for (i = 0; i < CALLERS; i++) {
		fds[i] = raw_socket();
		assert_int_equal(connect(fds[i], (struct sockaddr *)&un, len), 0);
	}
	assert_int_equal(recv(fds[0], &word, 1, 0), 0);
	resolve(e, "127.0.0.1", port);
	assert_int_equal(rdma_connect(e->a, &param), 0);
	event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	rdma_ack_cm_event(event);
	for (i = CALLERS - PATIENT; i < CALLERS; i++) {
		assert_int_equal(recv(fds[i], &word, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
	}
	for (i = 0; i < CALLERS; i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_caller_that_babbles_spoils_its_call_only),
		TEST(one_that_asks_nonsense_spoils_its_question_only),
		TEST(a_listener_that_babbles_spoils_the_call_only),
		TEST(one_that_answers_nonsense_spoils_the_question_only),
		TEST(silent_callers_keep_no_other_caller_out),
	};
	const char *seed = getenv("WEIR_TEST_SEED");

	state_of_the_die = seed ? strtoull(seed, NULL, 0) : 1;
	fprintf(stderr, "# WEIR_TEST_SEED=%llu\n", (unsigned long long)state_of_the_die);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
