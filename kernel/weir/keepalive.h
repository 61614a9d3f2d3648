/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Posts the probes of a session's keep-alive: core/link/keepalive.h. Swapped-out pages may lie at a
 * donor's host for hours. Without probes, a vanished host would go unnoticed, with fewer replicas
 * than the volume reports.
 *
 * All functions: with nic->lock held. Nothing is allocated.
 */
#ifndef WEIR_KERNEL_WEIR_KEEPALIVE_H
#define WEIR_KERNEL_WEIR_KEEPALIVE_H

#include <linux/types.h>

struct kweir_link;
struct kweir_session;

#define KWEIR_KEEPALIVE_QUIET_NS (10ull * NSEC_PER_SEC)

/* If a check is due: sends probes, or fails channels without an acknowledgement. The caller has
 * taken all completions before. */
void kweir_keepalive_check(struct kweir_session *session, u64 now_ns);

/* The probe on @link has completed. */
void kweir_keepalive_completed(struct kweir_link *link, bool is_well, u64 now_ns);

#endif
