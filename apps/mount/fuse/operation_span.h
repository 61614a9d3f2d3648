/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Spans of the kernel's requests, and of the calls and transfers that each consists of.
 *
 * A receiving thread serves one request at a time, so the span of the request is the thread's.
 * Reads and writes of files that are not sealed end in callbacks: their span is in struct io.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_OPERATION_SPAN_H
#define WEIR_APPS_MOUNT_FUSE_OPERATION_SPAN_H

#include <stdint.h>

#include "lib/span/span.h"

struct mount;

/* The thread has received a request, but not a read or write that io.c ends. @opcode: FUSE_* */
void operation_span_begin(const struct mount *m, uint32_t opcode);

/* The request was replied an error; the last one counts. */
void operation_span_failed(int rc);

void operation_span_end(void);

/* The span of the request that this thread serves, or NULL. */
struct weir_span *operation_span(void);

/* A read or write that begins in io.c. The caller owes a weir_span_end(). */
struct weir_span *operation_span_io(const struct mount *m, bool is_write, uint64_t ino,
				    uint64_t offset, uint64_t length);

/* A call to the donor, FS_*, for the operation @of. The caller owes a weir_span_end(). */
struct weir_span *operation_span_call(const struct mount *m, const struct weir_span *of,
				      uint16_t op);

#endif
