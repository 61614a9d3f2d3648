/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two daemons, as on two hosts: the tests are tenants of the one, and children they start of the
 * other. Only the daemons have a device: softnic, or what $WEIR_DEVICE names, where some of the
 * tests run.
 */
#ifndef WEIR_TESTS_APPS_SHARE_DAEMONS_H
#define WEIR_TESTS_APPS_SHARE_DAEMONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/mux/proxy/ipc.h"
#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define PATIENCE_MS 60000 /* what does not come in so long does not come */

struct daemon {
	pid_t pid;
	char socket[80], config[80], address[64];
};

extern struct daemon near, far;

/* Group set-up and tear-down: both. */
int daemons_start(void **state);
int daemons_stop(void **state);
void daemon_start(struct daemon *d, const char *name);
/* With further lines of its configuration. */
void daemon_start_with(struct daemon *d, const char *name, const char *lines);
void daemon_stop(struct daemon *d);
void config_write(const struct daemon *d, const char *text);
/* Whether the process is a tenant of its: not from when it has been heard that it ended. */
bool daemon_has(const struct daemon *d, pid_t pid);
/* The weight that its flow @nr of tenant @pid has; 0: there is no such. */
unsigned int daemon_weighs(const struct daemon *d, pid_t pid, uint32_t nr);
/* What weir top shows of tenant @pid, which has one connection, and of that. */
void daemon_shows(const struct daemon *d, pid_t pid, struct weir_mux_ipc_tenant *tenant,
		  struct weir_mux_ipc_flow *flow);
/* Nothing in it moves, until SIGCONT. */
void daemon_halt(const struct daemon *d);

struct weir_mux *tenant_of(const struct daemon *d);
void wait_readable(int fd);
struct weir_mux_conn *accept_from(struct weir_mux_listener *listener);
struct weir_mux_conn *connect_to(struct weir_mux *mux, const struct daemon *d, uint32_t service);

/**
 * struct role - what a child does, by name
 * @serve: a tenant of @far: it offers the service; NULL: the other
 * @call: whatever it is; writes to @credited once the test may go on
 *
 * It executes the test's own program: threads do not survive a fork. Return: its exit status.
 */
struct role {
	const char *name;
	int (*serve)(struct weir_mux_listener *listener, struct weir_mux *mux);
	int (*call)(uint32_t service, int credited);
};

/* Of all tests: sends back what comes on one connection; accepts one, and waits to be killed. */
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
/* Sends back what comes, until the other end closes. */
int echo(struct weir_mux_conn *conn, char *buffer, size_t size);

/* A child is ready when child_start() returns; with child_exec() nobody waits for it. */
pid_t child_start(uint32_t service, const char *role);
pid_t child_exec(const char *role, uint32_t service, int credited);
/* Kills it by @signal; 0: waits until it ends well. */
void child_end(pid_t pid, int signal);
/* Whether this is a child; and what one does, of @roles, the last of which has no name. */
#define IS_CHILD(argc) ((argc) == 7)
int child_main(char **argv, const struct role *roles);

void fill(char *data, size_t length, unsigned int seed);
/* There and back. */
void round_trip(struct weir_mux_conn *conn, size_t length);

#endif
