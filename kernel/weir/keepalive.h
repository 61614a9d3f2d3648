/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keep-alive: whether there is anybody at the other end of a session that posts nothing, as in the
 * user library. A host that vanishes says nothing, and where nothing is under way nothing fails;
 * and pages that were swapped out may lie there for hours, with fewer replicas than it seems.
 *
 * So a session that has posted nothing for ten seconds asks on each of its channels, by an empty
 * RDMA write, which the device at the other end answers by itself: a donor that is merely stopped
 * still lends. A channel that has no answer within the session's timeout, or on which the transport
 * has given up before, has failed as any other (mend.h).
 *
 * All functions: with nic->lock held. Nothing is allocated.
 */
#ifndef WEIR_KERNEL_KEEPALIVE_H
#define WEIR_KERNEL_KEEPALIVE_H

#include <linux/types.h>

struct kweir_link;
struct kweir_session;

#define KWEIR_KEEPALIVE_SENDS 1 /* a channel's, in its send queue and its CQ */

/**
 * struct kweir_keepalive - one session's
 * @due_ns: when to look next; WEIR_NEVER: no channel of it has been up yet, or it is lost
 * @posted: work requests of the session when it was last looked at
 * @asked: channels that have not answered
 */
struct kweir_keepalive {
	u64 due_ns;
	u64 posted;
	unsigned int asked;
};

/* A channel of the session is up; the first begins. */
void kweir_keepalive_begin(struct kweir_session *session, u64 now_ns);

/* If it is due: asks, or fails who has not answered. What has come was taken before. */
void kweir_keepalive_check(struct kweir_session *session, u64 now_ns);

/* What @link asked has completed. */
void kweir_keepalive_completed(struct kweir_link *link, bool is_well, u64 now_ns);

/* Without a QP nothing tells of what @link may have asked. */
void kweir_keepalive_forget(struct kweir_link *link);

#endif
