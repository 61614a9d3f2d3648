/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The locked memory of a process. Under a sanitizer nothing is locked, and all counts are 0. */
#ifndef WEIR_TESTS_SUPPORT_LOCKED_MEMORY_H
#define WEIR_TESTS_SUPPORT_LOCKED_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <cmocka.h>

/* In KiB. */
static inline unsigned long locked_kib(pid_t pid)
{
	char path[64], line[256];
	unsigned long kib = 0;
	bool is_found = false;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	assert_non_null(status);
	while (!is_found && fgets(line, sizeof(line), status))
		is_found = sscanf(line, "VmLck: %lu", &kib) == 1;
	fclose(status);
	assert_true(is_found);
	return kib;
}

#endif
