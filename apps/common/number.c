/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	unsigned long long parsed;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	parsed = strtoull(text, &end, 10);
	if (errno || *end || parsed < min || parsed > max)
		return false;
	*number = parsed;
	return true;
}

bool number_parse_uint(const char *text, unsigned int min, unsigned int max, unsigned int *number)
{
	uint64_t parsed;

	if (!number_parse(text, min, max, &parsed))
		return false;
	*number = (unsigned int)parsed;
	return true;
}

bool number_parse_double(const char *text, double min, double max, double *number)
{
	char *end;
	double parsed = strtod(text, &end);

	if (end == text || *end || !(parsed >= min && parsed <= max))
		return false;
	*number = parsed;
	return true;
}
