/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir share: who may do what, and how much, as its configuration says. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/apps/share/daemons.h"

/* Waits until the daemon has read it: until a tenant is treated so. */
static void configure_at(const struct daemon *d, const char *text, int status)
{
	const struct weir_mux_options options = { .share = d->socket };
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

/* The first of a test: what others of this user had may still be counted. */
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

static void the_configuration_says_who_may_and_how_much(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux_conn *conn, *second = NULL;
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
					  &(struct weir_mux_conn_options){ .class_nr = 0 }, &second,
					  &error),
			 -EPERM);
	assert_non_null(strstr(error.text, "class 0"));
	assert_null(second);
	weir_mux_conn_close(conn);
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

/* More processes bring a user nothing: this one and another are his. */
static void connections_are_of_all_processes_of_a_user(void **state)
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

/* A tenant of @near that has closed a connection, and waits for a reader who does not read. */
static int shut(uint32_t service, int credited)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, service);
	static char data[100000];
	int i;

	/* More than the other end's ring takes, and less than that and ours. */
	for (i = 0; i < 4; i++)
		if (weir_mux_conn_send(conn, data, sizeof(data), 0))
			return 1;
	weir_mux_conn_close(conn);
	if (write(credited, "", 1) != 1)
		return 1;
	weir_mux_close(mux);
	pause(); /* whoever kills it was slow */
	return 1;
}

static void who_is_killed_while_he_waits_for_a_reader_leaves_nothing(void **state)
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

static void who_is_denied_by_a_new_configuration_makes_nothing_more(void **state)
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

/* At the first rate, what is sent would take hours. */
static void a_higher_rate_holds_for_what_waits_already(void **state)
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

/* Whoever opens a connection: it is of the tenant who offers the service, too. */
static void a_class_is_not_had_by_listening(void **state)
{
	const struct weir_mux_conn_options urgent = { .class_nr = WEIR_MUX_CLASS_URGENT };
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

static void a_class_is_cut_into_segments_as_its_line_says(void **state)
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
	weir_mux_info(mux, &before);
	round_trip(conn, 100000);
	weir_mux_info(mux, &after);
	assert_true(after.work_requests - before.work_requests >= 100000 / 4096);
	weir_mux_conn_close(conn);
	child_end(child, 0); /* it hears of the end while there is still one to tell it */
	weir_mux_close(mux);
	daemon_stop(&third);
}

static void who_accepts_says_what_his_end_weighs(void **state)
{
	struct weir_mux *mux = tenant_of(&near), *server = tenant_of(&far);
	const struct weir_mux_conn_options options = { .class_nr = WEIR_MUX_CLASS_NORMAL,
						       .weight = 2 };
	struct weir_mux_conn *conn, *accepted;
	struct weir_mux_listener *listener;

	(void)state;
	assert_int_equal(weir_mux_listen(server, SERVICE + 2, 1, &listener), 0);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE + 2, &options, &conn, NULL), 0);
	accepted = accept_from(listener);
	assert_int_equal(daemon_weighs(&near, getpid(), 0), 2);
	assert_int_equal(daemon_weighs(&far, getpid(), 0), 1);
	assert_int_equal(weir_mux_conn_weigh(accepted, 3), 0);
	assert_int_equal(weir_mux_conn_weigh(accepted, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_weigh(accepted, 1025), -EINVAL);
	assert_int_equal(daemon_weighs(&far, getpid(), 0), 3);
	weir_mux_listener_close(listener);
	weir_mux_conn_close(accepted);
	weir_mux_conn_close(conn);
	weir_mux_close(server);
	weir_mux_close(mux);
}

/*
 * A tenant of @near that lends memory, of which a write by the other end is under way, and
 * withdraws it: that waits until the write is done.
 */
static int withdraw(uint32_t service, int credited)
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
	if (write(credited, "", 1) != 1)
		return 1;
	weir_mux_conn_withdraw(conn, handle);
	pause(); /* whoever kills it was slow */
	return 1;
}

/* Of @far: writes there, at a rate at which it takes hours. */
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
 * The clerk of who is killed waits, for as long as the daemon's timeout, which is 10 s. He hears of
 * it in 20 ms.
 */
static void who_is_killed_while_he_withdraws_is_gone_at_once(void **state)
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
	poll(NULL, 0, 100); /* he has most likely asked by now */
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
		cmocka_unit_test(the_configuration_says_who_may_and_how_much),
		cmocka_unit_test(regions_and_rings_are_of_the_memory_that_the_configuration_grants),
		cmocka_unit_test(connections_are_of_all_processes_of_a_user),
		cmocka_unit_test(who_is_killed_while_he_waits_for_a_reader_leaves_nothing),
		cmocka_unit_test(who_is_denied_by_a_new_configuration_makes_nothing_more),
		cmocka_unit_test(a_higher_rate_holds_for_what_waits_already),
		cmocka_unit_test(a_class_is_not_had_by_listening),
		cmocka_unit_test(a_class_is_cut_into_segments_as_its_line_says),
		cmocka_unit_test(who_accepts_says_what_his_end_weighs),
		cmocka_unit_test(who_is_killed_while_he_withdraws_is_gone_at_once),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
