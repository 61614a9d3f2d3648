/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux idle; devices: softnic rxe; timeout: 180 */
/* Idle teardown of remotes, and the limit on remotes per group. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/mux/ends.h"

#define IDLE_NS (20 * WEIR_NS_PER_MS)

static void an_idle_remote_ends_at_both_ends_and_can_be_recreated(void **state)
{
	struct weir_mux_info before, after;
	struct weir_mux_conn *near, *far;
	struct mux_end a, b;
	int i;

	(void)state;
	end_open(&a, IDLE_NS);
	end_open(&b, IDLE_NS);
	for (i = 0; i < 3; i++) {
		near = connect_to(&a, &b);
		far = accept_at(&b);
		pass(near, far);
		weir_mux_local_info(a.mux, &before);
		weir_mux_conn_close(near);
		weir_mux_conn_close(far);
		wait_nodes(&a, 0);
		wait_nodes(&b, 0);
		/* The counters keep their values. */
		weir_mux_local_info(a.mux, &after);
		assert_int_equal(after.queue_pairs, 0);
		assert_true(after.work_requests >= before.work_requests);
		assert_true(after.bytes_sent >= before.bytes_sent);
	}
	end_close(&a);
	end_close(&b);
}

/* One end keeps idle remotes for ever, the other does not. */
static void an_end_may_ask_alone(void **state)
{
	struct mux_end a, b;

	(void)state;
	end_open(&a, UINT64_MAX);
	end_open(&b, IDLE_NS);
	weir_mux_conn_close(connect_to(&a, &b));
	weir_mux_conn_close(accept_at(&b));
	wait_nodes(&a, 0);
	wait_nodes(&b, 0);
	end_close(&a);
	end_close(&b);
}

static void a_remote_with_a_connection_stays(void **state)
{
	struct weir_mux_conn *near, *far, *other;
	struct weir_mux_remote *remote;
	struct mux_end a, b;

	(void)state;
	end_open(&a, IDLE_NS);
	end_open(&b, IDLE_NS);
	near = connect_to(&a, &b);
	far = accept_at(&b);
	remote = node_of(near);
	usleep(10 * IDLE_NS / 1000);
	weir_mux_conn_close(connect_to(&a, &b));
	weir_mux_conn_close(accept_at(&b));
	usleep(10 * IDLE_NS / 1000);
	pass(near, far);
	other = connect_to(&a, &b);
	assert_ptr_equal(node_of(other), remote);
	weir_mux_conn_close(accept_at(&b));
	weir_mux_conn_close(other);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	end_close(&a);
	end_close(&b);
}

struct mux_leave_caller {
	pthread_t thread;
	const struct mux_end *from, *to;
	int rounds, served;
};

static void *call_again_and_again(void *arg)
{
	struct mux_leave_caller *caller = arg;
	struct weir_mux_conn *conn;
	size_t length;
	int i;

	for (i = 0; i < caller->rounds; i++) {
		if (weir_mux_connect(&caller->from->mux->mux, caller->to->address, SERVICE, NULL,
				     &conn, NULL))
			break;
		/* The peer closes. */
		caller->served += weir_mux_conn_recv(conn, &i, 0, &length, 0) == -ENOTCONN;
		weir_mux_conn_close(conn);
		usleep((useconds_t)(i * 37 % 300));
	}
	return NULL;
}

static void *serve_all(void *arg)
{
	const struct mux_leave_caller *caller = arg;
	int i;

	for (i = 0; i < caller->rounds; i++)
		weir_mux_conn_close(accept_at(caller->to));
	return NULL;
}

/* Both ends tear down as soon as idle, and both connect. */
static void no_connect_is_lost_to_an_idle_teardown(void **state)
{
	const int rounds = fixture_rounds(150);
	struct mux_leave_caller callers[2];
	pthread_t servers[2];
	struct mux_end ends[2];
	int i;

	(void)state;
	end_open(&ends[0], 1);
	end_open(&ends[1], 1);
	for (i = 0; i < 2; i++) {
		callers[i] = (struct mux_leave_caller){ .from = &ends[i],
							.to = &ends[1 - i],
							.rounds = rounds };
		assert_int_equal(pthread_create(&servers[i], NULL, serve_all, &callers[i]), 0);
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call_again_and_again,
						&callers[i]),
				 0);
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		assert_int_equal(callers[i].served, rounds);
		assert_int_equal(pthread_join(servers[i], NULL), 0);
	}
	wait_nodes(&ends[0], 0);
	wait_nodes(&ends[1], 0);
	end_close(&ends[0]);
	end_close(&ends[1]);
}

