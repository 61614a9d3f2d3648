/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handling of fork(). The child has a copy of the memory, all descriptors, and one thread: no
 * engine thread, and half-done changes by other threads. So fork() runs with all process-wide
 * locks held, and the child resets the process-wide state. The child starts from zero when it opens
 * the device. The program's verbs objects belong to the parent, and their state is undefined.
 */
#ifndef WEIR_SOFTNIC_LOOP_FORK_H
#define WEIR_SOFTNIC_LOOP_FORK_H

#include <pthread.h>

struct fork_part {
	pthread_mutex_t *lock;
	/* In the child, all locks held: undo all initialisation, close descriptors of peers. */
	void (*reset)(void);
};

/* In locking order, the outermost first. */
extern const struct fork_part cm_fork, cm_device_fork, nic_fork, gid_fork, cq_fork, mr_fork,
	poller_fork, mw_fork, export_fork, async_fork, fault_fork, udp_fork, loop_fork,
	strict_fork, listing_fork;

/**
 * fork_register() - install the handlers for fork()
 *
 * Context: One thread at a time; idempotent.
 * Return: 0 or -ENOMEM.
 */
int fork_register(void);

#endif
