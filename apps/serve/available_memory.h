/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_SERVE_AVAILABLE_MEMORY_H
#define WEIR_APPS_SERVE_AVAILABLE_MEMORY_H

#include <stdint.h>

/**
 * available_memory() - how much more memory this process could have without anybody's swapping
 * @root: where /proc and /sys are; "": here
 *
 * The least of what the machine has, and of what each control group that the process is in, or
 * that group's parents, leave below their limits; with what could be had by dropping caches of
 * files.
 *
 * Return: bytes; UINT64_MAX where nobody says.
 */
uint64_t available_memory(const char *root);

#endif
