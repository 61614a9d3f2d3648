/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share flood; suites: share; devices: softnic; timeout: 120 */
/* weir share: futile connects of one user, however many, cost other users nothing. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/share/connect_rate.h"
#include "apps/share/daemon.h"
#include "lib/base/clock.h"
#include "tests/apps/share/daemons.h"
#include "tests/support/stop_process.h"

#define NOBODYS 999
#define SOCKETS 40 /* more than may be unanswered per remote, and than the burst of a party */
#define TIMEOUT_NS (10 * WEIR_NS_PER_S) /* of a daemon's mux */
#define STRANGER 65534 /* another user than root, and a second */
#define DENIED 65533

static int say_hello(int fd)
{
	struct weir_mux_ipc_request hello = { .what = WEIR_MUX_IPC_HELLO,
					      .value = WEIR_MUX_IPC_VERSION };
	struct weir_mux_ipc_reply answer;
	int rc = weir_mux_ipc_send(fd, &hello, sizeof(hello), NULL, 0);

	if (!rc)
		rc = weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL);
	return rc ? rc : answer.status;
}

static bool is_dialer(const char *task)
{
	char path[128], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", near.pid, task);
	file = fopen(path, "r");
	if (!file)
		return false; /* has ended meanwhile */
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return !strcmp(name, "weir-connect\n");
}

static unsigned int dialers(void)
{
	unsigned int count = 0;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", near.pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)) != NULL)
		count += is_dialer(entry->d_name);
	closedir(tasks);
	return count;
}

/* A worker that left its queue may still be ending; one too many would stay longer than we look. */
static void check_dialers(void)
{
	const uint64_t until_ns = weir_now_ns() + 250 * WEIR_NS_PER_MS;
	unsigned int count;

	while ((count = dialers()) > SHARE_CONNECT_WORKERS_MAX && weir_now_ns() < until_ns)
		poll(NULL, 0, 1);
	assert_in_range(count, 0, SHARE_CONNECT_WORKERS_MAX);
}

/* Reads the replies that are there. */
static unsigned int answers_take(int fd)
{
	struct weir_mux_ipc_reply answer;
	unsigned int count = 0;

	while (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0) {
		assert_int_equal(answer.status, -ECONNREFUSED);
		count++;
	}
	return count;
}

static void sockets_open(int *fds)
{
	int i;

	for (i = 0; i < SOCKETS; i++) {
		fds[i] = weir_mux_ipc_connect(near.socket, NULL);
		assert_true(fds[i] >= 0);
		assert_int_equal(say_hello(fds[i]), 0);
	}
}

static void ask_in_vain(const int *fds, unsigned int nr_fds, unsigned int nr, const char *peer)
{
	struct weir_mux_ipc_request ask = {
		.what = WEIR_MUX_IPC_CONNECT, .service = NOBODYS, .class_nr = 1, .weight = 1
	};
	unsigned int i;

	strcpy(ask.peer, peer);
	for (i = 0; i < nr; i++)
		assert_int_equal(weir_mux_ipc_send(fds[i % nr_fds], &ask, sizeof(ask), NULL, 0), 0);
}

static void futile_connects_take_few_threads_and_break_nothing(void **state)
{
	const unsigned int asked = SOCKETS * SHARE_CONNECTS_MAX;
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	unsigned int answered = 0;
	int i, fds[SOCKETS];

	(void)state;
	sockets_open(fds);
	ask_in_vain(fds, SOCKETS, asked, far.address);
	while (answered < asked) {
		check_dialers();
		round_trip(conn, 1000);
		for (i = 0; i < SOCKETS; i++)
			answered += answers_take(fds[i]);
	}
	assert_int_equal(answered, asked);
	for (i = 0; i < SOCKETS; i++)
		close(fds[i]);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* The RPC thread handles requests in order: after this reply, all connects are queued. */
static void wait_asked(int fd)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_INFO, .number = 1 };
	struct weir_mux_ipc_reply answer = { .number = 0 };

	assert_int_equal(weir_mux_ipc_send(fd, &ask, sizeof(ask), NULL, 0), 0);
	while (answer.number != ask.number) {
		wait_readable(fd);
		assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
	}
}

/* Ends the tenant's requests and reads until the daemon closes. Return: the number of replies. */
static unsigned int answers_at_the_end(int fd)
{
	struct weir_mux_ipc_reply answer;
	unsigned int count = 0;

	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	wait_readable(fd);
	while (!weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL)) {
		count++;
		wait_readable(fd);
	}
	return count;
}

static unsigned int work_requests_of(struct weir_mux *mux)
{
	struct weir_mux_info info;

	weir_mux_info(mux, &info, sizeof(info));
	return (unsigned int)info.work_requests;
}

/*
 * The user's other tenant occupies all workers. Connects of this tenant, queued behind, are
 * dropped when it goes: no replies come, and the peer, which would refuse each, gets no OPEN.
 */
