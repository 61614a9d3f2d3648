/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mending: broken channels are connected anew, by a thread that exists once one has broken.
 *
 * Connecting blocks, so neither the user's threads nor the session's may do it. The channels that
 * are left go on meanwhile. The session ends when a channel cannot be mended in time: a write that
 * was sent on it may still be on its way, and only the donor can say that it is not (promises 1
 * and 3).
 *
 * What is under way on a channel finds out by itself that the donor's host is gone: the transport
 * tries again, and gives up, and requests have deadlines. For a session with nothing under way
 * keepalive.h finds out.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_RECONNECT_H
#define WEIR_LIB_CLIENT_RECONNECT_H

#include <stdbool.h>

struct weir_session;

/* May a broken channel of this session come up again? */
bool weir_reconnect_is_allowed(const struct weir_session *session);

/* A channel is BROKEN. If there can be no thread to mend it, the session is lost. */
void weir_reconnect_wake(struct weir_session *session);

/* Nothing is mended any more: the session ends with @status, once nothing is in flight. */
void weir_reconnect_give_up(struct weir_session *session, int status);

/* session->stopping is set: ends the thread. Without the lock. */
void weir_reconnect_stop(struct weir_session *session);

#endif
