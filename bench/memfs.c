/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What FUSE itself can do on this machine: one file in this process's memory, no network. weir's file
 * system is measured against it.
 */
#include "bench/onefile.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define THREADS 10 /* libfuse's default */

static char *data;
static size_t data_bytes;

static void memory_read(fuse_req_t req, size_t size, off_t offset)
{
	fuse_reply_buf(req, data + offset, size);
}

static void memory_write(fuse_req_t req, struct fuse_bufvec *from, size_t size, off_t offset)
{
	struct fuse_bufvec to = FUSE_BUFVEC_INIT(size);
	ssize_t copied;

	to.buf[0].mem = data + offset;
	copied = fuse_buf_copy(&to, from, 0);
	if (copied < 0)
		fuse_reply_err(req, (int)-copied);
	else
		fuse_reply_write(req, (size_t)copied);
}

static const struct onefile_ops ops = { .read = memory_read, .write = memory_write };

/* Touched beforehand: the donor's memory is, too, once it has been written. */
static int take_memory(const char *mib)
{
	data_bytes = strtoul(mib, NULL, 10) << 20;
	data = mmap(NULL, data_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return data_bytes && data != MAP_FAILED ? 0 : -1;
}

int main(int argc, char **argv)
{
	if (argc != 3 || take_memory(argv[1])) {
		fprintf(stderr, "Usage: memfs MEBIBYTES MOUNTPOINT\n");
		return 2;
	}
	return onefile_run("memfs", argv[2], data_bytes, THREADS, &ops);
}
