/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Preloaded: the wall clock is WEIR_TEST_SHIFT seconds ahead. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long shift_s(void)
{
	const char *text = getenv("WEIR_TEST_SHIFT");

	return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (!rc && clock == CLOCK_REALTIME)
		now->tv_sec += shift_s();
	return rc;
}

time_t time(time_t *to)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
