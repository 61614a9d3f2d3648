/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to reach another process's memory over RDMA, so that one and the same file system can be
 * measured on each. A lender and a borrower, in two processes, with a socket between them over which
 * they tell each other what they need. Every lane is for one thread at a time and has a queue pair
 * (an endpoint) of its own where the way has such a thing: as well as each can be used plainly.
 *
 * Nobody recovers here: what fails is told on standard error and ends the process.
 */
#ifndef WEIR_BENCH_FS_TRANSPORT_H
#define WEIR_BENCH_FS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/onefile.h"

#define LANES 4 /* as many as threads of weir mount */
#define LANE_BYTES ONEFILE_IO_MAX
#define LANES_BYTES ((size_t)LANES * ONEFILE_BUFFER) /* what is registered */

/**
 * struct fs_transport - one way
 * @name: of it
 * @lend: in a process of its own: lend @bytes at @memory; returns once the socket has ended
 * @borrow: connect; @buffers is LANES_BYTES, which lanes read into and write from
 * @read, @write: between @lane's buffer and @offset of what is lent; returns when it is done
 */
struct fs_transport {
	const char *name;
	void (*lend)(int socket, void *memory, size_t bytes);
	void (*borrow)(int socket, void *buffers, size_t bytes);
	void (*read)(int lane, size_t size, uint64_t offset);
	void (*write)(int lane, size_t size, uint64_t offset);
};

/* The one that this program has. */
extern const struct fs_transport transport;

/* Ends the process with @what and why unless @good. */
void must(bool good, const char *what, const char *why);

/* All of it, to or from the other process. */
void tell(int socket, const void *data, size_t size);
void hear(int socket, void *data, size_t size);

/* Returns when the other process has ended; meanwhile does @turn, if any, again and again. */
void until_over(int socket, void (*turn)(void));

static inline void *lane_buffer(void *buffers, int lane)
{
	return onefile_data(buffers, (unsigned int)lane);
}

#endif
