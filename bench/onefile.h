/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A FUSE file system of one file, "data", for comparing places to store bytes. It has no other
 * names.
 *
 * Threads receive calls as weir's own file system does. Each thread has a buffer for the data of
 * its reads and writes, and stays near the calling CPU.
 */
#ifndef WEIR_BENCH_ONEFILE_H
#define WEIR_BENCH_ONEFILE_H

#include <stddef.h>
#include <stdint.h>

#define ONEFILE_IO_MAX (1u << 20) /* longest call of the kernel */
#define ONEFILE_PAGE 4096u
/* Buffer of a thread: a call's headers end at ONEFILE_PAGE, where the data begins. */
#define ONEFILE_BUFFER (ONEFILE_PAGE + ONEFILE_IO_MAX + ONEFILE_PAGE)
#define ONEFILE_THREADS_MAX 16u

/* Start of @thread's data in an array of all threads' buffers. */
static inline char *onefile_data(void *buffers, unsigned int thread)
{
	return (char *)buffers + (size_t)thread * ONEFILE_BUFFER + ONEFILE_PAGE;
}

/**
 * struct onefile_ops - access to the bytes
 * @read: returns @size bytes: fills and returns @data, or returns another place
 * @write: stores @size bytes of @data
 *
 * Requests lie within the file. @thread serves the call.
 */
struct onefile_ops {
	const char *(*read)(unsigned int thread, char *data, size_t size, uint64_t offset);
	void (*write)(unsigned int thread, const char *data, size_t size, uint64_t offset);
};

/*
 * Blocks the signals that end the file system in all threads except the waiting thread. Call this
 * before any thread starts, including threads of libraries.
 */
void onefile_block_signals(void);

/**
 * onefile_run() - mount a file and serve it until unmounted or ended by a signal
 * @name: of the file system
 * @bytes: size of the file
 * @buffers: @threads times ONEFILE_BUFFER bytes, page-aligned
 *
 * BENCH_FS_CALL_MAX in the environment limits the bytes of a kernel call; default ONEFILE_IO_MAX.
 *
 * Return: an exit status.
 */
int onefile_run(const char *name, const char *mountpoint, size_t bytes, unsigned int threads,
		void *buffers, const struct onefile_ops *ops);

#endif
