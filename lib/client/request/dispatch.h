/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callbacks: run by whoever has polled, outside the lock, never one inside another.
 *
 * A callback may submit, and what it submits may be done before the submitting call
 * returns; were its callback run there and then, the stack would grow without end. So
 * inside a callback nothing is delivered: the delivery that runs the callback comes round. Nor is
 * anything posted that callbacks submit, before all of a round have returned: see serve.h.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_DISPATCH_H
#define WEIR_LIB_CLIENT_REQUEST_DISPATCH_H

#include <stdbool.h>

struct weir_nic;
struct weir_session;

/* Gives up nic->lock, which is held, and runs what waits to be run. */
void weir_dispatch(struct weir_session *session);

/* The same, but has the lock again when it returns. */
void weir_dispatch_locked(struct weir_session *session);

/* What waits to be run, if anything, is left to who drives the session. With nic->lock held. */
void weir_dispatch_later(struct weir_session *session);

/* Is this thread running a callback? */
bool weir_dispatch_is_inside(void);

/*
 * The NIC of the session whose callbacks this thread runs, or NULL. Looked at by each request: in a
 * shared library, too, one access.
 */
extern _Thread_local const struct weir_nic *weir_dispatch_nic
	__attribute__((tls_model("initial-exec")));

#endif