static void a_group_reaches_its_limit_of_remotes(void **state)
{
	struct weir_mux_conn *conns[3] = { NULL };
	struct weir_error error = { "" };
	struct mux_end from, to[3];
	int i, rc;

	(void)state;
	end_open(&from, IDLE_NS);
	for (i = 0; i < 3; i++)
		end_open(&to[i], IDLE_NS);
	from.mux->self.group->nr_remotes_max = 2;
	conns[0] = connect_to(&from, &to[0]);
	conns[1] = connect_to(&from, &to[1]);
	assert_int_equal(weir_mux_connect(&from.mux->mux, to[2].address, SERVICE, NULL, &conns[2],
					  &error),
			 -EDQUOT);
	assert_non_null(strstr(error.text, "at most 2 allowed"));
	/* Connects to existing remotes succeed; after one has gone, another may be created. */
	weir_mux_conn_close(connect_to(&from, &to[0]));
	weir_mux_conn_close(conns[1]);
	weir_mux_conn_close(accept_at(&to[1]));
	wait_nodes(&from, 1);
	rc = weir_mux_connect(&from.mux->mux, to[2].address, SERVICE, NULL, &conns[2], &error);
	if (rc)
		fail_msg("%s", error.text);
	/* An unreachable remote does not count. */
	weir_mux_conn_close(accept_at(&to[2]));
	weir_mux_conn_close(conns[2]);
	wait_nodes(&from, 1);
	for (i = 0; i < 3; i++)
		assert_int_not_equal(weir_mux_connect(&from.mux->mux, "127.0.0.1:1", SERVICE, NULL,
						      &conns[2], NULL),
				     0);
	wait_nodes(&from, 1);
	assert_int_equal(from.mux->self.group->nr_remotes, 1);
	weir_mux_conn_close(conns[0]);
	end_close(&from);
	for (i = 0; i < 3; i++)
		end_close(&to[i]);
}

/* Unsolicited messages, and messages on the wrong QP. */
static void answers_out_of_turn_are_refused(void **state)
{
	struct weir_mux_conn *near, *far;
	struct weir_mux_remote *remote;
	struct mux_end a, b;
	size_t length;
	char byte;

	(void)state;
	end_open(&a, 0);
	end_open(&b, 0);
	near = connect_to(&a, &b);
	far = accept_at(&b);
	remote = node_of(near);
	pthread_mutex_lock(&a.mux->lock);
	assert_int_equal(weir_mux_idle_input(remote->qps[0], WIRE_MUX_LEFT), -EPROTO);
	assert_int_equal(weir_mux_idle_input(remote->qps[0], WIRE_MUX_STAY), -EPROTO);
	assert_int_equal(weir_mux_idle_input(remote->qps[1], WIRE_MUX_LEAVE), -EPROTO);
	/* STAY without LEAVE before is a protocol error. */
	assert_int_equal(weir_mux_idle_input(remote->qps[0], WIRE_MUX_LEAVE), 0);
	pthread_mutex_unlock(&a.mux->lock);
	assert_int_equal(weir_mux_conn_recv(far, &byte, 1, &length, 0), -EPROTO);
	assert_int_equal(weir_mux_conn_recv(near, &byte, 1, &length, 0), -ECONNRESET);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_remote_ends_at_both_ends_and_can_be_recreated),
		cmocka_unit_test(an_end_may_ask_alone),
		cmocka_unit_test(a_remote_with_a_connection_stays),
		cmocka_unit_test(no_connect_is_lost_to_an_idle_teardown),
		cmocka_unit_test(a_group_reaches_its_limit_of_remotes),
		cmocka_unit_test(answers_out_of_turn_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
