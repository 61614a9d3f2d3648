/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What this process's addresses are mappings of, by the kernel's word.
 */
#ifndef WEIR_SOFTNIC_SHM_VMA_H
#define WEIR_SOFTNIC_SHM_VMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vma {
	uint64_t start, end;
	uint64_t offset; /* of start, in the file */
	uint64_t inode; /* 0: it is of no file */
	uint32_t dev_major, dev_minor;
	bool is_readable, is_writable, is_shared;
};

/**
 * vma_find() - the mapping that an address lies in
 * @maps: a descriptor of /proc/self/maps
 * @addr: any address
 * @m: written on success
 *
 * Return: 0, ENOENT if it lies in none, or ENOTTY before Linux 6.11.
 */
int vma_find(int maps, uint64_t addr, struct vma *m);

/**
 * vma_check_range() - may this process itself read, or write, all of a range?
 * @addr: where it starts
 * @length: at least 1, and not beyond the end of all addresses
 * @write: else to read
 *
 * Without /proc it cannot be known. Then it may, and who copies finds out.
 *
 * Context: Any; takes as long as there are mappings in the range, before Linux 6.11 in the process.
 * Return: 0, EFAULT if it may not, or what opening a descriptor fails with.
 */
int vma_check_range(const void *addr, size_t length, bool write);

/**
 * vma_touch_range() - the same, and are its pages to be had?
 *
 * Those of a file beyond its end are mapped, and are not.
 */
int vma_touch_range(const void *addr, size_t length, bool write);

/** vma_check_range_by_text() - the same as any kernel tells it */
int vma_check_range_by_text(const void *addr, size_t length, bool write);

#endif
