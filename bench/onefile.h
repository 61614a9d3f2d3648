/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A FUSE file system of one file, "data": no names, nothing to look up. What a benchmark needs to
 * compare where the bytes are, and nothing else.
 */
#ifndef WEIR_BENCH_ONEFILE_H
#define WEIR_BENCH_ONEFILE_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#define ONEFILE_IO_MAX (1u << 20) /* bytes of a request */

/* Each replies to @req. What they are asked for lies within the file. */
struct onefile_ops {
	void (*read)(fuse_req_t req, size_t size, off_t offset);
	void (*write)(fuse_req_t req, struct fuse_bufvec *from, size_t size, off_t offset);
};

/*
 * Mounts a file of @bytes at @mountpoint and serves it, with @threads at a time, until it is
 * unmounted or a signal ends it. Return: an exit status.
 */
int onefile_run(const char *name, const char *mountpoint, size_t bytes, unsigned int threads,
		const struct onefile_ops *ops);

#endif
