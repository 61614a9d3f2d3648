/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * process_vm_writev(), which fails where a store would kill the process, takes twice as long as
 * this check plus a copy, and does not promise that words arrive whole.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "preload/unload/memory.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static bool populate(uint64_t addr, uint64_t length, int advice)
{
	static long page;
	long bytes = __atomic_load_n(&page, __ATOMIC_RELAXED);
	uint64_t at;

	if (!bytes) {
		bytes = sysconf(_SC_PAGESIZE);
		__atomic_store_n(&page, bytes, __ATOMIC_RELAXED);
	}
	at = addr & ~((uint64_t)bytes - 1);
	return !madvise((void *)(uintptr_t)at, addr + length - at, advice);
}

bool memory_can_be_asked(void)
{
	char own = 0;

	return memory_is_writable((uintptr_t)&own, sizeof(own));
}

bool memory_is_readable(uint64_t addr, uint64_t length)
{
	return populate(addr, length, MADV_POPULATE_READ);
}

bool memory_is_writable(uint64_t addr, uint64_t length)
{
	return populate(addr, length, MADV_POPULATE_WRITE);
}
