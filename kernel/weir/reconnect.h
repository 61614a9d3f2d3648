/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work of each link destroys a failed QP and reconnects, until core/link/reconnect.h gives up.
 * Then the session is lost.
 *
 * Connecting allocates memory, here and in the connection manager, and a device may allocate to
 * destroy a QP. Allocations of this work never wait for writeback. Other modules make no such
 * promise: ib_cm receives and replies, and ib_addr resolves, in works that allocate with GFP_KERNEL
 * on queues without a rescuer. Without any free memory a connection may therefore come too late.
 * Ios in flight meanwhile have their deadlines.
 */
#ifndef WEIR_KERNEL_WEIR_RECONNECT_H
#define WEIR_KERNEL_WEIR_RECONNECT_H

#include <linux/workqueue.h>

#include "kernel/weir/weir.h"

/*
 * Runs the reconnect works. The completion of ios does not depend on this queue, with one
 * exception: ios in flight on a failed QP end when the QP is destroyed. Where no further worker can
 * be created, those ios wait for other links' attempts.
 */
extern struct workqueue_struct *kweir_connect_wq;

struct kweir_link;

/**
 * kweir_link_connect() - bring a link up
 * @link: CLOSED or BROKEN
 *
 * Context: process; sleeps. Return: as kweir_session_connect(); -ESTALE the donor is a new process.
 */
int kweir_link_connect(struct kweir_link *link, struct kweir_error *error);

/* The work of @reconnect in struct kweir_link. */
void kweir_reconnect_work(struct work_struct *work);

int kweir_reconnect_init(void);
void kweir_reconnect_exit(void);

#endif
