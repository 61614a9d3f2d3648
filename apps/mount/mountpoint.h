/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mount point. */
#ifndef WEIR_APPS_MOUNT_MOUNTPOINT_H
#define WEIR_APPS_MOUNT_MOUNTPOINT_H

#include <stdbool.h>

/**
 * mountpoint_check() - check whether a directory can be a mount point
 * @cmd: for messages
 * @path: as the user wrote it
 * @absolute: receives the absolute path without symbolic links; at least PATH_MAX bytes
 *
 * Return: EXIT_OK, or EXIT_FAILED after a message.
 */
int mountpoint_check(const char *cmd, const char *path, char *absolute);

/*
 * Whether weir is mounted there, even if its process is dead. Does not access the file system
 * itself.
 */
bool mountpoint_is_mounted(const char *absolute);

/**
 * mountpoint_device() - get the device number of the file system mounted on a path
 *
 * Unlike stat(2), this does not access the mount. A process that accesses its own mount keeps it
 * busy, so that a concurrent unmount would fail.
 *
 * Return: false if nothing is mounted there.
 */
bool mountpoint_device(const char *absolute, unsigned int *major, unsigned int *minor);

#endif
