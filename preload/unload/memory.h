/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A NIC reaches the pages that were there when memory was registered; a CPU reaches what the
 * program has mapped there now, and as it has: what it may not touch would end the process. So the
 * kernel is asked right before. It knows since Linux 5.14.
 */
#ifndef WEIR_PRELOAD_UNLOAD_MEMORY_H
#define WEIR_PRELOAD_UNLOAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel can be asked. Context: any. */
bool memory_can_be_asked(void);

/*
 * Whether the CPU may read, or write, all of it now: what then remains to be done for it has been.
 * @length: at least 1; the range does not wrap
 *
 * Context: any.
 */
bool memory_is_readable(uint64_t addr, uint64_t length);
bool memory_is_writable(uint64_t addr, uint64_t length);

#endif
