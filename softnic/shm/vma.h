/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's list of this process's mappings.
 */
#ifndef WEIR_SOFTNIC_SHM_VMA_H
#define WEIR_SOFTNIC_SHM_VMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vma {
	uint64_t start, end;
	uint64_t offset; /* of @start, in the file */
	uint64_t inode; /* 0: no file */
	uint32_t dev_major, dev_minor;
	bool is_readable, is_writable, is_shared;
};

/**
 * vma_find() - find the mapping that contains an address
 * @maps: a descriptor of /proc/self/maps
 * @addr: any address
 * @m: set on success
 *
 * Return: 0, ENOENT if the address is not mapped, or ENOTTY before Linux 6.11.
 */
int vma_find(int maps, uint64_t addr, struct vma *m);

/**
 * vma_check_range() - check that this process may read, or write, a whole range
 * @addr: start of the range
 * @length: in bytes, at least 1; the range must not wrap around
 * @write: true for write access, false for read access
 *
 * Without /proc the answer is yes, and a copy that is not allowed fails later.
 *
 * Context: Any. The time grows with the mappings in the range; before Linux 6.11, with all
 * mappings of the process.
 * Return: 0, EFAULT if access is not allowed, or the errno of open().
 */
int vma_check_range(const void *addr, size_t length, bool write);

/**
 * vma_touch_range() - as vma_check_range(), and check that the pages exist
 *
 * A mapping may extend beyond the end of its file, where there are no pages.
 */
int vma_touch_range(const void *addr, size_t length, bool write);

/** vma_check_range_by_text() - vma_check_range() for kernels before Linux 6.11 */
int vma_check_range_by_text(const void *addr, size_t length, bool write);

#endif