static void queued_connects_of_a_gone_tenant_are_dropped(void **state)
{
	pid_t child = child_start(SERVICE, "echo");
	struct weir_mux *mux = tenant_of(&near), *asked = tenant_of(&far);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	static struct daemon mute;
	unsigned int before;
	int first, second;

	(void)state;
	round_trip(conn, 1000);
	daemon_start(&mute, "mute");
	assert_int_equal(kill(mute.pid, SIGSTOP), 0);
	first = weir_mux_ipc_connect(near.socket, NULL);
	second = weir_mux_ipc_connect(near.socket, NULL);
	assert_int_equal(say_hello(first), 0);
	assert_int_equal(say_hello(second), 0);
	before = work_requests_of(asked);
	ask_in_vain(&first, 1, SHARE_CONNECT_WORKERS_MAX, mute.address);
	wait_asked(first);
	ask_in_vain(&second, 1, SHARE_CONNECTS_MAX, far.address);
	assert_int_equal(answers_at_the_end(second), 0);
	/* Earlier work requests may be counted late. */
	assert_in_range(work_requests_of(asked) - before, 0, SHARE_CONNECTS_MAX / 4);
	close(first);
	close(second);
	assert_int_equal(kill(mute.pid, SIGCONT), 0);
	daemon_stop(&mute);
	round_trip(conn, 1000);
	weir_mux_conn_close(conn);
	weir_mux_close(asked);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* A silent name server would hold a worker beyond any timeout. */
static void names_are_resolved_by_the_tenant(void **state)
{
	struct weir_mux_ipc_reply answer;
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = NULL;
	struct weir_error error;
	int fd, rc;

	(void)state;
	fd = weir_mux_ipc_connect(near.socket, NULL);
	assert_int_equal(say_hello(fd), 0);
	ask_in_vain(&fd, 1, 1, "localhost:1");
	wait_readable(fd);
	assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
	assert_int_equal(answer.status, -EINVAL);
	assert_non_null(strstr(answer.text, "in numbers"));
	close(fd);
	/* No process listens there. */
	rc = weir_mux_connect(mux, "localhost:1", NOBODYS, NULL, &conn, &error);
	assert_true(rc && rc != -EINVAL);
	assert_null(strstr(error.text, "localhost:1"));
	weir_mux_close(mux);
}

/* Waits until all connects asked for on @fd have failed in time. */
static void wait_timed_out(int fd, unsigned int nr, uint64_t until_ns)
{
	struct weir_mux_ipc_reply answer;
	struct pollfd in = { .fd = fd, .events = POLLIN };

	for (; nr; nr--) {
		assert_int_equal(poll(&in, 1, weir_poll_ms(until_ns)), 1);
		assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
		assert_int_equal(answer.status, -ETIMEDOUT);
	}
}

/* Four times as many connects as workers, which would run them one after another. */
static void a_queued_connect_waits_no_longer_than_the_timeout(void **state)
{
	static struct daemon mute;
	uint64_t asked_ns;
	int fd;

	(void)state;
	daemon_start(&mute, "mute");
	stop_process(mute.pid);
	fd = weir_mux_ipc_connect(near.socket, NULL);
	assert_true(fd >= 0);
	assert_int_equal(say_hello(fd), 0);
	asked_ns = weir_now_ns();
	ask_in_vain(&fd, 1, SHARE_CONNECTS_MAX, mute.address);
	wait_timed_out(fd, SHARE_CONNECTS_MAX, asked_ns + 2 * TIMEOUT_NS);
	assert_true(weir_now_ns() - asked_ns >= TIMEOUT_NS);
	close(fd);
	assert_int_equal(kill(mute.pid, SIGCONT), 0);
	daemon_stop(&mute);
}

static void connects_are_rate_limited_with_a_burst(void **state)
{
	uint64_t now_ns = 3600 * 1000000000ull, paid_ns = 0, due_ns;
	int i, round;

	(void)state;
	for (i = 0; i <= SHARE_CONNECT_RATE_KEPT; i++)
		assert_int_equal(share_connect_rate_take(&paid_ns, now_ns), 0);
	for (i = 0; i < 100; i++) {
		due_ns = share_connect_rate_take(&paid_ns, now_ns);
		assert_int_equal(due_ns, now_ns + SHARE_CONNECT_RATE_NS);
		now_ns = due_ns;
		assert_int_equal(share_connect_rate_take(&paid_ns, now_ns), 0);
	}
	/* A day without connects earns no more than one burst. */
	for (round = 0; round < 2; round++) {
		now_ns += 86400 * 1000000000ull;
		for (i = 0; i <= SHARE_CONNECT_RATE_KEPT; i++)
			assert_int_equal(share_connect_rate_take(&paid_ns, now_ns), 0);
		assert_int_equal(share_connect_rate_take(&paid_ns, now_ns),
				 now_ns + SHARE_CONNECT_RATE_NS);
	}
}

/* Switches to another user than root, with all descriptors the test may need. */
static void become(uid_t uid)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		_exit(1);
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) || setgid(uid) || setuid(uid))
		_exit(1);
}

