/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share policy; suites: share; devices: softnic rxe; timeout: 120 */
/* weir share: rights and limits from the configuration. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/apps/share/daemons.h"

/* Writes the configuration and waits until a tenant is treated by the new one. */
static void configure_at(const struct daemon *d, const char *text, int status)
{
	const struct weir_mux_options options = { .size = sizeof(options), .share = d->socket };
	struct weir_mux *mux;
	int rc;

	config_write(d, text);
	assert_int_equal(kill(d->pid, SIGHUP), 0);
	do {
		rc = weir_mux_open(&options, &mux, NULL);
		if (!rc)
			weir_mux_close(mux);
	} while (rc != status);
}

static void configure(const char *text, int status)
{
	configure_at(&near, text, status);
}

/* For the start of a test: connections of this user's former processes may still count. */
static struct weir_mux_conn *connect_when_they_have_gone(struct weir_mux *mux, uint32_t service)
{
	struct weir_error error = { "" };
	struct weir_mux_conn *conn = NULL;
	int rc, patience = PATIENCE_MS;

	while ((rc = weir_mux_connect(mux, far.address, service, NULL, &conn, &error)) == -EDQUOT &&
	       patience--)
		poll(NULL, 0, 1);
	if (rc)
		fail_msg("%s", error.text);
	return conn;
}

static void the_configuration_admits_and_limits_tenants(void **state)
{
	const struct weir_mux_conn_options urgent = { .size = sizeof(urgent), .class_nr = 0 };
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux_conn *conn, *second = NULL;
	struct weir_error error = { "" };
	struct weir_mux *mux;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default connections 1 class 1 rate 50M\n", 0);
	mux = tenant_of(&near);
	conn = connect_when_they_have_gone(mux, SERVICE);
	round_trip(conn, 1000003); /* delayed repeatedly, and complete */
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, NULL, &second, &error),
			 -EDQUOT);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, &urgent, &second, &error),
			 -EPERM);
	assert_non_null(strstr(error.text, "class 0"));
	assert_null(second);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
}

/* The rings of the connections take a bit over 8 MiB. */
static void regions_and_rings_count_against_the_memory_limit(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux_region *region, *second = NULL;
	struct weir_mux *mux, *other;
	struct weir_mux_conn *conn;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default memory 9M\n", 0);
	mux = tenant_of(&near);
	other = tenant_of(&near);
	conn = connect_when_they_have_gone(mux, SERVICE);
	assert_int_equal(weir_mux_region_open(mux, MIB / 2, &region), 0);
	assert_int_equal(weir_mux_region_open(mux, 3 * MIB / 4, &second), -EDQUOT);
	assert_int_equal(weir_mux_region_open(other, 3 * MIB / 4, &second), -EDQUOT);
	assert_int_equal(weir_mux_region_close(region), 0);
	assert_int_equal(weir_mux_region_open(other, 3 * MIB / 4, &region), 0);
	assert_int_equal(weir_mux_region_open(mux, MIB / 2, &second), -EDQUOT);
	round_trip(conn, 1000);
	assert_int_equal(weir_mux_region_close(region), 0);
	weir_mux_conn_close(conn);
	weir_mux_close(other);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
}

/* Another process of the same user gains nothing. */
static void connections_of_all_processes_of_a_user_count_together(void **state)
{
	struct weir_mux *mux = tenant_of(&near), *other = tenant_of(&near);
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux_conn *conn, *second = NULL;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default connections 1\n", 0);
	conn = connect_when_they_have_gone(mux, SERVICE);
	assert_int_equal(weir_mux_connect(other, far.address, SERVICE, NULL, &second, NULL),
			 -EDQUOT);
	assert_null(second);
	weir_mux_conn_close(conn);
	weir_mux_close(other);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
}

/* A tenant of @near that has closed a connection, and waits for a peer that does not read. */
static int shut(uint32_t service, int ready)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, service);
	static char data[100000];
	int i;

	/* More than the other end's ring holds, and less than both rings. */
	for (i = 0; i < 4; i++)
		if (weir_mux_conn_send(conn, data, sizeof(data), 0))
			return 1;
	weir_mux_conn_close(conn);
	if (write(ready, "", 1) != 1)
		return 1;
	weir_mux_close(mux);
	pause(); /* the killer was slow */
	return 1;
}

