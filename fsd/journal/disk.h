/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_FSD_JOURNAL_DISK_H
#define WEIR_FSD_JOURNAL_DISK_H

#include <stddef.h>
#include <stdint.h>

#define FSD_DISK_PAGE 4096u

/**
 * struct fsd_disk - where a file system lies: a volume, or a test's array
 * @read, @write: move whole pages. A write is durable when it returns 0. After a crash or an error
 *	each of its bytes may be old or new. Return: 0 or a negative errno
 * @bytes: size, a multiple of FSD_DISK_PAGE
 * @arg: passed to both
 */
struct fsd_disk {
	int (*read)(void *arg, uint64_t offset, void *to, size_t length);
	int (*write)(void *arg, uint64_t offset, const void *from, size_t length);
	uint64_t bytes;
	void *arg;
};

#endif
