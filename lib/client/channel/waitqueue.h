/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A condition variable for nic->lock. A waiter gives the lock up by weir_combine_unlock(), and
 * therefore checks the inbox, which a pthread condition variable would not do. All functions: with
 * nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_WAITQUEUE_H
#define WEIR_LIB_CLIENT_CHANNEL_WAITQUEUE_H

#include <stdint.h>

struct weir_nic;

/**
 * struct weir_waitqueue - initialised with zeros
 * @wakeups: number of wake-ups; atomic, the waiters' futex
 * @waiting: number of waiters
 */
struct weir_waitqueue {
	uint32_t wakeups;
	unsigned int waiting;
};

/**
 * weir_waitqueue_wait() - sleep until a wake-up or @deadline_ns
 *
 * Gives the lock up meanwhile, and may return early: the caller checks its condition again.
 */
void weir_waitqueue_wait(struct weir_waitqueue *queue, struct weir_nic *nic, uint64_t deadline_ns);

void weir_waitqueue_wake_all(struct weir_waitqueue *queue);

#endif
