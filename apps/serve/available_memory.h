/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_SERVE_AVAILABLE_MEMORY_H
#define WEIR_APPS_SERVE_AVAILABLE_MEMORY_H

#include <stdint.h>

/**
 * available_memory() - how much more memory this process can use without causing swapping
 * @root: directory with /proc and /sys; "" for this system
 *
 * The minimum over the machine and all enclosing control groups of the room below the limit,
 * counting reclaimable file caches as free.
 *
 * Return: bytes; UINT64_MAX if unknown.
 */
uint64_t available_memory(const char *root);

#endif
