/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdio.h>

#include "lib/base/size.h"

static const char units[] = "KMGTPE";

struct weir_size_text weir_size_format(uint64_t bytes)
{
	struct weir_size_text size;
	double value = (double)bytes;
	int power = 0;

	for (; value >= 1024 && units[power]; power++)
		value /= 1024;
	if (power)
		snprintf(size.text, sizeof(size.text), "%.1f %ciB", value, units[power - 1]);
	else
		snprintf(size.text, sizeof(size.text), "%llu B", (unsigned long long)bytes);
	return size;
}
