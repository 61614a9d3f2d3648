/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_FSD_JOURNAL_DISK_H
#define WEIR_FSD_JOURNAL_DISK_H

#include <isa-l/crc.h>
#include <stddef.h>
#include <stdint.h>

#define FSD_DISK_PAGE 4096u
#define FSD_DISK_SUM_MAX (1u << 30) /* bytes at once: ISA-L takes an int */

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

/* The whole pages within @bytes; the pages that hold @bytes. In bytes. */
static inline uint64_t fsd_disk_within(uint64_t bytes)
{
	return bytes / FSD_DISK_PAGE * FSD_DISK_PAGE;
}

static inline uint64_t fsd_disk_holding(uint64_t bytes)
{
	return fsd_disk_within(bytes + FSD_DISK_PAGE - 1);
}

/* CRC32C of any number of bytes. @sum: of the bytes before; ~0 at first. */
static inline uint32_t fsd_disk_sum(const void *bytes, size_t length, uint32_t sum)
{
	const unsigned char *at = bytes;

	while (length) {
		size_t part = length < FSD_DISK_SUM_MAX ? length : FSD_DISK_SUM_MAX;

		sum = crc32_iscsi((unsigned char *)at, (int)part, sum);
		at += part;
		length -= part;
	}
	return sum;
}

#endif
