/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reconnecting: a thread, created when a channel first breaks, reconnects broken channels.
 *
 * Connecting blocks, so neither the user's threads nor the session's may do it. The other channels
 * continue meanwhile. core/link/reconnect.h decides when to try again, and when the session ends.
 *
 * With requests in flight, a session notices a vanished donor by itself: the transport retries and
 * gives up, and requests have deadlines. Without requests, session_keepalive.h notices.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_SESSION_RECONNECT_H
#define WEIR_LIB_CLIENT_SESSION_RECONNECT_H

struct weir_session;

/* Starts reconnecting a BROKEN channel. If the thread cannot be created, the session is lost. */
void weir_session_reconnect_wake(struct weir_session *session);

/* Stops reconnecting: the session ends with @status, once nothing is in flight. */
void weir_session_reconnect_give_up(struct weir_session *session, int status);

/* Ends the thread, once the session is closing; without nic->lock. */
void weir_session_reconnect_stop(struct weir_session *session);

#endif
