/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to access another process's memory over RDMA, for measuring one file system on each. A
 * lender and a borrower, in two processes, exchange addresses and keys over a socket. A lane serves
 * one thread at a time and has its own queue pair (endpoint), where the way has them. Each way is
 * used as well as a plain program can.
 *
 * No error is recovered: a failure prints a message on standard error and ends the process.
 */
#ifndef WEIR_BENCH_FS_TRANSPORT_H
#define WEIR_BENCH_FS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/onefile.h"

#define LANES 4 /* as many as threads of weir mount */
#define LANE_BYTES ONEFILE_IO_MAX
#define LANES_BYTES ((size_t)LANES * ONEFILE_BUFFER) /* registered memory */

/**
 * struct fs_transport - one way
 * @name: its name
 * @lend: in a process of its own: lends @bytes at @memory until the socket ends
 * @borrow: connects; @buffers has LANES_BYTES for the lanes' reads and writes
 * @read, @write: between @lane's buffer and @offset of the lent memory; return when done
 */
struct fs_transport {
	const char *name;
	void (*lend)(int socket, void *memory, size_t bytes);
	void (*borrow)(int socket, void *buffers, size_t bytes);
	void (*read)(int lane, size_t size, uint64_t offset);
	void (*write)(int lane, size_t size, uint64_t offset);
};

/* The transport of this program. */
extern const struct fs_transport transport;

/* Unless @good, ends the process with @what and @why. */
void must(bool good, const char *what, const char *why);

/* Send or receive all @size bytes. */
void tell(int socket, const void *data, size_t size);
void hear(int socket, void *data, size_t size);

/* Returns when the other process has ended; calls @turn, if any, repeatedly meanwhile. */
void until_over(int socket, void (*turn)(void));

static inline void *lane_buffer(void *buffers, int lane)
{
	return onefile_data(buffers, (unsigned int)lane);
}

#endif