/* Takes as many places as possible, and reports the number. */
static int squat(uint32_t service, int ready)
{
	unsigned char count[2];
	int fd, nr = 0;

	(void)service;
	become(STRANGER);
	while ((fd = weir_mux_ipc_connect(near.socket, NULL)) >= 0 && !say_hello(fd))
		nr++;
	count[0] = nr / 256;
	count[1] = nr % 256;
	if (write(ready, count, 2) != 2)
		return 1;
	pause();
	return 1;
}

/* Waits until the daemon has read that the user is denied. */
static int wait_denied(void)
{
	int fd, rc;

	do {
		fd = weir_mux_ipc_connect(near.socket, NULL);
		rc = fd < 0 ? fd : say_hello(fd);
		if (fd >= 0)
			close(fd);
	} while (!rc);
	return rc == -EPERM ? 0 : rc;
}

/* Connects more often than there are places, is denied, and stays. */
static int throng(uint32_t service, int ready)
{
	int i;

	(void)service;
	become(DENIED);
	if (wait_denied())
		return 1;
	for (i = 0; i < SHARE_TENANTS_MAX + SHARE_REFUSED_MAX; i++)
		weir_mux_ipc_connect(near.socket, NULL);
	if (write(ready, "", 1) != 1)
		return 1;
	pause();
	return 1;
}

/*
 * A killed process holds places until its RPC threads have ended, so retry for a while. With
 * too many refusals pending, the daemon cuts off a visitor without a reply.
 */
static int visit(uint32_t service, int ready)
{
	const uint64_t until_ns = weir_now_ns() + PATIENCE_MS * WEIR_NS_PER_MS;
	const struct weir_mux_options options = { .size = sizeof(options), .share = near.socket };
	struct weir_mux *mux;
	int rc;

	(void)service;
	become(STRANGER);
	while ((rc = weir_mux_open(&options, &mux, NULL)) != 0 && weir_now_ns() < until_ns)
		poll(NULL, 0, 1);
	if (rc)
		return 1;
	weir_mux_close(mux);
	return write(ready, "", 1) != 1;
}

static void need_root(void)
{
	if (!geteuid())
		return;
	print_message("only root can be two users\n");
	skip();
}

static void a_user_has_limited_places_and_root_keeps_some(void **state)
{
	pid_t child = child_start(SERVICE, "echo"), crowd;
	unsigned char count[2];
	struct weir_mux_conn *conn;
	struct weir_mux *mux;
	int ready[2];

	(void)state;
	need_root();
	assert_int_equal(pipe(ready), 0);
	crowd = child_exec("squat", SERVICE, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], count, 2), 2);
	close(ready[0]);
	assert_int_equal(count[0] * 256 + count[1], SHARE_TENANTS_OF_USER_MAX);
	mux = tenant_of(&near);
	conn = connect_to(mux, &far, SERVICE);
	round_trip(conn, 1000);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(crowd, SIGKILL);
	child_end(child, 0);
}

static void the_last_places_are_reserved_for_root(void **state)
{
	const unsigned int others = SHARE_TENANTS_MAX - SHARE_TENANTS_KEPT;

	(void)state;
	assert_int_equal(share_tenant_limits_check(false, false, others - 1, 0), 0);
	assert_int_equal(share_tenant_limits_check(false, false, others, 0), -EAGAIN);
	assert_int_equal(
		share_tenant_limits_check(false, false, 500, SHARE_TENANTS_OF_USER_MAX - 1), 0);
	assert_int_equal(share_tenant_limits_check(false, false, 500, SHARE_TENANTS_OF_USER_MAX),
			 -EAGAIN);
	assert_int_equal(share_tenant_limits_check(false, true, 0, 0), -EPERM);
	assert_int_equal(share_tenant_limits_check(true, true, others, SHARE_TENANTS_OF_USER_MAX),
			 0);
	assert_int_equal(share_tenant_limits_check(true, false, SHARE_TENANTS_MAX - 1, 500), 0);
	assert_int_equal(share_tenant_limits_check(true, false, SHARE_TENANTS_MAX, 500), -EAGAIN);
}

static void a_denied_tenant_takes_no_place(void **state)
{
	pid_t crowd;

	(void)state;
	need_root();
	config_write(&near, "default connections 65535\nuser 65533 deny\n");
	assert_int_equal(kill(near.pid, SIGHUP), 0);
	crowd = child_start(SERVICE, "throng");
	child_end(child_start(SERVICE, "visit"), 0);
	child_end(crowd, SIGKILL);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		ROLE_ECHO,
		{ "squat", NULL, squat },
		{ "throng", NULL, throng },
		{ "visit", NULL, visit },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(futile_connects_take_few_threads_and_break_nothing),
		cmocka_unit_test(queued_connects_of_a_gone_tenant_are_dropped),
		cmocka_unit_test(names_are_resolved_by_the_tenant),
		cmocka_unit_test(a_queued_connect_waits_no_longer_than_the_timeout),
		cmocka_unit_test(connects_are_rate_limited_with_a_burst),
		cmocka_unit_test(a_user_has_limited_places_and_root_keeps_some),
		cmocka_unit_test(the_last_places_are_reserved_for_root),
		cmocka_unit_test(a_denied_tenant_takes_no_place),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
