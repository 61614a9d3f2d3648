/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keep-alive: whether there is anybody at the other end of a session that posts nothing.
 *
 * A host that vanishes says nothing, and where nothing is under way nothing fails. So a session
 * that has posted nothing for options.keepalive_ns asks on each of its channels, by an empty RDMA
 * write, as UCX does. The NIC at the other end answers, and no CPU: a donor that is merely stopped
 * still lends, and counts as alive. A channel that has no answer within the session's timeout, or
 * on which the transport has given up before, breaks, and is mended or not as any other (mend.h). A
 * session that posts learns as much from what it posts.
 *
 * The channel that unloads is not unanswered: it leads to the same host.
 *
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_KEEPALIVE_H
#define WEIR_LIB_CLIENT_KEEPALIVE_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct weir_link;
struct weir_session;

#define WEIR_KEEPALIVE_SENDS 1 /* a channel's, in its send queue and its CQ */

/**
 * struct weir_keepalive - one session's
 * @due_ns: when to look next; UINT64_MAX: never
 * @posted: work requests of the session when it was last looked at
 * @unanswered: channels that have not answered
 */
struct weir_keepalive {
	uint64_t due_ns;
	uint64_t posted;
	unsigned int unanswered;
};

/* The session is open. */
void weir_keepalive_start(struct weir_session *session, uint64_t now_ns);

/* It is due: asks, or fails who has not answered. */
void weir_keepalive_check(struct weir_session *session, uint64_t now_ns);

/* What @link unanswered has completed. */
void weir_keepalive_completed(struct weir_link *link, enum ibv_wc_status status, uint64_t now_ns);

/* Without a QP nothing tells of what @link may have unanswered. */
void weir_keepalive_forget(struct weir_link *link);

#endif
