/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The waiter reads @wakeups before giving the lock up, so that a wake-up in between ends the sleep.
 */
#include "lib/client/channel/waitqueue.h"
#include "lib/base/futex.h"
#include "lib/client/request/combine.h"

void weir_waitqueue_wait(struct weir_waitqueue *queue, struct weir_nic *nic, uint64_t deadline_ns)
{
	uint32_t wakeups = queue->wakeups;

	queue->waiting++;
	weir_combine_unlock(nic);
	weir_futex_wait(&queue->wakeups, wakeups, deadline_ns);
	weir_combine_lock(nic);
	queue->waiting--;
}

void weir_waitqueue_wake_all(struct weir_waitqueue *queue)
{
	if (!queue->waiting)
		return;
	__atomic_fetch_add(&queue->wakeups, 1, __ATOMIC_RELEASE);
	weir_futex_wake(&queue->wakeups, INT_MAX);
}