static void a_tenant_killed_while_waiting_for_a_reader_leaves_nothing(void **state)
{
	pid_t deaf = child_start(SERVICE + 1, "hold"), child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn;
	pid_t victim;

	(void)state;
	victim = child_start(SERVICE + 1, "shut");
	configure("default deny\n", -EPERM);
	configure("default connections 1\n", 0);
	child_end(victim, SIGKILL);
	conn = connect_when_they_have_gone(mux, SERVICE);
	round_trip(conn, 1000);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
	child_end(deaf, SIGKILL);
}

static void a_tenant_denied_by_a_new_configuration_creates_nothing_more(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE), *second = NULL;
	struct weir_mux_listener *listener = NULL;
	struct weir_error error = { "" };

	(void)state;
	configure("default deny\n", -EPERM);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, NULL, &second, &error),
			 -EPERM);
	assert_non_null(strstr(error.text, "configuration"));
	assert_int_equal(weir_mux_listen(mux, SERVICE, 1, &listener), -EPERM);
	round_trip(conn, 1000);
	configure("default connections 65535\n", 0);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* At the first rate the transfer would take hours. */
static void a_higher_rate_applies_to_queued_bytes(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	char *data = calloc(1, 200000);
	struct weir_mux *mux;
	struct weir_mux_conn *conn;
	size_t length;

	(void)state;
	assert_non_null(data);
	configure("default deny\n", -EPERM);
	configure("default rate 8\n", 0);
	mux = tenant_of(&near);
	conn = connect_to(mux, &far, SERVICE);
	assert_int_equal(weir_mux_conn_send(conn, data, 200000, 0), 0);
	configure("default rate 1G connections 65535\n", 0);
	assert_int_equal(weir_mux_conn_recv(conn, data, 200000, &length, 0), 0);
	assert_int_equal(length, 200000);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
	free(data);
}

/* A connection also counts for the tenant that offers the service, whichever end opens. */
static void listening_gives_no_access_to_a_class(void **state)
{
	const struct weir_mux_conn_options urgent = { .size = sizeof(urgent),
						      .class_nr = WEIR_MUX_CLASS_URGENT };
	struct weir_mux_conn *conn = NULL, *normal;
	struct weir_error error = { "" };
	struct weir_mux *mux;
	pid_t child;

	(void)state;
	configure_at(&far, "default deny\n", -EPERM);
	configure_at(&far, "default class 1\n", 0);
	child = child_start(SERVICE, "echo");
	mux = tenant_of(&near);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, &urgent, &conn, &error),
			 -EPERM);
	assert_non_null(strstr(error.text, "may not use class 0"));
	assert_null(conn);
	normal = connect_to(mux, &far, SERVICE);
	round_trip(normal, 1000);
	weir_mux_conn_close(normal);
	weir_mux_close(mux);
	child_end(child, 0);
	configure_at(&far, "default connections 65535\n", 0);
}

static void segments_are_as_long_as_the_class_line_says(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux_info before, after;
	static struct daemon third;
	struct weir_mux *mux;
	struct weir_mux_conn *conn;

	(void)state;
	daemon_start_with(&third, "third", "class 1 segment 4K\n");
	mux = tenant_of(&third);
	conn = connect_to(mux, &far, SERVICE);
	weir_mux_info(mux, &before, sizeof(before));
	round_trip(conn, 100000);
	weir_mux_info(mux, &after, sizeof(after));
	assert_true(after.work_requests - before.work_requests >= 100000 / 4096);
	weir_mux_conn_close(conn);
	child_end(child, 0); /* the child sees the end of an open connection */
	weir_mux_close(mux);
	daemon_stop(&third);
}

static void the_accepting_end_sets_its_own_weight(void **state)
{
	struct weir_mux *mux = tenant_of(&near), *server = tenant_of(&far);
	const struct weir_mux_conn_options options = { .size = sizeof(options),
						       .class_nr = WEIR_MUX_CLASS_NORMAL,
						       .weight = 2 };
	struct weir_mux_conn *conn, *accepted;
	struct weir_mux_listener *listener;

	(void)state;
	assert_int_equal(weir_mux_listen(server, SERVICE + 2, 1, &listener), 0);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE + 2, &options, &conn, NULL), 0);
	accepted = accept_from(listener);
	assert_int_equal(daemon_weighs(&near, getpid(), 0), 2);
	assert_int_equal(daemon_weighs(&far, getpid(), 0), 1);
	assert_int_equal(weir_mux_conn_set_weight(accepted, 3), 0);
	assert_int_equal(weir_mux_conn_set_weight(accepted, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_set_weight(accepted, 1025), -EINVAL);
	assert_int_equal(daemon_weighs(&far, getpid(), 0), 3);
	weir_mux_listener_close(listener);
	weir_mux_conn_close(accepted);
	weir_mux_conn_close(conn);
	weir_mux_close(server);
	weir_mux_close(mux);
}

