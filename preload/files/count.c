/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "preload/files/count.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/files.h"

/* Threads that count at once may lose a few, which is better than a locked addition each call. */
static unsigned long counts[COUNTS];

void count(enum counted call)
{
	unsigned long before = __atomic_load_n(&counts[call], __ATOMIC_RELAXED);

	__atomic_store_n(&counts[call], before + 1, __ATOMIC_RELAXED);
}

void counts_forget(void)
{
	for (int i = 0; i < COUNTS; i++)
		counts[i] = 0;
}

static void __attribute__((destructor)) print(void)
{
	bool any = counts[COUNT_READ] || counts[COUNT_WRITE] || counts[COUNT_KERNEL];

	if (any && getenv(FILES_COUNT_VARIABLE))
		dprintf(STDERR_FILENO,
			"weir files: process %d: %lu reads and %lu writes past the kernel, "
			"%lu by the kernel\n",
			(int)getpid(), counts[COUNT_READ], counts[COUNT_WRITE],
			counts[COUNT_KERNEL]);
}
