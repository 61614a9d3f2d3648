/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The child of a fork has one thread and a copy of its parent's memory, in any state, with locks
 * held by threads that do not exist. So the child forgets all state, and starts like a new program
 * when it opens a device. Calls on the parent's objects, which a child should not make, go to the
 * device.
 */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_FORK_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_FORK_H

/* Installs the fork handler. Return: 0 or an errno. */
int fork_register(void);

/* Each file forgets its own state; runs in the child's only thread. */
void device_forget(void);
void tracked_qp_forget(void);
void slot_pool_forget(void);
void poll_cq_forget(void);
void pressure_forget(void);
void diag_forget(void);
void service_forget(void);

#endif
