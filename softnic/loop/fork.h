/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a fork does to us. The child has a copy of the memory, all descriptors, and one thread: no
 * engine, and whatever another thread was changing under a lock is half done. So the locks of what
 * is the process's own are taken before, and the child forgets what was its parent's: it starts
 * afresh when it opens the device. Objects of the program stay its parent's, in whatever state.
 */
#ifndef WEIR_SOFTNIC_LOOP_FORK_H
#define WEIR_SOFTNIC_LOOP_FORK_H

#include <pthread.h>

struct fork_part {
	pthread_mutex_t *lock;
	/* In the child, all locks held: be as before the first use; close what peers look at. */
	void (*reset)(void);
};

/* Outermost lock first. */
extern const struct fork_part cm_fork, cm_device_fork, nic_fork, gid_fork, cq_fork, mr_fork,
	mw_fork, export_fork, async_fork, fault_fork, loop_fork;

/**
 * fork_register() - from now on
 *
 * Context: one thread at a time; again is harmless.
 * Return: 0 or -ENOMEM.
 */
int fork_register(void);

#endif
