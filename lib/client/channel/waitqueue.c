/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who waits has read @rung before it gave the lock up: a ring in between ends the sleep at once. */
#include "lib/client/channel/waitqueue.h"
#include "lib/base/futex.h"
#include "lib/client/request/combine.h"

void weir_bell_wait(struct weir_bell *bell, struct weir_nic *nic, uint64_t deadline_ns)
{
	uint32_t rung = bell->rung;

	bell->waiting++;
	weir_nic_unlock(nic);
	weir_futex_wait(&bell->rung, rung, deadline_ns);
	weir_nic_lock(nic);
	bell->waiting--;
}

void weir_bell_ring(struct weir_bell *bell)
{
	if (!bell->waiting)
		return;
	__atomic_fetch_add(&bell->rung, 1, __ATOMIC_RELEASE);
	weir_futex_wake(&bell->rung, INT_MAX);
}
