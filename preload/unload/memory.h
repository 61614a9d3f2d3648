/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A NIC reaches the pages present at registration. A CPU reaches the pages that the program has
 * mapped now, and a forbidden access kills the process. So each copy first asks the kernel, which
 * can answer since Linux 5.14.
 */
#ifndef WEIR_PRELOAD_UNLOAD_MEMORY_H
#define WEIR_PRELOAD_UNLOAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Can the kernel answer? Context: any. */
bool memory_can_be_asked(void);

/*
 * May the CPU read, or write, the whole range now? Pages are faulted in by the check.
 * @length: at least 1; the range does not wrap
 *
 * Context: any.
 */
bool memory_is_readable(uint64_t addr, uint64_t length);
bool memory_is_writable(uint64_t addr, uint64_t length);

#endif
