/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keep-alive: detects a dead host behind an idle session, as in the user library. A host that
 * vanishes sends nothing, and without traffic nothing fails. Swapped-out pages may lie at that host
 * for hours, with fewer replicas than the volume reports.
 *
 * A session that has posted nothing for ten seconds sends an empty RDMA write on each channel. The
 * device at the other end acknowledges the write itself, so a stopped donor process still counts as
 * alive. A channel without an acknowledgement within the session's timeout, or whose transport gave
 * up earlier, has failed like any other (reconnect.h).
 *
 * All functions: with nic->lock held. Nothing is allocated.
 */
#ifndef WEIR_KERNEL_KEEPALIVE_H
#define WEIR_KERNEL_KEEPALIVE_H

#include <linux/types.h>

struct kweir_link;
struct kweir_session;

#define KWEIR_KEEPALIVE_SENDS 1 /* per channel, in the send queue and the CQ */

/**
 * struct kweir_keepalive - keep-alive of one session
 * @due_ns: time of the next check; WEIR_NEVER: no channel has been up yet, or the session is lost
 * @posted: work requests posted by the session at the last check
 * @asked: channels with an unacknowledged probe
 */
struct kweir_keepalive {
	u64 due_ns;
	u64 posted;
	unsigned int asked;
};

/* A channel of the session is up; the first channel starts keep-alive. */
void kweir_keepalive_begin(struct kweir_session *session, u64 now_ns);

/* If a check is due: sends probes, or fails channels without an acknowledgement. The caller has
 * taken all completions before. */
void kweir_keepalive_check(struct kweir_session *session, u64 now_ns);

/* The probe on @link has completed. */
void kweir_keepalive_completed(struct kweir_link *link, bool is_well, u64 now_ns);

/* The QP is gone, and no completion of a probe on @link will arrive. */
void kweir_keepalive_forget(struct kweir_link *link);

#endif
