// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm peer death; devices: softnic */
/*
 * The events that survivors get when the other process is killed, at each stage of a
 * connection.
 *
 * The other process runs this program in a role, and prints a line when ready.
 *
 * 	listener	listens; never fetches the request
 * 	server		accepts
 * 	caller PORT	calls, without a QP; never confirms the connection
 * 	client PORT	calls and is connected
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cm_fixture.h"
#include "tests/support/stop_process.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

struct killed_process {
	pid_t pid;
	uint16_t port;
};

static struct killed_process start(const char *role, uint16_t port)
{
	char text[8];
	char *argv[] = { "cm_death_test", (char *)role, text, NULL };
	posix_spawn_file_actions_t actions;
	struct killed_process other;
	char line[32] = "";
	int out[2];

	snprintf(text, sizeof(text), "%u", port);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	assert_int_equal(posix_spawn(&other.pid, "/proc/self/exe", &actions, NULL, argv, environ),
			 0);
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	assert_true(read(out[0], line, sizeof(line) - 1) > 0);
	close(out[0]);
	other.port = (uint16_t)atoi(line);
	return other;
}

static void kill_it(struct killed_process *other)
{
	assert_int_equal(kill(other->pid, SIGKILL), 0);
	assert_int_equal(waitpid(other->pid, NULL, 0), other->pid);
}

static void ready(uint16_t port)
{
	printf("%u\n", port);
	fflush(stdout);
}

static void request_from_other(struct cm_ends *e)
{
	struct rdma_cm_event *event = next_event(e->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);

	e->b = event->id;
	rdma_ack_cm_event(event);
}

static void play(const char *role, uint16_t port)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct cm_ends *e;
	void *state;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_ends(&state);
	e = state;
	if (!strcmp(role, "listener")) {
		ready(listen_on(e, "127.0.0.1", 0));
	} else if (!strcmp(role, "server")) {
		ready(listen_on(e, "127.0.0.1", 0));
		request_from_other(e);
		create_qp(e->b);
		rdma_accept(e->b, NULL);
	} else {
		resolve(e, "127.0.0.1", port);
		if (!strcmp(role, "client"))
			create_qp(e->a);
		rdma_connect(e->a, strcmp(role, "client") ? &param : NULL);
		ready(port);
		expect(e->a_channel, strcmp(role, "client") ? RDMA_CM_EVENT_CONNECT_RESPONSE :
							      RDMA_CM_EVENT_ESTABLISHED);
	}
	for (;;)
		pause();
}

static void call(struct cm_ends *e, struct killed_process *other)
{
	resolve(e, "127.0.0.1", other->port);
	create_qp(e->a);
	assert_int_equal(rdma_connect(e->a, NULL), 0);
}

static void a_server_killed_when_connected_disconnects(void **state)
{
	struct cm_ends *e = *state;
	struct killed_process other = start("server", 0);

	call(e, &other);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	kill_it(&other);
	expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(e->a), 0);
	expect_silence(e->a_channel);
}

static void a_client_killed_when_connected_disconnects(void **state)
{
	struct cm_ends *e = *state;
	struct killed_process other = start("client", listen_on(e, "127.0.0.1", 0));

	request_from_other(e);
	create_qp(e->b);
	assert_int_equal(rdma_accept(e->b, NULL), 0);
	assert_int_equal(expect(e->b_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	kill_it(&other);
	expect(e->b_channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void a_server_killed_before_it_answers_is_unreachable(void **state)
{
	struct cm_ends *e = *state;
	struct killed_process other = start("listener", 0);

	call(e, &other);
	expect_silence(e->a_channel);
	kill_it(&other);
	assert_int_equal(expect(e->a_channel, RDMA_CM_EVENT_UNREACHABLE), -ECONNRESET);
}

static void a_stopped_server_leaves_the_call_pending(void **state)
{
	struct cm_ends *e = *state;
	struct killed_process other = start("listener", 0);

	stop_process(other.pid);
	call(e, &other);
	expect_silence(e->a_channel);
	rdma_destroy_qp(e->a);
	rdma_destroy_id(e->a);
	e->a = NULL;
	kill_it(&other);
}

static void a_client_killed_before_the_last_message_is_unreachable(void **state)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct cm_ends *e = *state;
	struct killed_process other = start("caller", listen_on(e, "127.0.0.1", 0));

	request_from_other(e);
	assert_int_equal(rdma_accept(e->b, &param), 0);
	expect_silence(e->b_channel);
	kill_it(&other);
	assert_int_equal(expect(e->b_channel, RDMA_CM_EVENT_UNREACHABLE), -ECONNRESET);
}

static void the_address_of_the_killed_is_free_at_once(void **state)
{
	struct cm_ends *e = *state;
	struct killed_process other = start("listener", 0);

	kill_it(&other);
	assert_int_equal(listen_on(e, "127.0.0.1", other.port), other.port);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer forbids threads in the child of a threaded process */
static void a_child_calls_and_listens_for_itself(void **state)
{
	struct cm_ends *e = *state, child;
	void *its_state;
	int status;
	pid_t pid;

	connect_ends(e);
	pid = fork();
	if (!pid) {
		alarm(PATIENCE_MS / 1000);
		open_ends(&its_state);
		child = *(struct cm_ends *)its_state;
		connect_ends(&child);
		_exit(child.a->verbs == e->a->verbs);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(rdma_disconnect(e->a), 0);
	expect(e->b_channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void a_child_holds_no_port_and_no_connection(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_id *again;
	char there = 0;
	uint16_t port;
	int ready[2];
	pid_t pid;

	connect_ends(e);
	port = ntohs(rdma_get_src_port(e->listener));
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (write(ready[1], &there, 1) == 1)
			pause();
	}
	assert_int_equal(read(ready[0], &there, 1), 1);
	close(ready[0]);
	close(ready[1]);
	rdma_destroy_id(e->listener);
	e->listener = NULL;
	assert_int_equal(rdma_create_id(NULL, &again, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(again, address("127.0.0.1", port)), 0);
	rdma_destroy_id(again);
	rdma_destroy_qp(e->b);
	rdma_destroy_id(e->b);
	e->b = NULL;
	expect(e->a_channel, RDMA_CM_EVENT_DISCONNECTED);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_server_killed_when_connected_disconnects),
		TEST(a_client_killed_when_connected_disconnects),
		TEST(a_server_killed_before_it_answers_is_unreachable),
		TEST(a_stopped_server_leaves_the_call_pending),
		TEST(a_client_killed_before_the_last_message_is_unreachable),
		TEST(the_address_of_the_killed_is_free_at_once),
#ifndef __SANITIZE_THREAD__
		TEST(a_child_calls_and_listens_for_itself),
		TEST(a_child_holds_no_port_and_no_connection),
#endif
	};

	if (argc == 3)
		play(argv[1], (uint16_t)atoi(argv[2]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
