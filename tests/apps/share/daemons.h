/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two daemons, as on two hosts. The tests are tenants of one daemon; child processes are tenants
 * of the other. Only the daemons have a device: softnic, or for some tests the device in
 * $WEIR_DEVICE.
 */
#ifndef WEIR_TESTS_APPS_SHARE_DAEMONS_H
#define WEIR_TESTS_APPS_SHARE_DAEMONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/mux/proxy/ipc.h"
#include "tests/support/mux_pair.h"

struct daemon {
	pid_t pid;
	char socket[80], config[80], address[64];
};

extern struct daemon near, far;

/* Group setup and teardown for both daemons. */
int daemons_start(void **state);
int daemons_stop(void **state);
void daemon_start(struct daemon *d, const char *name);
/* With additional configuration lines. */
void daemon_start_with(struct daemon *d, const char *name, const char *lines);
void daemon_stop(struct daemon *d);
void config_write(const struct daemon *d, const char *text);
/* Whether the process is a tenant; false from when the daemon noticed the end. */
bool daemon_has(const struct daemon *d, pid_t pid);
/* Return: the weight of flow @nr of tenant @pid; 0: no such flow. */
unsigned int daemon_weighs(const struct daemon *d, pid_t pid, uint32_t nr);
/* Reads weir top's data of tenant @pid and of the tenant's only connection. */
void daemon_shows(const struct daemon *d, pid_t pid, struct weir_mux_ipc_tenant *tenant,
		  struct weir_mux_ipc_flow *flow);
/* Stops all threads of the daemon until SIGCONT. */
void daemon_halt(const struct daemon *d);

struct weir_mux *tenant_of(const struct daemon *d);
struct weir_mux_conn *connect_to(struct weir_mux *mux, const struct daemon *d, uint32_t service);

/**
 * struct role - the behaviour of a child, by name
 * @serve: a tenant of @far that offers the service; NULL for other children
 * @call: any other behaviour; writes to @ready once the test may go on
 *
 * The child executes the test's own program, because threads do not survive a fork. Return: the
 * exit status.
 */
struct role {
	const char *name;
	int (*serve)(struct weir_mux_listener *listener, struct weir_mux *mux);
	int (*call)(uint32_t service, int ready);
};

/* A role common to all tests: accepts one connection, echoes, and waits to be killed. */
#define ROLE_ECHO                      \
	{                              \
		"echo", echo_one, NULL \
	}
#define ROLE_HOLD                  \
	{                          \
		"hold", hold, NULL \
	}
int echo_one(struct weir_mux_listener *listener, struct weir_mux *mux);
int hold(struct weir_mux_listener *listener, struct weir_mux *mux);
/* Echoes until the peer closes. */
int echo(struct weir_mux_conn *conn, char *buffer, size_t size);

/* child_start() returns when the child is ready; child_exec() returns at once. */
pid_t child_start(uint32_t service, const char *role);
pid_t child_exec(const char *role, uint32_t service, int ready);
/* Kills the child by @signal; 0: waits for a successful exit. */
void child_end(pid_t pid, int signal);
/*
 * Whether this process is a child; and the main program of a child. The last of @roles has no
 * name.
 */
#define IS_CHILD(argc) ((argc) == 7)
int child_main(char **argv, const struct role *roles);

void fill(char *data, size_t length, unsigned int seed);
/* Sends a message and receives the echo. */
void round_trip(struct weir_mux_conn *conn, size_t length);

#endif
