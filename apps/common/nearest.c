/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/nearest.h"

#include <string.h>

#define NAME_MAX_LENGTH 63

/* Levenshtein's distance, of short words; a long @typed is far from all. */
static size_t measure(const char *typed, const char *name)
{
	size_t row[NAME_MAX_LENGTH + 1], above, here, length = strlen(name);

	for (size_t i = 0; i <= length; i++)
		row[i] = i;
	for (; *typed; typed++) {
		above = row[0]++;
		for (size_t i = 1; i <= length; i++) {
			here = above + (*typed != name[i - 1]);
			above = row[i];
			if (here > above + 1)
				here = above + 1;
			if (here > row[i - 1] + 1)
				here = row[i - 1] + 1;
			row[i] = here;
		}
	}
	return row[length];
}

void nearest_consider(struct nearest *nearest, const char *name)
{
	size_t distance, length = strlen(name);

	if (length > NAME_MAX_LENGTH)
		return;
	distance = measure(nearest->typed, name);
	if (distance >= nearest->distance || distance >= length)
		return;
	nearest->distance = distance;
	nearest->name = name;
}
