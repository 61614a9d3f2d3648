/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * softnic's files of /sys as true files, for programs that make system calls themselves: static
 * programs, and those in Go.
 */
#ifndef WEIR_APPS_SYSFS_MOUNT_H
#define WEIR_APPS_SYSFS_MOUNT_H

/**
 * sysfs_mount() - give this process and its children a /sys that shows softnic
 * @cmd: argv[0] of the command, for messages
 *
 * Copies softnic's files, and lays the copies over /sys/class and /sys/devices in a new mount
 * namespace. Without the privilege, also makes a user namespace. The copies vanish with the last
 * process of the namespace.
 *
 * Context: While the process has one thread, and has preloaded softnic's library.
 * Return: 0, or an exit status after a message.
 */
int sysfs_mount(const char *cmd);

#endif
