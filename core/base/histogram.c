/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/base/histogram.h"

#define LINEAR (1ull << WEIR_HISTOGRAM_LINEAR_BITS)

/* Below 2 * LINEAR, one bucket a value; above, LINEAR buckets for each power of two. */
static unsigned int bucket_of(uint64_t value)
{
	unsigned int shift;

	if (value < 2 * LINEAR)
		return (unsigned int)value;
	shift = 63 - WEIR_HISTOGRAM_LINEAR_BITS - (unsigned int)__builtin_clzll(value);
	return (shift << WEIR_HISTOGRAM_LINEAR_BITS) + (unsigned int)(value >> shift);
}

static uint64_t middle_of(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < 2 * LINEAR)
		return bucket;
	shift = (bucket >> WEIR_HISTOGRAM_LINEAR_BITS) - 1;
	return ((LINEAR + (bucket & (LINEAR - 1))) << shift) + (1ull << shift >> 1);
}

void weir_histogram_add(struct weir_histogram *h, uint64_t value)
{
	h->buckets[bucket_of(value)]++;
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
}

void weir_histogram_merge(struct weir_histogram *to, const struct weir_histogram *from)
{
	unsigned int i;

	for (i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
	to->count += from->count;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
}

uint64_t weir_histogram_at(const struct weir_histogram *h, uint32_t per_million)
{
	uint64_t wanted = (h->count * per_million + 999999) / 1000000, seen = 0, middle;
	unsigned int i;

	for (i = 0; i < WEIR_HISTOGRAM_BUCKETS && h->count; i++) {
		seen += h->buckets[i];
		if (seen < wanted || !seen)
			continue;
		middle = middle_of(i);
		return middle < h->max ? middle : h->max;
	}
	return 0;
}

uint64_t weir_histogram_between(const struct weir_histogram *h, uint64_t from, uint64_t to)
{
	uint64_t count = 0;
	unsigned int i;

	for (i = bucket_of(from); i < bucket_of(to); i++)
		count += h->buckets[i];
	return count;
}
