/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keep-alive: detects a vanished donor host when a session posts nothing.
 *
 * A host that vanishes sends no message, and without a WR in flight nothing fails. A session that
 * has posted nothing for options.keepalive_ns therefore probes each of its channels by an empty
 * RDMA write, as UCX does. The NIC at the other end answers, not the CPU: a donor that is merely
 * stopped still lends, and counts as alive. A channel without an answer within the session's
 * timeout, or given up by the transport before, breaks and reconnects like any other
 * (session_reconnect.h).
 * A session that posts learns as much from its own WRs.
 *
 * The unload channel is not probed: it leads to the same host.
 *
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_SESSION_KEEPALIVE_H
#define WEIR_LIB_CLIENT_SESSION_KEEPALIVE_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct weir_session_link;
struct weir_session;

#define WEIR_KEEPALIVE_SENDS 1 /* per channel, in the send queue and CQ */

/**
 * struct weir_session_keepalive - one session's
 * @due_ns: time of the next check; UINT64_MAX: never
 * @posted: the session's count of work requests at the last check
 * @unanswered: channels that have not answered
 */
struct weir_session_keepalive {
	uint64_t due_ns;
	uint64_t posted;
	unsigned int unanswered;
};

/* Starts checking when the session is open. */
void weir_session_keepalive_start(struct weir_session *session, uint64_t now_ns);

/* The check when due: probes channels, or fails those without an answer. */
void weir_session_keepalive_check(struct weir_session *session, uint64_t now_ns);

/* Handles the completion of @link's probe. */
void weir_session_keepalive_completed(struct weir_session_link *link, enum ibv_wc_status status,
				      uint64_t now_ns);

/* Drops @link's probe, if any, when the QP is gone and no completion will come. */
void weir_session_keepalive_forget(struct weir_session_link *link);

#endif
