/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char units[] = "KMGTPE";

/* The power of 1024 for a suffix ("", "B", "K", "KB", "KiB"), or -1. */
static int suffix_power(const char *suffix)
{
	const char *unit;

	if (*suffix == '\0' || !strcasecmp(suffix, "b"))
		return 0;
	unit = strchr(units, toupper((unsigned char)*suffix));
	if (!unit)
		return -1;
	suffix++;
	if (*suffix && strcasecmp(suffix, "b") && strcasecmp(suffix, "ib"))
		return -1;
	return (int)(unit - units) + 1;
}

int size_parse(const char *text, uint64_t *bytes)
{
	long double value;
	char *end;
	int power;

	if (!isdigit((unsigned char)*text) || strpbrk(text, "xXpP") == text + 1)
		return -EINVAL;
	value = strtold(text, &end);
	while (*end == ' ')
		end++;
	power = suffix_power(end);
	if (power < 0)
		return -EINVAL;
	for (int i = 0; i < power; i++)
		value *= 1024;
	if (value >= 0x1p63L)
		return -ERANGE;
	*bytes = (uint64_t)value;
	return 0;
}
