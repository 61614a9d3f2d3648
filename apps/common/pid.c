/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/pid.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

bool pid_parse(const char *text, pid_t *pid)
{
	char *end;
	long n;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtol(text, &end, 10);
	*pid = (pid_t)n;
	return !errno && !*end && n > 0 && n <= INT_MAX;
}
