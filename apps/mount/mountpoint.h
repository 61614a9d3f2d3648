/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The directory that is mounted on. */
#ifndef WEIR_APPS_MOUNT_MOUNTPOINT_H
#define WEIR_APPS_MOUNT_MOUNTPOINT_H

#include <stdbool.h>

/**
 * mountpoint_check() - find out whether a directory can be mounted on
 * @cmd: for messages
 * @path: as the user wrote it
 * @absolute: set to the same without links; at least PATH_MAX bytes
 *
 * Return: EXIT_OK, or EXIT_FAILED, having said why.
 */
int mountpoint_check(const char *cmd, const char *path, char *absolute);

/* Is weir mounted there, alive or dead? Nothing is asked of the file system itself. */
bool mountpoint_is_mounted(const char *absolute);

/**
 * mountpoint_device() - the device number of what is mounted on a path
 *
 * Unlike stat(2) it does not touch the mount: a process that looks at its own would keep it busy,
 * and somebody who unmounts it just then would fail.
 * Return: false if nothing is mounted there.
 */
bool mountpoint_device(const char *absolute, unsigned int *major, unsigned int *minor);

#endif
