// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "warning.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Two threads at the end of a period may write a line or two more: each counts for itself. */
static bool passes(struct warning_limit *limit)
{
	uint64_t now = now_ns(), since = __atomic_load_n(&limit->since_ns, __ATOMIC_RELAXED);

	if ((int64_t)(now - since) >= WARNING_PERIOD_NS &&
	    __atomic_compare_exchange_n(&limit->since_ns, &since, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_store_n(&limit->lines, 0, __ATOMIC_RELAXED);
	if (__atomic_fetch_add(&limit->lines, 1, __ATOMIC_RELAXED) < WARNING_LINES_MAX)
		return true;
	__atomic_fetch_add(&limit->dropped, 1, __ATOMIC_RELAXED);
	return false;
}

void warning_write(struct warning_limit *limit, const char *format, ...)
{
	char text[512];
	uint32_t dropped;
	va_list args;

	if (!passes(limit))
		return;
	dropped = __atomic_exchange_n(&limit->dropped, 0, __ATOMIC_RELAXED);
	if (dropped)
		fprintf(stderr, "softnic: suppressed lines=%u\n", dropped);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "softnic: %s\n", text);
}
