/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Helpers to read small files of /proc and /sys, and to run programs. */
#ifndef WEIR_APPS_DOCTOR_SYSFS_H
#define WEIR_APPS_DOCTOR_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the first line of a file, without the newline. Returns false if there is none. */
bool sysfs_line(const char *path, char *line, size_t size);
/* Reads the number at the start of a file. Returns false if there is none. */
bool sysfs_number(const char *path, uint64_t *number);
/* Reads a line "NAME: NUMBER kB" of /proc/meminfo; @number is in kB. */
bool sysfs_meminfo(const char *name, uint64_t *number);
/* Finds the first RDMA device in the kernel's list; softnic's do not count. */
bool sysfs_rdma_device(char *name, size_t size);
/* Prints a command on standard error, and runs it. Returns whether it exited with 0. */
bool fix_step(const char *const argv[]);

#endif
