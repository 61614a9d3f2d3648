/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share; suites: share; devices: softnic rxe; timeout: 120 */
/* weir share: messages between tenants of two daemons, in separate processes. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/apps/share/daemons.h"

#define LARGE_MIB 64 /* less on a slow device */

static void messages_of_any_size_pass_between_tenants_of_two_daemons(void **state)
{
	static const size_t sizes[] = { 0, 1, 4088, 65527, 65529, 262136, 1000003 };
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		round_trip(conn, sizes[i]);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* Many times the size of the rings. */
static void a_large_message_passes_as_well(void **state)
{
	pid_t child = child_start(SERVICE, "echo_large");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	size_t length = (size_t)fixture_rounds(LARGE_MIB) * MIB + 1, received = 0;
	char *data = malloc(length), *got = malloc(length);

	(void)state;
	assert_true(data && got);
	fill(data, length, 3);
	assert_int_equal(weir_mux_conn_send(conn, data, length, 0), 0);
	assert_int_equal(weir_mux_conn_recv(conn, got, length, &received, 0), 0);
	assert_int_equal(received, length);
	assert_memory_equal(got, data, length);
	free(data);
	free(got);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

static int echo_large(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	size_t size = (size_t)LARGE_MIB * MIB + 1;
	char *buffer = malloc(size);
	int rc = buffer ? echo(accept_from(listener), buffer, size) : 1;

	(void)mux;
	free(buffer);
	return rc;
}

static void a_killed_tenant_is_reported_and_disturbs_no_other(void **state)
{
	int i, rc, rounds = fixture_rounds(5);
	pid_t steady = child_start(SERVICE, "echo"), child;
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *other = connect_to(mux, &far, SERVICE), *conn;
	char data[1000] = "", got[10];
	size_t length;

	(void)state;
	for (i = 0; i < rounds; i++) {
		child = child_start(SERVICE + 1, "hold");
		conn = connect_to(mux, &far, SERVICE + 1);
		/* Both rings are full when the tenant dies, so data is in flight. */
		while (!weir_mux_conn_send(conn, data, sizeof(data), WEIR_MUX_CONN_DONTWAIT))
			;
		child_end(child, SIGKILL);
		assert_int_equal(weir_mux_conn_recv(conn, got, sizeof(got), &length, 0),
				 -ECONNRESET);
		while (!(rc = weir_mux_conn_send(conn, data, sizeof(data), 0)))
			;
		assert_int_equal(rc, -ECONNRESET);
		weir_mux_conn_close(conn);
		round_trip(other, 200000);
	}
	weir_mux_conn_close(other);
	weir_mux_close(mux);
	child_end(steady, 0);
}

static void a_slow_reader_holds_back_only_its_own_connection(void **state)
{
	pid_t deaf = child_start(SERVICE + 1, "hold"), child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *unread = connect_to(mux, &far, SERVICE + 1);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	char *data = calloc(1, 100000);
	int i;

	(void)state;
	assert_non_null(data);
	for (i = 0; i < 10; i++) {
		while (!weir_mux_conn_send(unread, data, 100000, WEIR_MUX_CONN_DONTWAIT))
			;
		round_trip(conn, 200000);
	}
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
	child_end(deaf, SIGKILL);
	free(data);
}

static void descriptors_turn_readable_when_a_call_can_succeed(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	struct pollfd fds[] = { { .fd = weir_mux_conn_fd(conn), .events = POLLIN },
				{ .fd = weir_mux_conn_room_fd(conn), .events = POLLIN } };
	int sent = 0, received = 0, n = 400;
	char data[4000] = "", got[4000];
	size_t length;

	(void)state;
	while (received < n) {
		while (sent < n &&
		       !weir_mux_conn_send(conn, data, sizeof(data), WEIR_MUX_CONN_DONTWAIT))
			sent++;
		while (!weir_mux_conn_recv(conn, got, sizeof(got), &length, WEIR_MUX_CONN_DONTWAIT))
			received++;
		if (received < n)
			assert_true(poll(fds, sent < n ? 2 : 1, PATIENCE_MS) > 0);
	}
	assert_int_equal(received, n);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/*
 * All connections are busy at once: the caller sends on each, in each class, before waiting for
 * the first answer. Messages are no longer than a ring, so that no deadlock can occur.
 */
#define EACH_MAX 128 /* connections: fewer on a slow device */
#define PROCESSES 16
#define TIMES 3
#define BUSY_MAX 16384

static size_t busy_length(int i, int time)
{
	return 1 + (size_t)(i * 7919 + time * 5003) % BUSY_MAX;
}

static int echo_many(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	const int each = fixture_rounds(EACH_MAX);
	struct weir_mux_conn *conns[EACH_MAX];
	static char buffer[BUSY_MAX];
	int i, k, rc = 0;
	size_t length;

	(void)mux;
	for (i = 0; i < each; i++)
		conns[i] = accept_from(listener);
	for (k = 0; k < TIMES * each && !rc; k++) {
		rc = weir_mux_conn_recv(conns[k % each], buffer, sizeof(buffer), &length, 0);
		if (!rc)
			rc = weir_mux_conn_send(conns[k % each], buffer, length, 0);
	}
	for (i = 0; i < each; i++)
		rc |= echo(conns[i], buffer, sizeof(buffer)); /* until the peer closes */
	return rc;
}

static void send_busy(struct weir_mux_conn *conn, int i, int time)
{
	static char data[BUSY_MAX];

	fill(data, busy_length(i, time), (unsigned int)i);
	assert_int_equal(weir_mux_conn_send(conn, data, busy_length(i, time), 0), 0);
}

static void recv_busy(struct weir_mux_conn *conn, int i, int time)
{
	static char data[BUSY_MAX], got[BUSY_MAX];
	size_t length;

	fill(data, busy_length(i, time), (unsigned int)i);
	assert_int_equal(weir_mux_conn_recv(conn, got, sizeof(got), &length, 0), 0);
	assert_int_equal(length, busy_length(i, time));
	assert_memory_equal(got, data, length);
}

static struct weir_mux_conn *connect_in_class(struct weir_mux *mux, uint32_t service,
					      unsigned int class)
{
	const struct weir_mux_conn_options options = { .size = sizeof(options), .class_nr = class };
	struct weir_error error = { "" };
	struct weir_mux_conn *conn = NULL;

	if (weir_mux_connect(mux, far.address, service, &options, &conn, &error))
		fail_msg("%s", error.text);
	return conn;
}

static int talk_many(uint32_t service, int ready)
{
	struct weir_mux *mux = tenant_of(&near);
	const int each = fixture_rounds(EACH_MAX);
	struct weir_mux_conn *conns[EACH_MAX];
	int i, time;

	(void)ready;
	for (i = 0; i < each; i++)
		conns[i] = connect_in_class(mux, service, (unsigned int)i % 2);
	for (time = 0; time < TIMES; time++) {
		for (i = 0; i < each; i++)
			send_busy(conns[i], i, time);
		for (i = 0; i < each; i++)
			recv_busy(conns[i], i, time);
	}
	for (i = 0; i < each; i++)
		weir_mux_conn_close(conns[i]);
	weir_mux_close(mux);
	return 0;
}

static void a_thousand_connections_of_sixteen_processes_share_a_queue_pair_a_class(void **state)
{
	pid_t servers[PROCESSES / 2], clients[PROCESSES / 2];
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_info info;
	uint32_t i;

	(void)state;
	for (i = 0; i < PROCESSES / 2; i++)
		servers[i] = child_start(100 + i, "echo_many");
	for (i = 0; i < PROCESSES / 2; i++)
		clients[i] = child_exec("talk_many", 100 + i, -1);
	for (i = 0; i < PROCESSES / 2; i++) {
		child_end(clients[i], 0);
		child_end(servers[i], 0);
	}
	weir_mux_info(mux, &info, sizeof(info));
	assert_int_equal(info.queue_pairs, 2); /* two classes */
	weir_mux_close(mux);
}

/* Reads the output of 'weir top' about near's tenants. */
static void top_read(char *text, size_t size)
{
	char command[512];
	size_t length;
	FILE *out;

	snprintf(command, sizeof(command),
		 "%s top --socket %s --once --json --flows --interval 0.01",
		 getenv("WEIR_TEST_WEIR"), near.socket);
	out = popen(command, "r");
	assert_non_null(out);
	length = fread(text, 1, size - 1, out);
	text[length] = '\0';
	assert_int_equal(pclose(out), 0);
}

static void weir_top_shows_bytes_sent_per_tenant(void **state)
{
	static const char *const said[] = {
		"\"process\": \"weir_share_test\"", "\"connections\": 1,",   "\"weight\": 1,",
		"\"flows\": [ { \"connection\": ",  "\"queued_bytes\": 0 }",
	};
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	char text[8192];
	size_t i;

	(void)state;
	round_trip(conn, 1000003);
	do { /* the counters lag a moment */
		top_read(text, sizeof(text));
	} while (!strstr(text, "\"bytes_sent\": 1000011, \"bytes_received\": 1000011, \"turns\""));
	for (i = 0; i < sizeof(said) / sizeof(*said); i++)
		if (!strstr(text, said[i]))
			fail_msg("%s is not in %s", said[i], text);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	do {
		top_read(text, sizeof(text));
	} while (strstr(text, "\"connections\": 1,"));
	child_end(child, 0);
}

struct share_reading {
	pthread_t thread;
	struct weir_mux_conn *conn;
	int rc;
};

static void *read_one(void *arg)
{
	struct share_reading *r = arg;
	size_t length;
	char got[10];

	r->rc = weir_mux_conn_recv(r->conn, got, sizeof(got), &length, 0);
	return NULL;
}

/* Ends the daemon and starts another. */
static void the_end_of_the_daemon_wakes_waiters(void **state)
{
	pid_t child = child_start(SERVICE, "hold");
	struct weir_mux *mux = tenant_of(&near);
	struct share_reading r = { .conn = connect_to(mux, &far, SERVICE) };
	struct weir_mux_conn *none = NULL;

	(void)state;
	assert_int_equal(pthread_create(&r.thread, NULL, read_one, &r), 0);
	daemon_stop(&near);
	assert_int_equal(pthread_join(r.thread, NULL), 0);
	assert_int_equal(r.rc, -ECONNRESET);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, NULL, &none, NULL),
			 -ECONNRESET);
	weir_mux_conn_close(r.conn);
	weir_mux_close(mux);
	child_end(child, SIGKILL);
	daemon_start(&near, "near");
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		ROLE_ECHO,
		ROLE_HOLD,
		{ "echo_many", echo_many, NULL },
		{ "echo_large", echo_large, NULL },
		{ "talk_many", NULL, talk_many },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_any_size_pass_between_tenants_of_two_daemons),
		cmocka_unit_test(a_large_message_passes_as_well),
		cmocka_unit_test(a_killed_tenant_is_reported_and_disturbs_no_other),
		cmocka_unit_test(a_slow_reader_holds_back_only_its_own_connection),
		cmocka_unit_test(descriptors_turn_readable_when_a_call_can_succeed),
		cmocka_unit_test(
			a_thousand_connections_of_sixteen_processes_share_a_queue_pair_a_class),
		cmocka_unit_test(weir_top_shows_bytes_sent_per_tenant),
		cmocka_unit_test(the_end_of_the_daemon_wakes_waiters),
	};
	const struct CMUnitTest anywhere[] = {
		cmocka_unit_test(messages_of_any_size_pass_between_tenants_of_two_daemons),
		cmocka_unit_test(a_large_message_passes_as_well),
		cmocka_unit_test(a_killed_tenant_is_reported_and_disturbs_no_other),
		cmocka_unit_test(
			a_thousand_connections_of_sixteen_processes_share_a_queue_pair_a_class),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	if (getenv("WEIR_DEVICE"))
		return cmocka_run_group_tests(anywhere, daemons_start, daemons_stop);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
