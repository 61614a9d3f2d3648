/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdint.h>
#include <sys/mman.h>

#include "lib/base/huge_map.h"

/* Addresses for @length bytes, aligned to a huge page; the addresses around are given back. */
static char *reserve_addresses(size_t length)
{
	const size_t slack = WEIR_HUGE_BYTES;
	char *at, *base = mmap(NULL, length + slack, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)base + slack - 1) & ~(slack - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	if (base + slack > at)
		munmap(at + length, (size_t)(base + slack - at));
	return at;
}

char *weir_huge_map_aligned(size_t length, int fd)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
	char *at = reserve_addresses(length);

	if (at && mmap(at, length, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED) {
		munmap(at, length);
		return NULL;
	}
	return at;
}

char *weir_huge_map(size_t length, bool *is_reserved)
{
	char *base = MAP_FAILED;

	if (length % WEIR_HUGE_BYTES == 0)
		base = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1,
			    0);
	*is_reserved = base != MAP_FAILED;
	if (*is_reserved)
		return base;
	base = weir_huge_map_aligned(length, -1);
	if (base)
		madvise(base, length, MADV_HUGEPAGE);
	return base;
}
