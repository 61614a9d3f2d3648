/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A few threads that close descriptors whose close() may block. passed_fd.h tells why. */
#ifndef WEIR_FD_CLOSER_H
#define WEIR_FD_CLOSER_H

#include <stdbool.h>

enum {
	CLOSER_THREADS_MAX = 8, /* close() calls at a time */
	CLOSER_STALLED_MS = 500, /* without a thread that takes a descriptor */
	CLOSER_FULL = 128, /* waiting descriptors, if all threads are stalled */
	CLOSER_BUSY_FULL = 2048, /* the same if the threads work */
};

/**
 * closer_give() - let a thread close a descriptor
 *
 * If no thread can be started, the descriptor waits for a later call. If even the room beyond
 * CLOSER_BUSY_FULL is used up, the caller closes, and may block.
 */
void closer_give(int fd);

/** closer_is_full() - too many descriptors wait */
bool closer_is_full(void);

#endif
