/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "preload/files/real.h"

#include <stddef.h>

#include "preload/next.h"

static struct real found;
static int is_found;

static void find_function(size_t place, const char *name)
{
	void *function = next_function(name);

	__atomic_store_n((void **)((char *)&found + place), function, __ATOMIC_RELAXED);
}

#define FIND(name) find_function(offsetof(struct real, name), #name)

const struct real *real(void)
{
	if (__builtin_expect(__atomic_load_n(&is_found, __ATOMIC_ACQUIRE), 1))
		return &found;
	FIND(read);
	FIND(write);
	FIND(pread);
	FIND(pwrite);
	FIND(readv);
	FIND(writev);
	FIND(preadv);
	FIND(pwritev);
	FIND(preadv2);
	FIND(pwritev2);
	FIND(open);
	FIND(openat);
	FIND(creat);
	FIND(dup);
	FIND(dup2);
	FIND(dup3);
	FIND(mmap);
	__atomic_store_n(&is_found, 1, __ATOMIC_RELEASE);
	return &found;
}
