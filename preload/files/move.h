/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One call of the program's: past the kernel if it can be, and the rest by the kernel. */
#ifndef WEIR_PRELOAD_FILES_MOVE_H
#define WEIR_PRELOAD_FILES_MOVE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

/**
 * move_read(), move_write() - as preadv() and pwritev(); errno is set only with -1
 * @at_position: @offset counts for nothing: at the file's position, which moves, as readv() and
 *	writev()
 * @done: receives the result
 *
 * Return: false: nothing was done, and the kernel must do the whole call.
 */
bool move_read(int fd, const struct iovec *iov, int nr, off_t offset, bool at_position,
	       ssize_t *done);
bool move_write(int fd, const struct iovec *iov, int nr, off_t offset, bool at_position,
		ssize_t *done);

#endif
