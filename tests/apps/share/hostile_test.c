/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share hostile; suites: share; devices: softnic; timeout: 120 */
/* weir share: a hostile tenant harms only itself. */
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/platform.h"
#include "lib/mux/local/account.h"
#include "lib/mux/proxy/proxy.h"
#include "tests/apps/share/daemons.h"
#include "tests/support/slow_socket.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* Rings the bell without news, as fast as possible, until killed. */
static int flood(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	int wakeup =
		container_of(listener, struct weir_mux_proxy_listener, listener)->tenant->wakeup;
	struct pollfd out = { .fd = wakeup, .events = POLLOUT };
	const uint64_t one = 1;

	(void)mux;
	while (poll(&out, 1, -1) == 1 && (write(wakeup, &one, sizeof(one)) > 0 || errno == EAGAIN))
		;
	return 1;
}

static void a_tenant_that_rings_all_the_time_delays_no_other(void **state)
{
	pid_t loud = child_start(SERVICE + 1, "flood"), child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		round_trip(conn, 100000);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
	child_end(loud, SIGKILL);
}

static int pass_slow_descriptors(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	int wakeup =
		container_of(listener, struct weir_mux_proxy_listener, listener)->tenant->wakeup;
	struct pollfd out = { .fd = -1 };

	(void)mux;
	while (poll(&out, 1, 50) >= 0) {
		slow_socket_send(wakeup);
		slow_socket_send(weir_mux_ipc_connect(far.socket, NULL));
	}
	return 1;
}

/* No descriptor passes through a bell, and one in a request delays its sender only. */
static void a_tenant_that_passes_slow_descriptors_delays_no_other(void **state)
{
	pid_t hostile = child_start(SERVICE + 1, "slow"), child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	long start_ms = slow_socket_now_ms();
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		round_trip(conn, 100000);
		usleep(100000); /* the poller sleeps meanwhile */
	}
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
	child_end(hostile, SIGKILL);
}

/* Writes random bytes, repeatedly, to all memory shared with the daemon. */
static void scribble(struct weir_mux_conn *app, uint32_t seed)
{
	struct weir_mux_proxy_conn *conn = container_of(app, struct weir_mux_proxy_conn, app);
	volatile uint32_t *words[] = { (uint32_t *)app->shm, (uint32_t *)conn->tenant->doorbells };
	size_t sizes[] = { sizeof(*app->shm), sizeof(*conn->tenant->doorbells) }, i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < sizes[i] / sizeof(uint32_t); k++) {
			seed = seed * 1664525 + 1013904223;
			words[i][k] = seed;
		}
	conn->app.host->news(app);
}

static void a_tenant_that_scribbles_harms_only_itself(void **state)
{
	pid_t child = child_start(SERVICE, "echo"), victim;
	struct weir_mux *mux = tenant_of(&near), *hostile;
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE), *bad;
	uint32_t seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		victim = child_start(SERVICE + 1, "hold");
		hostile = tenant_of(&near);
		bad = connect_to(hostile, &far, SERVICE + 1);
		assert_int_equal(weir_mux_conn_send(bad, "hello", 5, 0), 0);
		scribble(bad, seed);
		round_trip(conn, 100000);
		weir_mux_conn_close(bad);
		weir_mux_close(hostile);
		child_end(victim, SIGKILL);
	}
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* Sends malformed requests of any length in any order. */
static void random_requests_harm_no_other(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	struct weir_mux_ipc_request hello = { .what = WEIR_MUX_IPC_HELLO,
					      .value = WEIR_MUX_IPC_VERSION };
	struct weir_mux_ipc_reply answer;
	uint32_t seed, i;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		int fd = weir_mux_ipc_connect(near.socket, NULL);

		assert_true(fd >= 0);
		if (seed % 4)
			assert_int_equal(weir_mux_ipc_send(fd, &hello, sizeof(hello), NULL, 0), 0);
		if (seed % 4)
			assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
		for (i = 0; i < 30; i++) {
			struct weir_mux_ipc_request ask = { .what = (seed + i) % 18,
							    .number = i,
							    .nr = i * seed * 2654435761u,
							    .value = i,
							    .class_nr = seed,
							    .weight = i << seed % 32 };

			if (ask.what == WEIR_MUX_IPC_CONNECT)
				memset(ask.peer, 'x', sizeof(ask.peer));
			if (weir_mux_ipc_send(fd, &ask, i % 29 ? sizeof(ask) : i, NULL, 0))
				break; /* the daemon has cut us off */
		}
		close(fd);
		round_trip(conn, 1000);
	}
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

