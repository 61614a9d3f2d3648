/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir share, and tenants of it in processes of their own. Two daemons, as on two hosts: the tests
 * are tenants of the one, and children they start of the other. Only the daemons have a device.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/platform.h"
#include "lib/mux/tenant.h"
#include "tests/lib/fixture.h"

#define SERVICE 5
#define PATIENCE_MS 60000 /* what does not come in so long does not come */

struct daemon {
	pid_t pid;
	char socket[80], config[80], address[64];
};

static char directory[] = "/tmp/weir-share-XXXXXX";
static struct daemon near, far;

/* The daemon's first line: "ready ADDR:PORT". */
static void read_address(struct daemon *d, int fd)
{
	char line[128];
	FILE *out = fdopen(fd, "r");

	assert_non_null(out);
	assert_non_null(fgets(line, sizeof(line), out));
	assert_int_equal(sscanf(line, "ready %63s", d->address), 1);
	fclose(out);
}

static void config_write(const struct daemon *d, const char *text)
{
	FILE *file = fopen(d->config, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void daemon_start(struct daemon *d, const char *name)
{
	int out[2];

	snprintf(d->socket, sizeof(d->socket), "%s/%s.sock", directory, name);
	snprintf(d->config, sizeof(d->config), "%s/%s.conf", directory, name);
	config_write(d, "default connections 1024\n");
	assert_int_equal(pipe(out), 0);
	d->pid = fork();
	if (!d->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left of a test that fails */
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(getenv("WEIR_TEST_WEIR"), "weir", "share", "--socket", d->socket, "--listen",
		      "127.0.0.1:0", "--config", d->config, "--device", "softnic", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	read_address(d, out[0]);
}

static void daemon_stop(struct daemon *d)
{
	int status;

	assert_int_equal(kill(d->pid, SIGTERM), 0);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(d->socket, F_OK), -1);
	unlink(d->config);
}

static int daemons_start(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	daemon_start(&near, "near");
	daemon_start(&far, "far");
	return 0;
}

static int daemons_stop(void **state)
{
	(void)state;
	daemon_stop(&near);
	daemon_stop(&far);
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

static struct weir_mux *tenant_of(const struct daemon *d)
{
	const struct weir_mux_options options = { .share = d->socket };
	struct weir_error error = { "" };
	struct weir_mux *mux = NULL;

	if (weir_mux_open(&options, &mux, &error))
		fail_msg("%s", error.text);
	return mux;
}

static void wait_readable(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };

	assert_true(fd >= 0);
	assert_int_equal(poll(&in, 1, PATIENCE_MS), 1);
}

static struct weir_conn *accept_from(struct weir_listener *listener)
{
	struct weir_conn *conn = NULL;
	int rc;

	while ((rc = weir_listener_accept(listener, &conn)) == -EAGAIN)
		wait_readable(weir_listener_fd(listener));
	assert_int_equal(rc, 0);
	return conn;
}

static struct weir_conn *connect_to(struct weir_mux *mux, const struct daemon *d, uint32_t service)
{
	struct weir_error error = { "" };
	struct weir_conn *conn = NULL;

	if (weir_mux_connect(mux, d->address, service, NULL, &conn, &error))
		fail_msg("%s", error.text);
	return conn;
}

/* Sends back what comes, until the other end closes. */
static int echo(struct weir_conn *conn, char *buffer, size_t size)
{
	size_t length;
	int rc;

	while (!(rc = weir_conn_recv(conn, buffer, size, &length, 0)))
		if (weir_conn_send(conn, buffer, length, 0))
			return 1;
	weir_conn_close(conn);
	return rc != -ENOTCONN;
}

/* What a child does, by name. It executes this very program: threads do not survive a fork. */
static pid_t child_exec(const char *role, uint32_t service, int told)
{
	char number[16], fd[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%u", service);
	snprintf(fd, sizeof(fd), "%d", told);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "share_test", role, number, fd, near.socket, far.socket,
		      far.address, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* A tenant of @far that offers @service; it does so when this returns. */
static pid_t child_start(uint32_t service, const char *role)
{
	char byte;
	int told[2];
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = child_exec(role, service, told[1]);
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return pid;
}

static void child_end(pid_t pid, int signal)
{
	int status;

	if (signal)
		assert_int_equal(kill(pid, signal), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, signal);
}

static int echo_one(struct weir_listener *listener)
{
	static char buffer[MIB];

	return echo(accept_from(listener), buffer, sizeof(buffer));
}

static void fill(char *data, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		data[i] = (char)((seed + i) * 2654435761u >> 11);
}

/* There and back. */
static void round_trip(struct weir_conn *conn, size_t length)
{
	char *data = malloc(length + 1), *got = calloc(1, length + 1);
	size_t received = 0;

	assert_true(data && got);
	fill(data, length, (unsigned int)length);
	assert_int_equal(weir_conn_send(conn, data, length, 0), 0);
	assert_int_equal(weir_conn_recv(conn, got, length, &received, 0), 0);
	assert_int_equal(received, length);
	assert_memory_equal(got, data, length);
	free(data);
	free(got);
}

static void messages_of_any_size_pass_between_tenants_of_two_daemons(void **state)
{
	static const size_t sizes[] = { 0, 1, 4088, 65527, 65529, 262136, 1000003 };
	pid_t child = child_start(SERVICE, "echo_one");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		round_trip(conn, sizes[i]);
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* Only waits to be killed. */
static int hold(struct weir_listener *listener)
{
	accept_from(listener);
	pause();
	return 1;
}

static void a_tenant_that_is_killed_is_heard_of_and_nobody_else_is_disturbed(void **state)
{
	int i, rc, rounds = 5;
	pid_t steady = child_start(SERVICE, "echo_one"), child;
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *other = connect_to(mux, &far, SERVICE), *conn;
	char data[1000] = "", got[10];
	size_t length;

	(void)state;
	for (i = 0; i < rounds; i++) {
		child = child_start(SERVICE + 1, "hold");
		conn = connect_to(mux, &far, SERVICE + 1);
		/* Both rings are full when it dies: something is on its way, always. */
		while (!weir_conn_send(conn, data, sizeof(data), WEIR_CONN_DONTWAIT))
			;
		child_end(child, SIGKILL);
		assert_int_equal(weir_conn_recv(conn, got, sizeof(got), &length, 0), -ECONNRESET);
		while (!(rc = weir_conn_send(conn, data, sizeof(data), 0)))
			;
		assert_int_equal(rc, -ECONNRESET);
		weir_conn_close(conn);
		round_trip(other, 200000);
	}
	weir_conn_close(other);
	weir_mux_close(mux);
	child_end(steady, 0);
}

static void who_does_not_read_is_held_back_alone(void **state)
{
	pid_t deaf = child_start(SERVICE + 1, "hold"), child = child_start(SERVICE, "echo_one");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *unread = connect_to(mux, &far, SERVICE + 1);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	char *data = calloc(1, 100000);
	int i;

	(void)state;
	assert_non_null(data);
	for (i = 0; i < 10; i++) {
		while (!weir_conn_send(unread, data, 100000, WEIR_CONN_DONTWAIT))
			;
		round_trip(conn, 200000);
	}
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
	child_end(deaf, SIGKILL);
	free(data);
}

static void descriptors_say_when_a_call_is_worth_it(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	struct pollfd fds[] = { { .fd = weir_conn_fd(conn), .events = POLLIN },
				{ .fd = weir_conn_room_fd(conn), .events = POLLIN } };
	int sent = 0, received = 0, n = 400;
	char data[4000] = "", got[4000];
	size_t length;

	(void)state;
	while (received < n) {
		while (sent < n && !weir_conn_send(conn, data, sizeof(data), WEIR_CONN_DONTWAIT))
			sent++;
		while (!weir_conn_recv(conn, got, sizeof(got), &length, WEIR_CONN_DONTWAIT))
			received++;
		if (received < n)
			assert_true(poll(fds, sent < n ? 2 : 1, PATIENCE_MS) > 0);
	}
	assert_int_equal(received, n);
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* Rings for nothing, as fast as it can, until it is killed. */
static int flood(struct weir_listener *listener)
{
	int bell = container_of(listener, struct weir_tenant_offer, listener)->tenant->bell;
	struct pollfd out = { .fd = bell, .events = POLLOUT };
	static char bytes[65536];

	while (poll(&out, 1, -1) == 1 && (send(bell, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0 ||
					  errno == EAGAIN))
		;
	return 1;
}

static void a_tenant_that_rings_all_the_time_holds_nobody_up(void **state)
{
	pid_t loud = child_start(SERVICE + 1, "flood"), child = child_start(SERVICE, "echo_one");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		round_trip(conn, 100000);
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
	child_end(loud, SIGKILL);
}

/* Takes what comes first, answers it, and so on in turn, until all have closed. */
#define EACH 128
#define PROCESSES 16

static int echo_many(struct weir_listener *listener)
{
	struct weir_conn *conns[EACH];
	char buffer[4096];
	int i, rc = 0;

	for (i = 0; i < EACH; i++)
		conns[i] = accept_from(listener);
	for (i = 0; i < EACH; i++)
		rc |= echo(conns[i], buffer, sizeof(buffer));
	return rc;
}

static int talk_many(uint32_t service)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conns[EACH];
	int i;

	for (i = 0; i < EACH; i++)
		conns[i] = connect_to(mux, &far, service);
	for (i = 0; i < EACH; i++) {
		round_trip(conns[i], 1 + (size_t)i * 30);
		weir_conn_close(conns[i]);
	}
	weir_mux_close(mux);
	return 0;
}

static void a_thousand_connections_of_sixteen_processes_share_one_queue_pair(void **state)
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
	weir_mux_info(mux, &info);
	assert_int_equal(info.queue_pairs, 2); /* class 0 introduces, the connections' is class 1 */
	weir_mux_close(mux);
}

/* What a tenant can write where the daemon reads: at random, all of it, and more than once. */
static void scribble(struct weir_conn *app, uint32_t seed)
{
	struct weir_tenant_conn *conn = container_of(app, struct weir_tenant_conn, app);
	volatile uint32_t *words[] = { (uint32_t *)app->door, (uint32_t *)conn->tenant->board };
	size_t sizes[] = { sizeof(*app->door), sizeof(*conn->tenant->board) }, i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < sizes[i] / sizeof(uint32_t); k++) {
			seed = seed * 1664525 + 1013904223;
			words[i][k] = seed;
		}
	conn->app.host->news(app);
}

static void what_a_tenant_scribbles_into_its_memory_harms_it_alone(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one"), victim;
	struct weir_mux *mux = tenant_of(&near), *hostile;
	struct weir_conn *conn = connect_to(mux, &far, SERVICE), *bad;
	uint32_t seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		victim = child_start(SERVICE + 1, "hold");
		hostile = tenant_of(&near);
		bad = connect_to(hostile, &far, SERVICE + 1);
		assert_int_equal(weir_conn_send(bad, "hello", 5, 0), 0);
		scribble(bad, seed);
		round_trip(conn, 100000);
		weir_conn_close(bad);
		weir_mux_close(hostile);
		child_end(victim, SIGKILL);
	}
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* Questions that make no sense, in any order, of any length. */
static void what_a_tenant_asks_at_random_harms_nobody(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	struct weir_share_ask hello = { .what = WEIR_SHARE_HELLO, .value = WEIR_SHARE_VERSION };
	struct weir_share_answer answer;
	uint32_t seed, i;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		int fd = weir_share_dial(near.socket, NULL);

		assert_true(fd >= 0);
		if (seed % 4)
			assert_int_equal(weir_share_send(fd, &hello, sizeof(hello), NULL, 0), 0);
		if (seed % 4)
			assert_int_equal(weir_share_recv(fd, &answer, sizeof(answer), NULL), 0);
		for (i = 0; i < 30; i++) {
			struct weir_share_ask ask = { .what = (seed + i) % 18, .number = i,
						      .nr = i * seed * 2654435761u,
						      .value = i, .class_nr = seed,
						      .weight = i << seed % 32 };

			if (ask.what == WEIR_SHARE_CONNECT)
				memset(ask.peer, 'x', sizeof(ask.peer));
			if (weir_share_send(fd, &ask, i % 29 ? sizeof(ask) : i, NULL, 0))
				break; /* it has had enough */
		}
		close(fd);
		round_trip(conn, 1000);
	}
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

static void who_does_not_begin_with_hello_is_sent_away(void **state)
{
	struct weir_share_ask ask = { .what = WEIR_SHARE_INFO };
	struct weir_share_answer answer;
	int fd = weir_share_dial(near.socket, NULL);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(weir_share_send(fd, &ask, sizeof(ask), NULL, 0), 0);
	assert_int_equal(weir_share_recv(fd, &answer, sizeof(answer), NULL), 0);
	assert_int_equal(answer.status, -EPROTO);
	assert_int_equal(weir_share_recv(fd, &answer, sizeof(answer), NULL), -ECONNRESET);
	close(fd);
}

/* What 'weir top' says of near's tenants. */
static void top_read(char *text, size_t size)
{
	char command[512];
	size_t length;
	FILE *out;

	snprintf(command, sizeof(command), "%s top --socket %s --once --json --flows --interval 0.01",
		 getenv("WEIR_TEST_WEIR"), near.socket);
	out = popen(command, "r");
	assert_non_null(out);
	length = fread(text, 1, size - 1, out);
	text[length] = '\0';
	assert_int_equal(pclose(out), 0);
}

#define LENT MIB

/* Lends its memory, and waits to be killed, or for the other end to go. */
static int lend(struct weir_listener *listener, struct weir_mux *mux)
{
	struct weir_conn *conn = accept_from(listener);
	struct weir_mux_region *region;
	uint32_t handle, got;
	size_t length;

	if (weir_mux_region_open(mux, LENT, &region) ||
	    weir_conn_grant(conn, region, 0, LENT, WEIR_MAY_READ | WEIR_MAY_WRITE, &handle) ||
	    weir_conn_send(conn, &handle, sizeof(handle), 0))
		return 1;
	while (!weir_conn_recv(conn, &got, sizeof(got), &length, 0))
		;
	weir_conn_close(conn);
	return weir_mux_region_close(region);
}

static uint32_t handle_of(struct weir_conn *conn)
{
	uint32_t handle = 0;
	size_t length;

	assert_int_equal(weir_conn_recv(conn, &handle, sizeof(handle), &length, 0), 0);
	return handle;
}

static void tenants_read_and_write_by_handles_and_not_by_anothers(void **state)
{
	pid_t child = child_start(SERVICE, "lend"), second = child_start(SERVICE + 1, "lend");
	struct weir_mux *mux = tenant_of(&near), *hostile = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	struct weir_conn *other = connect_to(hostile, &far, SERVICE + 1);
	uint32_t handle = handle_of(conn), others = handle_of(other);
	struct weir_mux_region *region, *foreign;
	char *data;

	(void)state;
	assert_int_equal(weir_mux_region_open(mux, 2 * LENT, &region), 0);
	assert_int_equal(weir_mux_region_open(hostile, 4096, &foreign), 0);
	data = weir_mux_region_data(region);
	fill(data, LENT, 1);
	assert_int_equal(weir_conn_write(conn, handle, 0, region, 0, LENT), 0);
	assert_int_equal(weir_conn_read(conn, handle, 0, region, LENT, LENT), 0);
	assert_memory_equal(data, data + LENT, LENT);
	/* A number that is not its own, of either kind, and one that nobody has. */
	assert_int_equal(weir_conn_write(other, others + 1, 0, foreign, 0, 1), -EACCES);
	foreign->number += 1;
	assert_int_equal(weir_conn_write(other, others, 0, foreign, 0, 1), -EINVAL);
	foreign->number -= 1;
	assert_int_equal(weir_conn_read(other, others, LENT, foreign, 0, 1), -EACCES);
	assert_int_equal(weir_conn_read(other, others, 0, foreign, 1, 4096), -EINVAL);
	weir_conn_close(conn);
	weir_conn_close(other);
	assert_int_equal(weir_mux_region_close(region), 0);
	assert_int_equal(weir_mux_region_close(foreign), 0);
	weir_mux_close(mux);
	weir_mux_close(hostile);
	child_end(child, 0);
	child_end(second, 0);
}

/* Its memory goes when nothing is posted to it any more: the queue pair of all is whole. */
static void who_lends_and_is_killed_breaks_nothing(void **state)
{
	pid_t steady = child_start(SERVICE, "echo_one"), child;
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *other = connect_to(mux, &far, SERVICE), *conn;
	struct weir_mux_region *region;
	uint32_t handle;
	int i, rc;

	(void)state;
	assert_int_equal(weir_mux_region_open(mux, LENT, &region), 0);
	for (i = 0; i < 5; i++) {
		child = child_start(SERVICE + 1, "lend");
		conn = connect_to(mux, &far, SERVICE + 1);
		handle = handle_of(conn);
		assert_int_equal(weir_conn_write(conn, handle, 0, region, 0, LENT), 0);
		assert_int_equal(kill(child, SIGKILL), 0);
		do {
			rc = weir_conn_write(conn, handle, 0, region, 0, LENT);
		} while (!rc);
		assert_int_equal(rc, -ECONNRESET);
		child_end(child, SIGKILL);
		weir_conn_close(conn);
		round_trip(other, 100000);
	}
	weir_conn_close(other);
	assert_int_equal(weir_mux_region_close(region), 0);
	weir_mux_close(mux);
	child_end(steady, 0);
}

static void who_looks_sees_who_has_sent_how_much(void **state)
{
	static const char *const said[] = {
		"\"process\": \"share_test\"", "\"connections\": 1,", "\"weight\": 1,",
		"\"flows\": [{\"connection\": ", "\"queued_bytes\": 0}",
	};
	pid_t child = child_start(SERVICE, "echo_one");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_conn *conn = connect_to(mux, &far, SERVICE);
	char text[8192];
	size_t i;

	(void)state;
	round_trip(conn, 1000003);
	do { /* the daemon counts what has been done a moment later */
		top_read(text, sizeof(text));
	} while (!strstr(text, "\"bytes_sent\": 1000011, \"bytes_received\": 1000011, \"turns\""));
	for (i = 0; i < sizeof(said) / sizeof(*said); i++)
		if (!strstr(text, said[i]))
			fail_msg("%s is not in %s", said[i], text);
	weir_conn_close(conn);
	weir_mux_close(mux);
	do {
		top_read(text, sizeof(text));
	} while (strstr(text, "\"connections\": 1,"));
	child_end(child, 0);
}

static void who_has_no_descriptor_left_hears_so_and_may_try_again(void **state)
{
	struct weir_mux *mux = tenant_of(&near);
	struct weir_listener *listener = NULL;
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
	weir_listener_close(listener);
	weir_mux_close(mux);
}

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

static void the_configuration_says_who_may_and_how_much(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one");
	struct weir_conn *conn, *second = NULL;
	struct weir_error error = { "" };
	struct weir_mux *mux;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default connections 1 class 1 rate 50M\n", 0);
	mux = tenant_of(&near);
	conn = connect_to(mux, &far, SERVICE);
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
	configure("default connections 1024\n", 0);
	child_end(child, 0);
}

/* The rings of its connections take 8 MiB and some of them. */
static void regions_and_rings_are_of_the_memory_that_the_configuration_grants(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one");
	struct weir_mux_region *region, *second = NULL;
	struct weir_conn *conn;
	struct weir_mux *mux;

	(void)state;
	configure("default deny\n", -EPERM);
	configure("default memory 9M\n", 0);
	mux = tenant_of(&near);
	conn = connect_to(mux, &far, SERVICE);
	assert_int_equal(weir_mux_region_open(mux, MIB / 2, &region), 0);
	assert_int_equal(weir_mux_region_open(mux, 3 * MIB / 4, &second), -EDQUOT);
	assert_int_equal(weir_mux_region_close(region), 0);
	assert_int_equal(weir_mux_region_open(mux, 3 * MIB / 4, &region), 0);
	round_trip(conn, 1000);
	assert_int_equal(weir_mux_region_close(region), 0);
	weir_conn_close(conn);
	weir_mux_close(mux);
	configure("default deny\n", -EPERM);
	configure("default connections 1024\n", 0);
	child_end(child, 0);
}

static void who_is_denied_by_a_new_configuration_makes_nothing_more(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one");
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
	configure("default connections 1024\n", 0);
	weir_conn_close(conn);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* At the first rate, what is sent would take hours. */
static void a_higher_rate_holds_for_what_waits_already(void **state)
{
	pid_t child = child_start(SERVICE, "echo_one");
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
	configure("default rate 1G connections 1024\n", 0);
	assert_int_equal(weir_conn_recv(conn, data, 200000, &length, 0), 0);
	assert_int_equal(length, 200000);
	weir_conn_close(conn);
	weir_mux_close(mux);
	configure("default connections 1024\n", 0);
	child_end(child, 0);
	free(data);
}

struct reading {
	pthread_t thread;
	struct weir_conn *conn;
	int rc;
};

static void *read_one(void *arg)
{
	struct reading *r = arg;
	size_t length;
	char got[10];

	r->rc = weir_conn_recv(r->conn, got, sizeof(got), &length, 0);
	return NULL;
}

/* It ends the daemon, and starts another. */
static void the_end_of_the_daemon_wakes_who_waits(void **state)
{
	pid_t child = child_start(SERVICE, "hold");
	struct weir_mux *mux = tenant_of(&near);
	struct reading r = { .conn = connect_to(mux, &far, SERVICE) };
	struct weir_conn *none = NULL;

	(void)state;
	assert_int_equal(pthread_create(&r.thread, NULL, read_one, &r), 0);
	daemon_stop(&near);
	assert_int_equal(pthread_join(r.thread, NULL), 0);
	assert_int_equal(r.rc, -ECONNRESET);
	assert_int_equal(weir_mux_connect(mux, far.address, SERVICE, NULL, &none, NULL),
			 -ECONNRESET);
	weir_conn_close(r.conn);
	weir_mux_close(mux);
	child_end(child, SIGKILL);
	daemon_start(&near, "near");
}

static int serve(const char *role, uint32_t service, int told)
{
	struct weir_listener *listener;
	struct weir_mux *mux = tenant_of(&far);
	int rc;

	/* Who offered it before has been killed, and the daemon may not have cleaned up yet. */
	while ((rc = weir_mux_listen(mux, service, 1024, &listener)) == -EADDRINUSE)
		poll(NULL, 0, 1);
	if (rc || write(told, "", 1) != 1)
		return 1;
	if (!strcmp(role, "echo_one"))
		return echo_one(listener);
	if (!strcmp(role, "lend"))
		return lend(listener, mux);
	if (!strcmp(role, "flood"))
		return flood(listener);
	return strcmp(role, "hold") ? echo_many(listener) : hold(listener);
}

/* A child: ROLE SERVICE FD NEAR-SOCKET FAR-SOCKET FAR-ADDRESS. */
static int child_main(char **argv)
{
	uint32_t service = (uint32_t)atoi(argv[2]);

	snprintf(near.socket, sizeof(near.socket), "%s", argv[4]);
	snprintf(far.socket, sizeof(far.socket), "%s", argv[5]);
	snprintf(far.address, sizeof(far.address), "%s", argv[6]);
	if (!strcmp(argv[1], "talk_many"))
		return talk_many(service);
	return serve(argv[1], service, atoi(argv[3]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_any_size_pass_between_tenants_of_two_daemons),
		cmocka_unit_test(a_tenant_that_is_killed_is_heard_of_and_nobody_else_is_disturbed),
		cmocka_unit_test(who_does_not_read_is_held_back_alone),
		cmocka_unit_test(descriptors_say_when_a_call_is_worth_it),
		cmocka_unit_test(a_thousand_connections_of_sixteen_processes_share_one_queue_pair),
		cmocka_unit_test(what_a_tenant_scribbles_into_its_memory_harms_it_alone),
		cmocka_unit_test(what_a_tenant_asks_at_random_harms_nobody),
		cmocka_unit_test(a_tenant_that_rings_all_the_time_holds_nobody_up),
		cmocka_unit_test(who_does_not_begin_with_hello_is_sent_away),
		cmocka_unit_test(tenants_read_and_write_by_handles_and_not_by_anothers),
		cmocka_unit_test(who_lends_and_is_killed_breaks_nothing),
		cmocka_unit_test(who_looks_sees_who_has_sent_how_much),
		cmocka_unit_test(who_has_no_descriptor_left_hears_so_and_may_try_again),
		cmocka_unit_test(the_configuration_says_who_may_and_how_much),
		cmocka_unit_test(regions_and_rings_are_of_the_memory_that_the_configuration_grants),
		cmocka_unit_test(who_is_denied_by_a_new_configuration_makes_nothing_more),
		cmocka_unit_test(a_higher_rate_holds_for_what_waits_already),
		cmocka_unit_test(the_end_of_the_daemon_wakes_who_waits),
	};

	if (argc == 7)
		return child_main(argv);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
