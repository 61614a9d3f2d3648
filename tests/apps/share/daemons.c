/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Common code of the tests of weir share. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/mux/proxy/ipc.h"
#include "tests/apps/share/daemons.h"

struct daemon near, far;
static char directory[] = "/tmp/weir-share-XXXXXX";

/* Parses the daemon's first line: "ready ADDR:PORT". */
static void read_address(struct daemon *d, int fd)
{
	char line[128];
	FILE *out = fdopen(fd, "r");

	assert_non_null(out);
	assert_non_null(fgets(line, sizeof(line), out));
	assert_int_equal(sscanf(line, "ready %63s", d->address), 1);
	fclose(out);
}

void config_write(const struct daemon *d, const char *text)
{
	FILE *file = fopen(d->config, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void daemon_exec(const struct daemon *d)
{
	const char *device = getenv("WEIR_DEVICE"), *key = getenv("WEIR_TEST_KEY");
	char listen[80];

	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	execl(getenv("WEIR_TEST_WEIR"), "weir", "share", "--socket", d->socket, "--listen", listen,
	      "--config", d->config, "--device", device ? device : "softnic", key ? "--key" : NULL,
	      key, (char *)NULL);
	_exit(127);
}

void daemon_start(struct daemon *d, const char *name)
{
	daemon_start_with(d, name, "");
}

void daemon_start_with(struct daemon *d, const char *name, const char *lines)
{
	char config[256];
	int out[2];

	snprintf(d->socket, sizeof(d->socket), "%s/%s.sock", directory, name);
	snprintf(d->config, sizeof(d->config), "%s/%s.conf", directory, name);
	snprintf(config, sizeof(config), "default connections 65535\n%s", lines);
	config_write(d, config);
	assert_int_equal(pipe(out), 0);
	d->pid = fork();
	if (!d->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test leaves no daemons behind */
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		daemon_exec(d);
	}
	close(out[1]);
	read_address(d, out[0]);
}

void daemon_stop(struct daemon *d)
{
	int status;

	assert_true(d->pid > 0); /* 0 would end the whole process group */
	assert_int_equal(kill(d->pid, SIGTERM), 0);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(d->socket, F_OK), -1);
	unlink(d->config);
}

static struct weir_mux_ipc_reply query(int fd, struct weir_mux_ipc_request ask)
{
	struct weir_mux_ipc_reply answer;

	assert_int_equal(weir_mux_ipc_send(fd, &ask, sizeof(ask), NULL, 0), 0);
	assert_int_equal(weir_mux_ipc_recv(fd, &answer, sizeof(answer), NULL), 0);
	return answer;
}

/* This connection is no tenant, since it sends no HELLO. */
static struct weir_mux_ipc_tenant tenant_is(int fd, pid_t pid)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_TENANT };
	struct weir_mux_ipc_reply answer;

	while (!(answer = query(fd, ask)).status) {
		if (answer.tenant.pid == (uint32_t)pid)
			return answer.tenant;
		ask.nr = answer.tenant.nr;
	}
	return (struct weir_mux_ipc_tenant){ 0 };
}

bool daemon_has(const struct daemon *d, pid_t pid)
{
	int fd = weir_mux_ipc_connect(d->socket, NULL);
	uint32_t nr;

	assert_true(fd >= 0);
	nr = tenant_is(fd, pid).nr;
	close(fd);
	return nr;
}

unsigned int daemon_weighs(const struct daemon *d, pid_t pid, uint32_t nr)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_FLOW, .value = nr };
	struct weir_mux_ipc_reply answer;
	int fd = weir_mux_ipc_connect(d->socket, NULL);

	assert_true(fd >= 0);
	ask.nr = tenant_is(fd, pid).nr;
	answer = query(fd, ask);
	close(fd);
	return !answer.status && answer.flow.nr == nr ? answer.flow.weight : 0;
}

void daemon_shows(const struct daemon *d, pid_t pid, struct weir_mux_ipc_tenant *tenant,
		  struct weir_mux_ipc_flow *flow)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_FLOW };
	struct weir_mux_ipc_reply answer;
	int fd = weir_mux_ipc_connect(d->socket, NULL);

	assert_true(fd >= 0);
	*tenant = tenant_is(fd, pid);
	assert_int_not_equal(tenant->nr, 0);
	ask.nr = tenant->nr;
	answer = query(fd, ask);
	close(fd);
	assert_int_equal(answer.status, 0);
	*flow = answer.flow;
}

