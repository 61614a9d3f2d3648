/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share peers; suites: share; devices: softnic rxe; timeout: 120 */
/* weir share: queue pairs to other daemons, across tenants and over time. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "tests/apps/share/daemons.h"

static struct daemon third; /* tenants may have one peer; short idle time */
static struct daemon patient[2]; /* keep idle queue pairs until reconfigured */

static void wait_queue_pairs(struct weir_mux *mux, unsigned int count)
{
	int patience = PATIENCE_MS / 10;
	struct weir_mux_info info;

	for (;;) {
		weir_mux_info(mux, &info, sizeof(info));
		if (info.queue_pairs == count)
			return;
		assert_true(patience-- > 0);
		poll(NULL, 0, 10);
	}
}

/* Each daemon connects to the other: two queue pairs, one per class; none without connections. */
static void two_daemons_share_one_set_of_queue_pairs_while_in_use(void **state)
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

static void a_party_reaches_its_limit_of_peers(void **state)
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
	/* The existing peer stays open for connects; another is allowed once that peer has gone. */
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

static void idle_queue_pairs_go_after_the_configured_time(void **state)
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
		cmocka_unit_test(two_daemons_share_one_set_of_queue_pairs_while_in_use),
		cmocka_unit_test(a_party_reaches_its_limit_of_peers),
		cmocka_unit_test(idle_queue_pairs_go_after_the_configured_time),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
