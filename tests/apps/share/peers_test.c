/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir share: what it has with other daemons, whoever of its tenants began it, and for how long. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "tests/apps/share/daemons.h"

static struct daemon third; /* whose tenants may have one peer; impatient */
static struct daemon
	patient[2]; /* who keep their queue pairs for ever, until they are told otherwise */

static void wait_queue_pairs(struct weir_mux *mux, unsigned int count)
{
	int patience = PATIENCE_MS / 10;
	struct weir_mux_info info;

	for (;;) {
		weir_mux_info(mux, &info);
		if (info.queue_pairs == count)
			return;
		assert_true(patience-- > 0);
		poll(NULL, 0, 10);
	}
}

/* Each connects to the other: two queue pairs, one a class; none when nobody is connected any more. */
static void two_daemons_have_one_set_of_queue_pairs_as_long_as_they_use_it(void **state)
{
	struct weir_mux *muxes[2] = { tenant_of(&near), tenant_of(&far) };
	struct weir_mux_conn *conns[2], *accepted[2];
	struct weir_mux_listener *listeners[2];
	const char *data = "there";
	size_t length;
	char got[8];
	int i;

	(void)state;
	for (i = 0; i < 2; i++)
		assert_int_equal(weir_mux_listen(muxes[i], SERVICE, 8, &listeners[i]), 0);
	for (i = 0; i < 2; i++) {
		conns[i] = connect_to(muxes[i], i ? &near : &far, SERVICE);
		accepted[i] = accept_from(listeners[1 - i]);
		assert_int_equal(weir_mux_conn_send(conns[i], data, 6, 0), 0);
		assert_int_equal(weir_mux_conn_recv(accepted[i], got, sizeof(got), &length, 0), 0);
		assert_string_equal(got, data);
	}
	for (i = 0; i < 2; i++)
		wait_queue_pairs(muxes[i], 2);
	for (i = 0; i < 2; i++) {
		weir_mux_conn_close(conns[i]);
		weir_mux_conn_close(accepted[i]);
		weir_mux_listener_close(listeners[i]);
	}
	for (i = 0; i < 2; i++)
		wait_queue_pairs(muxes[i], 0);
	for (i = 0; i < 2; i++)
		weir_mux_close(muxes[i]);
}

static void a_party_has_only_so_many_peers(void **state)
{
	struct weir_mux *mux = tenant_of(&third), *first = tenant_of(&far),
			*other = tenant_of(&near);
	struct weir_mux_listener *listener, *there;
	struct weir_mux_conn *conn, *accepted;
	struct weir_error error = { "" };

	(void)state;
	assert_int_equal(weir_mux_listen(first, SERVICE, 8, &listener), 0);
	assert_int_equal(weir_mux_listen(other, SERVICE, 8, &there), 0);
	conn = connect_to(mux, &far, SERVICE);
	accepted = accept_from(listener);
	assert_int_equal(weir_mux_connect(mux, near.address, SERVICE, NULL, &conn, &error),
			 -EDQUOT);
	assert_non_null(strstr(error.text, "at most 1 allowed"));
	/* To the one that it has nothing is in the way; and to another, when that has gone. */
	weir_mux_conn_close(connect_to(mux, &far, SERVICE));
	weir_mux_conn_close(accept_from(listener));
	weir_mux_conn_close(conn);
	weir_mux_conn_close(accepted);
	wait_queue_pairs(mux, 0);
	weir_mux_conn_close(connect_to(mux, &near, SERVICE));
	weir_mux_conn_close(accept_from(there));
	weir_mux_listener_close(listener);
	weir_mux_listener_close(there);
	weir_mux_close(mux);
	weir_mux_close(first);
	weir_mux_close(other);
}

static void queue_pairs_that_nobody_needs_go_when_the_configuration_says_so(void **state)
{
	struct weir_mux *mux = tenant_of(&patient[0]), *other = tenant_of(&patient[1]);
	struct weir_mux_listener *listener;

	(void)state;
	assert_int_equal(weir_mux_listen(other, SERVICE, 8, &listener), 0);
	weir_mux_conn_close(connect_to(mux, &patient[1], SERVICE));
	weir_mux_conn_close(accept_from(listener));
	wait_queue_pairs(mux, 2);
	wait_queue_pairs(other, 2);
	config_write(&patient[0], "idle 0.1\n");
	assert_int_equal(kill(patient[0].pid, SIGHUP), 0);
	wait_queue_pairs(mux, 0);
	wait_queue_pairs(other, 0);
	weir_mux_listener_close(listener);
	weir_mux_close(mux);
	weir_mux_close(other);
}

static int start(void **state)
{
	daemons_start(state);
	daemon_start_with(&patient[0], "patient", "idle any\n");
	daemon_start_with(&patient[1], "patient, too", "idle any\n");
	daemon_start_with(&third, "third", "default peers 1\nidle 0.5\n");
	return 0;
}

static int stop(void **state)
{
	daemon_stop(&third);
	daemon_stop(&patient[0]);
	daemon_stop(&patient[1]);
	return daemons_stop(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_daemons_have_one_set_of_queue_pairs_as_long_as_they_use_it),
		cmocka_unit_test(a_party_has_only_so_many_peers),
		cmocka_unit_test(queue_pairs_that_nobody_needs_go_when_the_configuration_says_so),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
