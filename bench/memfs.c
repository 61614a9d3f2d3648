/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The speed of FUSE itself on this machine: one file in this process's memory, without a network.
 * The baseline for weir's file system.
 */
#include "bench/onefile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREADS 4 /* as weir mount */

static char *data;

static const char *memory_read(unsigned int thread, char *buffer, size_t size, uint64_t offset)
{
	(void)thread;
	(void)buffer;
	(void)size;
	return data + offset;
}

static void memory_write(unsigned int thread, const char *buffer, size_t size, uint64_t offset)
{
	(void)thread;
	memcpy(data + offset, buffer, size);
}

static const struct onefile_ops ops = { .read = memory_read, .write = memory_write };

/* Touched beforehand, as a donor's memory is once written. */
static void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	void *buffers = memory(THREADS * ONEFILE_BUFFER);

	data = memory(bytes);
	if (!data || !buffers) {
		fprintf(stderr, "Usage: memfs MEBIBYTES MOUNTPOINT\n");
		return 2;
	}
	return onefile_run("memfs", argv[2], bytes, THREADS, buffers, &ops);
}
