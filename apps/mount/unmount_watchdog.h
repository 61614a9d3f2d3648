/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The unmount watchdog: a process that unmounts if the mounting process is killed, or may not
 * unmount because it is in a sandbox. Otherwise the mount point would stay and return "transport
 * endpoint is not connected".
 *
 * libfuse's auto_unmount does the same, but its helper gives up if the kernel is still aborting the
 * dead connection.
 */
#ifndef WEIR_APPS_MOUNT_UNMOUNT_WATCHDOG_H
#define WEIR_APPS_MOUNT_UNMOUNT_WATCHDOG_H

#include <stdbool.h>
#include <sys/types.h>

struct unmount_watchdog {
	pid_t pid;
	int fd; /* the watchdog waits for the end of this pipe */
};

/* Must be called before any thread is started. Return: 0 or a negative errno. */
int unmount_watchdog_start(struct unmount_watchdog *watchdog, const char *mountpoint);
/* Ends the watchdog, which unmounts before if @is_mounted, and waits for it. */
void unmount_watchdog_stop(struct unmount_watchdog *watchdog, bool is_mounted);

#endif