/*
 * A tenant of @near that grants a region and withdraws the grant while a write of the peer is in
 * flight: the withdrawal waits for the write.
 */
static int withdraw(uint32_t service, int ready)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, service);
	struct weir_mux_region *region;
	volatile char *data;
	uint32_t handle;

	if (weir_mux_region_open(mux, MIB, &region) ||
	    weir_mux_conn_grant(conn, region, 0, MIB, WEIR_MUX_MAY_WRITE, &handle) ||
	    weir_mux_conn_send(conn, &handle, sizeof(handle), 0))
		return 1;
	data = weir_mux_region_data(region);
	while (!data[0])
		poll(NULL, 0, 1);
	if (write(ready, "", 1) != 1)
		return 1;
	weir_mux_conn_withdraw(conn, handle);
	pause(); /* the killer was slow */
	return 1;
}

/* A tenant of @far that writes there, at a rate that takes hours. */
static int write_slowly(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	struct weir_mux_conn *conn = accept_from(listener);
	struct weir_mux_region *region;
	uint32_t handle;
	size_t length;
	int rc;

	if (weir_mux_region_open(mux, MIB, &region) ||
	    weir_mux_conn_recv(conn, &handle, sizeof(handle), &length, 0))
		return 1;
	memset(weir_mux_region_data(region), 1, MIB);
	rc = weir_mux_conn_write(conn, handle, 0, region, 0, MIB);
	weir_mux_conn_close(conn);
	weir_mux_region_close(region);
	return rc != -ECONNRESET;
}

/*
 * The killed tenant's RPC thread waits in the withdrawal, up to the daemon's timeout of 10 s. It
 * notices the death within 20 ms.
 */
static void a_tenant_killed_while_withdrawing_goes_at_once(void **state)
{
	struct weir_mux_conn *conn;
	struct weir_mux *mux;
	pid_t writer, victim;
	uint64_t killed_ns;

	(void)state;
	configure_at(&far, "default deny\n", -EPERM);
	configure_at(&far, "default rate 8\n", 0);
	writer = child_start(SERVICE + 1, "write_slowly");
	victim = child_start(SERVICE + 1, "withdraw");
	configure("default deny\n", -EPERM);
	configure("default connections 1\n", 0);
	poll(NULL, 0, 100); /* the withdrawal has most likely begun */
	killed_ns = weir_now_ns();
	child_end(victim, SIGKILL);
	child_end(writer, 0);
	assert_in_range(weir_now_ns() - killed_ns, 0, 9 * WEIR_NS_PER_S);
	mux = tenant_of(&near);
	configure_at(&far, "default deny\n", -EPERM);
	configure_at(&far, "default connections 65535\n", 0);
	writer = child_start(SERVICE, "echo");
	conn = connect_when_they_have_gone(mux, SERVICE);
	round_trip(conn, 1000);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(writer, 0);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		ROLE_ECHO,
		ROLE_HOLD,
		{ "shut", NULL, shut },
		{ "withdraw", NULL, withdraw },
		{ "write_slowly", write_slowly, NULL },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_configuration_admits_and_limits_tenants),
		cmocka_unit_test(regions_and_rings_count_against_the_memory_limit),
		cmocka_unit_test(connections_of_all_processes_of_a_user_count_together),
		cmocka_unit_test(a_tenant_killed_while_waiting_for_a_reader_leaves_nothing),
		cmocka_unit_test(a_tenant_denied_by_a_new_configuration_creates_nothing_more),
		cmocka_unit_test(a_higher_rate_applies_to_queued_bytes),
		cmocka_unit_test(listening_gives_no_access_to_a_class),
		cmocka_unit_test(segments_are_as_long_as_the_class_line_says),
		cmocka_unit_test(the_accepting_end_sets_its_own_weight),
		cmocka_unit_test(a_tenant_killed_while_withdrawing_goes_at_once),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
