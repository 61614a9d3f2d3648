/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the connection manager's tests: events with a deadline, and two ends, A that
 * connects and B that listens, in one or two processes.
 */
#ifndef WEIR_TESTS_SOFTNIC_CM_CM_FIXTURE_H
#define WEIR_TESTS_SOFTNIC_CM_CM_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/rdma_cma.h>

enum { PATIENCE_MS = 60000 };

struct cm_ends {
	struct rdma_event_channel *a_channel, *b_channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *a, *b;
};

/*
 * The next event of a channel, of type @type and in time. The caller acknowledges the event.
 * TIMEWAIT_EXIT is skipped unless expected.
 */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/* The same, with acknowledgement. Return: the event's status. */
int expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/* No event but TIMEWAIT_EXIT comes for a short while. */
void expect_silence(struct rdma_event_channel *channel);

/* "127.0.0.1" or "::1", as a sockaddr for rdma_cm. */
struct sockaddr *address(const char *text, uint16_t port);

/* Listen on @text; @port 0: any. Return: the port. */
uint16_t listen_on(struct cm_ends *e, const char *text, uint16_t port);

/* Create A and prepare it for rdma_connect(). */
void resolve(struct cm_ends *e, const char *text, uint16_t port);

void resolve_to(struct cm_ends *e, struct sockaddr *sa);

/* The same for an existing id. */
void resolve_id(struct rdma_cm_id *id, struct sockaddr *sa);

/* A small RC QP on an id. */
void create_qp(struct rdma_cm_id *id);

/* Set up a connection with QPs on both ends. */
void connect_ends(struct cm_ends *e);

/* cmocka's setup and teardown: open channels and listener; close everything still open. */
int open_ends(void **state);
int close_ends(void **state);

#endif
