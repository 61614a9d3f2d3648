// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_atfork() handlers: wait for the engine's callback to end and lock all parts before
 * fork(), unlock them in the parent, reset and unlock them in the child. A callback may hold
 * descriptors that no list has yet, which the child would keep.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "fork.h"
#include "loop.h"

static const struct fork_part *const parts[] = {
	&cm_fork, &cm_device_fork, &poller_fork, &nic_fork,   &gid_fork,   &cq_fork,  &strict_fork,
	&mr_fork, &mw_fork,	   &export_fork, &async_fork, &fault_fork, &udp_fork, &listing_fork,
	&loop_fork,
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static void lock_all(void)
{
	size_t i;

	softnic_loop_fork_begin();
	for (i = 0; i < PARTS; i++)
		pthread_mutex_lock(parts[i]->lock);
}

static void unlock_all(void)
{
	size_t i;

	for (i = PARTS; i > 0; i--)
		pthread_mutex_unlock(parts[i - 1]->lock);
}

static void unlock_in_parent(void)
{
	unlock_all();
	softnic_loop_fork_end();
}

static void reset_in_child(void)
{
	size_t i;

	for (i = 0; i < PARTS; i++)
		parts[i]->reset();
	unlock_all();
}

int fork_register(void)
{
	static bool watches;

	if (!watches)
		watches = !pthread_atfork(lock_all, unlock_in_parent, reset_in_child);
	return watches ? 0 : -ENOMEM;
}
