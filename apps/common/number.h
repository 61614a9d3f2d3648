/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers in options and configuration files, and comparisons. */
#ifndef WEIR_APPS_COMMON_NUMBER_H
#define WEIR_APPS_COMMON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses decimal digits. Returns false if @text is not a number from @min to @max. */
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number);
/* The same for an unsigned int. */
bool number_parse_uint(const char *text, unsigned int min, unsigned int max, unsigned int *number);
/* The same for a number with a fraction, such as "0.5" or "1e3". */
bool number_parse_double(const char *text, double min, double max, double *number);

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * The index of a quantile in @count sorted samples: the nearest rank. So the 99th percentile of ten
 * samples is the last.
 */
static inline uint64_t number_quantile(uint64_t count, unsigned int percent)
{
	return (count * percent + 99) / 100 - 1;
}

/* For qsort() on uint64_t, the least first. */
static inline int number_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#endif