void daemon_halt(const struct daemon *d)
{
	int status;

	assert_int_equal(kill(d->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(d->pid, &status, WUNTRACED), d->pid);
	assert_true(WIFSTOPPED(status));
}

int daemons_start(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0711), 0); /* tenants may be of any user */
	daemon_start(&near, "near");
	daemon_start(&far, "far");
	return 0;
}

int daemons_stop(void **state)
{
	(void)state;
	daemon_stop(&near);
	daemon_stop(&far);
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

struct weir_mux *tenant_of(const struct daemon *d)
{
	const struct weir_mux_options options = { .size = sizeof(options), .share = d->socket };

	return mux_open(&options);
}

struct weir_mux_conn *connect_to(struct weir_mux *mux, const struct daemon *d, uint32_t service)
{
	struct weir_error error = { "" };
	struct weir_mux_conn *conn = NULL;

	if (weir_mux_connect(mux, d->address, service, NULL, &conn, &error))
		fail_msg("%s", error.text);
	return conn;
}

int echo(struct weir_mux_conn *conn, char *buffer, size_t size)
{
	size_t length;
	int rc;

	while (!(rc = weir_mux_conn_recv(conn, buffer, size, &length, 0)))
		if (weir_mux_conn_send(conn, buffer, length, 0))
			return 1;
	weir_mux_conn_close(conn);
	return rc != -ENOTCONN;
}

pid_t child_exec(const char *role, uint32_t service, int ready)
{
	char number[16], fd[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%u", service);
	snprintf(fd, sizeof(fd), "%d", ready);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "share", role, number, fd, near.socket, far.socket,
		      far.address, (char *)NULL);
		_exit(127);
	}
	return pid;
}

pid_t child_start(uint32_t service, const char *role)
{
	char byte;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = child_exec(role, service, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

void child_end(pid_t pid, int signal)
{
	int status;

	if (signal)
		assert_int_equal(kill(pid, signal), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, signal);
}

int echo_one(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	static char buffer[MIB];

	(void)mux;
	return echo(accept_from(listener), buffer, sizeof(buffer));
}

int hold(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	(void)mux;
	accept_from(listener);
	pause();
	return 1;
}

void fill(char *data, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		data[i] = (char)((seed + i) * 2654435761u >> 11);
}

void round_trip(struct weir_mux_conn *conn, size_t length)
{
	char *data = malloc(length + 1), *got = calloc(1, length + 1);
	size_t received = 0;

	assert_true(data && got);
	fill(data, length, (unsigned int)length);
	assert_int_equal(weir_mux_conn_send(conn, data, length, 0), 0);
	assert_int_equal(weir_mux_conn_recv(conn, got, length, &received, 0), 0);
	assert_int_equal(received, length);
	assert_memory_equal(got, data, length);
	free(data);
	free(got);
}

static int serve(const struct role *role, uint32_t service, int ready)
{
	struct weir_mux_listener *listener;
	struct weir_mux *mux = tenant_of(&far);
	int rc;

	/*
	 * The last process to offer the service was killed, and the daemon may still be cleaning
	 * up.
	 */
	while ((rc = weir_mux_listen(mux, service, 1024, &listener)) == -EADDRINUSE)
		poll(NULL, 0, 1);
	if (rc || write(ready, "", 1) != 1)
		return 1;
	return role->serve(listener, mux);
}

/* Arguments: ROLE SERVICE FD NEAR-SOCKET FAR-SOCKET FAR-ADDRESS. */
int child_main(char **argv, const struct role *roles)
{
	uint32_t service = (uint32_t)atoi(argv[2]);

	snprintf(near.socket, sizeof(near.socket), "%s", argv[4]);
	snprintf(far.socket, sizeof(far.socket), "%s", argv[5]);
	snprintf(far.address, sizeof(far.address), "%s", argv[6]);
	while (roles->name && strcmp(roles->name, argv[1]))
		roles++;
	if (!roles->name)
		return 1;
	return roles->call ? roles->call(service, atoi(argv[3])) :
			     serve(roles, service, atoi(argv[3]));
}