static void a_tenant_must_begin_with_hello(void **state)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_INFO };
	struct weir_mux_ipc_reply answer;
	int fd = weir_mux_ipc_connect(near.socket, NULL);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(weir_mux_ipc_send(fd, &ask, sizeof(ask), NULL, 0), 0);
	assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
	assert_int_equal(answer.status, -EPROTO);
	assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), -ECONNRESET);
	close(fd);
}

/* Connects, passes the socket to the parent, and ends. */
static void connect_for(int parent)
{
	int fd = weir_mux_ipc_connect(near.socket, NULL);

	_exit(fd < 0 || weir_mux_ipc_send(parent, "", 1, &fd, 1));
}

/* Starts a process with that pid; -1: this process lacks the right to choose pids. */
static pid_t process_start(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&pid,
				   .set_tid_size = 1 };
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!child)
		pause();
	return child;
}

static bool kernel_knows_processes(int fd)
{
	socklen_t length = sizeof(int);
	int process;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &length))
		return false;
	close(process);
	return true;
}

static int say_hello(int fd)
{
	const struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_HELLO,
						  .value = WEIR_MUX_IPC_VERSION };
	struct weir_mux_ipc_reply answer;

	assert_int_equal(weir_mux_ipc_send(fd, &ask, sizeof(ask), NULL, 0), 0);
	assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
	return answer.status;
}

/* The daemon reads the identity when another process has the pid. */
static void an_ended_process_is_not_mistaken_for_the_next_with_its_pid(void **state)
{
	int pair[2], fds[WEIR_MUX_IPC_FDS_MAX], status;
	pid_t child, other;
	bool can_tell;
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	daemon_halt(&near);
	child = fork();
	if (!child)
		connect_for(pair[1]);
	assert_int_equal(weir_mux_ipc_recv(pair[0], &byte, 1, fds), 0);
	child_end(child, 0);
	other = process_start(child);
	can_tell = kernel_knows_processes(fds[0]);
	assert_int_equal(kill(near.pid, SIGCONT), 0);
	status = say_hello(fds[0]);
	if (other > 0)
		child_end(other, SIGKILL);
	close(fds[0]);
	close(pair[0]);
	close(pair[1]);
	if (other < 0 || !can_tell) {
		print_message("numbers of processes cannot be chosen, or the kernel is too old\n");
		skip();
	}
	assert_int_equal(other, child);
	assert_int_equal(status, -EPERM);
}

/* The limit leaves room for other tenants: it holds across processes of the user. */
static void the_number_of_regions_is_limited(void **state)
{
	struct weir_mux *mux = tenant_of(&near), *other = tenant_of(&near);
	struct weir_mux_region *regions[WEIR_MUX_MRS_MAX], *more = NULL;
	int i;

	(void)state;
	for (i = 0; i < WEIR_MUX_MRS_MAX; i++)
		assert_int_equal(weir_mux_region_open(i % 2 ? mux : other, 1, &regions[i]), 0);
	assert_int_equal(weir_mux_region_open(mux, 1, &more), -EDQUOT);
	assert_int_equal(weir_mux_region_open(other, 1, &more), -EDQUOT);
	assert_int_equal(weir_mux_region_close(regions[0]), 0);
	assert_int_equal(weir_mux_region_open(mux, 1, &regions[0]), 0);
	for (i = 0; i < WEIR_MUX_MRS_MAX; i++)
		assert_int_equal(weir_mux_region_close(regions[i]), 0);
	weir_mux_close(other);
	weir_mux_close(mux);
}

static void a_tenant_out_of_descriptors_gets_an_error_and_may_retry(void **state)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_listener *listener = NULL;
	struct rlimit files, none;
	int next = dup(0);

	(void)state;
	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){ (rlim_t)next, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(weir_mux_listen(mux, SERVICE, 1, &listener), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(weir_mux_listen(mux, SERVICE, 1, &listener), 0);
	weir_mux_listener_close(listener);
	weir_mux_close(mux);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		ROLE_ECHO,
		ROLE_HOLD,
		{ "flood", flood, NULL },
		{ "slow", pass_slow_descriptors, NULL },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_that_scribbles_harms_only_itself),
		cmocka_unit_test(random_requests_harm_no_other),
		cmocka_unit_test(a_tenant_that_rings_all_the_time_delays_no_other),
		cmocka_unit_test(a_tenant_that_passes_slow_descriptors_delays_no_other),
		cmocka_unit_test(a_tenant_must_begin_with_hello),
		cmocka_unit_test(an_ended_process_is_not_mistaken_for_the_next_with_its_pid),
		cmocka_unit_test(the_number_of_regions_is_limited),
		cmocka_unit_test(a_tenant_out_of_descriptors_gets_an_error_and_may_retry),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
