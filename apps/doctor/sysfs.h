/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Small files of the kernel, and the RDMA devices it names there. */
#ifndef WEIR_DOCTOR_SYSFS_H
#define WEIR_DOCTOR_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first line of a file, without its newline. Return: whether there was one. */
bool sysfs_line(const char *path, char *line, size_t size);
/* The number a file begins with. Return: whether it does. */
bool sysfs_number(const char *path, uint64_t *number);
/* A line "NAME: NUMBER kB" of /proc/meminfo; the number as it stands there. */
bool sysfs_meminfo(const char *name, uint64_t *number);
/* The first RDMA device in the kernel's list. */
bool sysfs_rdma_device(char *name, size_t size);
/* Runs a program, its output to standard error. Return: whether it exited with 0. */
bool run_program(const char *const argv[]);

#endif
