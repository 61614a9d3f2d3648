/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir share: who may do what, and how much, as its configuration says. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/share/daemons.h"

/* Waits until the daemon has read it: until a tenant is treated so. */
static void configure(const char *text, int status)
{
	const struct weir_mux_options options = { .share = near.socket };
	struct weir_mux *mux;
	int rc;

	config_write(&near, text);
	assert_int_equal(kill(near.pid, SIGHUP), 0);
	do {
		rc = weir_mux_open(&options, &mux, NULL);
		if (!rc)
			weir_mux_close(mux);
	} while (rc != status);
}

/* The first of a test: what others of this user had may still be counted. */
static struct weir_conn *connect_when_they_have_gone(struct weir_mux *mux, uint32_t service)
{
	struct weir_error error = { "" };
	struct weir_conn *conn = NULL;
	int rc, patience = PATIENCE_MS;

	while ((rc = weir_mux_connect(mux, far.address, service, NULL, &conn, &error)) == -EDQUOT &&
	       patience--)
		poll(NULL, 0, 1);
	if (rc)
		fail_msg("%s", error.text);
	return conn;
}

static void the_configuration_says_who_may_and_how_much(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_conn *conn, *second = NULL;
	struct weir_error error = { "" };
	struct weir_mux *mux;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default connections 1 class 1 rate 50M\n", 0);
	mux = tenant_of(&near);
	conn = connect_when_they_have_gone(mux, SERVICE);
	round_trip(conn, 1000003); /* held back again and again, and complete */
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, NULL, &second, &error),
			 -EDQUOT);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE,
					  &(struct weir_conn_options){ .class_nr = 0 }, &second,
					  &error), -EPERM);
	assert_non_null(strstr(error.text, "class 0"));
	assert_null(second);
	weir_conn_close(conn);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
}

/* The rings of its connections take 8 MiB and some of them. */
static void regions_and_rings_are_of_the_memory_that_the_configuration_grants(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux_region *region, *second = NULL;
	struct weir_mux *mux, *other;
	struct weir_conn *conn;

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
	weir_conn_close(conn);
	weir_mux_close(other);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
}

/* More processes bring a user nothing: this one and another are his. */
static void connections_are_of_all_processes_of_a_user(void **state)
{
	struct weir_mux *mux = tenant_of(&near), *other = tenant_of(&near);
	pid_t child = child_start(SERVICE, "echo");
	struct weir_conn *conn, *second = NULL;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default connections 1\n", 0);
	conn = connect_when_they_have_gone(mux, SERVICE);
	assert_int_equal(weir_mux_connect(other, far.address, SERVICE, NULL, &second, NULL),
			 -EDQUOT);
	assert_null(second);
	weir_conn_close(conn);
	weir_mux_close(other);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
}

/* A tenant of @near that has closed a connection, and waits for a reader who does not read. */
static int shut(uint32_t service, int told)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, service);
	static char data[100000];
	int i;

	/* More than the other end's ring takes, and less than that and ours. */
	for (i = 0; i < 4; i++)
		if (weir_conn_send(conn, data, sizeof(data), 0))
			return 1;
	weir_conn_close(conn);
	if (write(told, "", 1) != 1)
		return 1;
	weir_mux_close(mux);
	pause(); /* whoever kills it was slow */
	return 1;
}

static void who_is_killed_while_he_waits_for_a_reader_leaves_nothing(void **state)
{
	pid_t deaf = child_start(SERVICE + 1, "hold"), child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn;
	pid_t victim;

	(void)state;
	victim = child_start(SERVICE + 1, "shut");
	configure("default deny\n", -EPERM);
	configure("default connections 1\n", 0);
	child_end(victim, SIGKILL);
	conn = connect_when_they_have_gone(mux, SERVICE);
	round_trip(conn, 1000);
	weir_conn_close(conn);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
	child_end(deaf, SIGKILL);
}

static void who_is_denied_by_a_new_configuration_makes_nothing_more(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE), *second = NULL;
	struct weir_listener *listener = NULL;
	struct weir_error error = { "" };

	(void)state;
	configure("default deny\n", -EPERM);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, NULL, &second, &error),
			 -EPERM);
	assert_non_null(strstr(error.text, "configuration"));
	assert_int_equal(weir_mux_listen(mux, SERVICE, 1, &listener), -EPERM);
	round_trip(conn, 1000);
	configure("default connections 65535\n", 0);
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* At the first rate, what is sent would take hours. */
static void a_higher_rate_holds_for_what_waits_already(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	char *data = calloc(1, 200000);
	struct weir_mux *mux;
	struct weir_conn *conn;
	size_t length;

	(void)state;
	assert_non_null(data);
	configure("default deny\n", -EPERM);
	configure("default rate 8\n", 0);
	mux = tenant_of(&near);
	conn = connect_to(mux, &far, SERVICE);
	assert_int_equal(weir_conn_send(conn, data, 200000, 0), 0);
	configure("default rate 1G connections 65535\n", 0);
	assert_int_equal(weir_conn_recv(conn, data, 200000, &length, 0), 0);
	assert_int_equal(length, 200000);
	weir_conn_close(conn);
	weir_mux_close(mux);
	configure("default connections 65535\n", 0);
	child_end(child, 0);
	free(data);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		ROLE_ECHO,
		ROLE_HOLD,
		{ "shut", NULL, shut },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_configuration_says_who_may_and_how_much),
		cmocka_unit_test(regions_and_rings_are_of_the_memory_that_the_configuration_grants),
		cmocka_unit_test(connections_are_of_all_processes_of_a_user),
		cmocka_unit_test(who_is_killed_while_he_waits_for_a_reader_leaves_nothing),
		cmocka_unit_test(who_is_denied_by_a_new_configuration_makes_nothing_more),
		cmocka_unit_test(a_higher_rate_holds_for_what_waits_already),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
