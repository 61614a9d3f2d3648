/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callbacks run in any thread that is inside a call on the session, or in the thread that drives
 * it: outside the lock, and never nested. Several threads may run callbacks of a session at once.
 *
 * A callback may submit, and the request may complete before the submitting call returns. Running
 * its callback at once would grow the stack without bound. So inside a callback nothing is
 * delivered: the dispatching thread starts another round. Requests from callbacks are posted after
 * the round, too: see combine.h.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_DISPATCH_H
#define WEIR_LIB_CLIENT_REQUEST_DISPATCH_H

#include <stdbool.h>

struct weir_nic;
struct weir_session;

/* Runs the pending callbacks. Context: with nic->lock held; returns without. */
void weir_dispatch(struct weir_session *session);

/* As weir_dispatch(), but holds the lock again on return. */
void weir_dispatch_locked(struct weir_session *session);

/* Leaves pending callbacks to the thread that drives the session. Context: with nic->lock held. */
void weir_dispatch_later(struct weir_session *session);

/* Return: true if this thread is running a callback. */
bool weir_dispatch_is_inside(void);

/*
 * The NIC of the session whose callbacks this thread runs, or NULL. Every request reads this
 * variable: the TLS model makes it one access, also in a shared library.
 */
extern _Thread_local const struct weir_nic *weir_dispatch_nic
	__attribute__((tls_model("initial-exec")));

#endif
