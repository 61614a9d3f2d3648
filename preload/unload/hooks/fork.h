/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the child of a fork has is a copy of its parent's memory, in whatever state its threads had
 * it, with its locks in whatever hands, and one thread. So it forgets all, and begins as a new
 * program does when it opens a device. What it does to its parent's objects, which it should not,
 * goes to the device.
 */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_FORK_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_FORK_H

/* From now on. Return: 0 or an errno. */
int fork_register(void);

/* Each by its file; the child's one thread. */
void device_forget(void);
void tracked_qp_forget(void);
void slot_pool_forget(void);
void poll_cq_forget(void);
void pressure_forget(void);
void diag_forget(void);
void service_forget(void);

#endif
