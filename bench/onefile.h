/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A FUSE file system of one file, "data": no names, nothing to look up. What a benchmark needs to
 * compare where the bytes are, and nothing else.
 *
 * Calls are received as weir's own file system receives them: by threads that have a buffer each,
 * which a write's data are in and a read's data go to, and that stay near who calls.
 */
#ifndef WEIR_BENCH_ONEFILE_H
#define WEIR_BENCH_ONEFILE_H

#include <stddef.h>
#include <stdint.h>

#define ONEFILE_IO_MAX (1u << 20) /* bytes of a call of the kernel's, at most */
#define ONEFILE_PAGE 4096u
/* A thread's buffer: the heads of the kernel's call end where its data begin, at ONEFILE_PAGE. */
#define ONEFILE_BUFFER (ONEFILE_PAGE + ONEFILE_IO_MAX + ONEFILE_PAGE)
#define ONEFILE_THREADS_MAX 16u

/* Of a program with one: where @thread's data are in all threads' buffers. */
static inline char *onefile_data(void *buffers, unsigned int thread)
{
	return (char *)buffers + (size_t)thread * ONEFILE_BUFFER + ONEFILE_PAGE;
}

/**
 * struct onefile_ops - where the bytes are
 * @read: what a read of @size bytes is answered with: @data, filled in, or any other place
 * @write: take @size bytes out of @data
 *
 * What they are asked for lies within the file. @thread is the one that serves the call.
 */
struct onefile_ops {
	const char *(*read)(unsigned int thread, char *data, size_t size, uint64_t offset);
	void (*write)(unsigned int thread, const char *data, size_t size, uint64_t offset);
};

/*
 * The signals that end the file system are kept from all threads but the one that waits for them:
 * call this before any is started, by whatever library.
 */
void onefile_block_signals(void);

/**
 * onefile_run() - mount a file and serve it until it is unmounted or a signal ends it
 * @name: of the file system
 * @bytes: of the file
 * @buffers: @threads of ONEFILE_BUFFER bytes, on a page
 *
 * The environment's BENCH_FS_CALL_MAX is how many bytes a call of the kernel's has at most; without it
 * ONEFILE_IO_MAX.
 *
 * Return: an exit status.
 */
int onefile_run(const char *name, const char *mountpoint, size_t bytes, unsigned int threads,
		void *buffers, const struct onefile_ops *ops);

#endif
