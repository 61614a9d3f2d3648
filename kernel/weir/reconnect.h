/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each link's own work does: it buries a failed QP, and connects anew, until the donor says
 * that it is not the one it was, or the time is up. Then the session is lost, for a write that was
 * sent may still be on its way, and only the donor could say that it is not.
 *
 * Connecting allocates, here and in the connection manager, and so may the device where a QP is
 * destroyed; what this work allocates may not wait for memory to be written out. That binds nobody
 * else: ib_cm receives and answers, and ib_addr resolves, in works of their own, which allocate
 * with GFP_KERNEL, on queues without a rescuer. So where there is no memory at all a connection may
 * come too late. Ios under way meanwhile have their deadlines.
 */
#ifndef WEIR_KERNEL_WEIR_RECONNECT_H
#define WEIR_KERNEL_WEIR_RECONNECT_H

#include <linux/workqueue.h>

#include "kernel/weir/weir.h"

/*
 * Where links are mended. What completes ios waits for nothing of it; but those in flight on a QP
 * that failed end when it is buried, and where no worker can be made that waits for other links'
 * attempts.
 */
extern struct workqueue_struct *kweir_connect_wq;

struct kweir_link;

/**
 * kweir_link_connect() - bring a link up
 * @link: CLOSED or BROKEN
 *
 * Context: process; sleeps. Return: as kweir_session_connect(); -ESTALE it is not the donor it was.
 */
int kweir_link_connect(struct kweir_link *link, struct kweir_error *error);

/* The work of struct kweir_link's @reconnect. */
void kweir_reconnect_work(struct work_struct *work);

int kweir_reconnect_init(void);
void kweir_reconnect_exit(void);

#endif
