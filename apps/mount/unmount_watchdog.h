/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The guard: a process that unmounts should this one be killed, so that no mount point is left
 * that answers with "transport endpoint is not connected".
 *
 * libfuse's auto_unmount would do that, too, but its helper gives up if it looks while the kernel
 * is still cutting the dead connection.
 */
#ifndef WEIR_APPS_MOUNT_UNMOUNT_WATCHDOG_H
#define WEIR_APPS_MOUNT_UNMOUNT_WATCHDOG_H

#include <sys/types.h>

struct unmount_watchdog {
	pid_t pid;
	int fd; /* the guard waits for its end */
};

/* Before any thread is started. Return: 0 or a negative errno. */
int unmount_watchdog_start(struct unmount_watchdog *guard, const char *mountpoint);
/* All is unmounted. */
void unmount_watchdog_stop(struct unmount_watchdog *guard);

#endif
