/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bell: what a condition variable is, for nic->lock. Whoever waits gives the lock up by
 * weir_nic_unlock(), and so looks at the inbox, as a condition variable would not.
 *
 * All with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_WAITQUEUE_H
#define WEIR_LIB_CLIENT_CHANNEL_WAITQUEUE_H

#include <stdint.h>

struct weir_nic;

/**
 * struct weir_waitqueue - zero to begin with
 * @wakeups: how often; atomic, for those who sleep on it
 * @waiting: threads that do
 */
struct weir_waitqueue {
	uint32_t wakeups;
	unsigned int waiting;
};

/**
 * weir_waitqueue_wait() - sleep until it rings, or until @deadline_ns
 *
 * It gives the lock up meanwhile, and may return early: the caller looks at what it waits for.
 */
void weir_waitqueue_wait(struct weir_waitqueue *queue, struct weir_nic *nic, uint64_t deadline_ns);

/* Wakes all who wait. */
void weir_waitqueue_wake_all(struct weir_waitqueue *queue);

#endif
