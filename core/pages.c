/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A write touches one counter, or two, its place in the histogram, and now and then one counter
 * that fades. A counter loses a quarter of itself each time round, so that it stands for the last
 * few rounds, in each of which a page is written FADE_TICKS times on average: enough to tell pages
 * from each other, and far from where eight bits end.
 */
#include "core/pages.h"

#define COUNT_MAX 255
#define FADE_TICKS 8
#define GOLDEN 0x9e3779b97f4a7c15ull
#define OTHER 0xd6e8feb86659fd93ull

int weir_pages_init(struct weir_pages *p, uint8_t *counters, uint32_t nr_counters, uint32_t room)
{
	if (!counters || !room || nr_counters < WEIR_PAGES_COUNTERS_MIN ||
	    nr_counters > WEIR_PAGES_COUNTERS_MAX || nr_counters & (nr_counters - 1))
		return -EINVAL;
	*p = (struct weir_pages){ .counters = counters, .nr_counters = nr_counters, .room = room,
				  .threshold = 1 };
	return 0;
}

/* A counter of those that the histogram knows goes from @from to @to. */
static void moved(struct weir_pages *p, uint8_t from, uint8_t to)
{
	if (from)
		p->histogram[from]--;
	if (to)
		p->histogram[to]++;
	p->count += (to > 0) - (from > 0);
	p->hot += (to >= p->threshold) - (from >= p->threshold);
}

/* The lowest threshold that leaves as many hot as there is room for, or fewer. */
static void settle_threshold(struct weir_pages *p)
{
	while (p->hot > p->room)
		p->hot -= p->histogram[p->threshold++];
	while (p->threshold > 1 && p->hot + p->histogram[p->threshold - 1] <= p->room)
		p->hot += p->histogram[--p->threshold];
}

static bool is_known(const struct weir_pages *p, uint64_t counter)
{
	return !p->is_sketch || counter < p->nr_counters / 2;
}

static void set(struct weir_pages *p, uint64_t counter, uint8_t value)
{
	if (is_known(p, counter))
		moved(p, p->counters[counter], value);
	p->counters[counter] = value;
}

/* Where the cursor goes round: all pages that were ever counted, or the whole sketch. */
static void fade(struct weir_pages *p)
{
	uint64_t mask = p->nr_counters - 1, counter;
	uint8_t value;

	if (++p->ticks < FADE_TICKS)
		return;
	p->ticks = 0;
	if (p->is_sketch)
		p->cursor = (p->cursor + 1) & mask;
	else if (p->cursor < p->first || p->cursor >= p->last)
		p->cursor = p->first;
	else
		p->cursor++;
	counter = p->cursor & mask;
	value = p->counters[counter];
	set(p, counter, (uint8_t)(value - (value + 3) / 4));
}

/* From here on pages share counters. Once in the life of a route: all is counted anew. */
static void become_sketch(struct weir_pages *p)
{
	uint32_t i;

	p->is_sketch = true;
	for (i = 0; i < p->nr_counters; i++)
		p->counters[i] = 0;
	for (i = 0; i <= COUNT_MAX; i++)
		p->histogram[i] = 0;
	p->count = 0;
	p->threshold = 1;
	p->hot = 0;
	p->cursor = 0;
}

static void reach(struct weir_pages *p, uint64_t page)
{
	if (!p->any)
		p->first = p->last = page;
	p->any = true;
	if (page < p->first)
		p->first = page;
	if (page > p->last)
		p->last = page;
	if (!p->is_sketch && p->last - p->first >= p->nr_counters)
		become_sketch(p);
}

/* Only the lower of the two is raised: the other one counts others, too. */
static uint8_t count_in_sketch(struct weir_pages *p, uint64_t page)
{
	uint32_t half = p->nr_counters / 2;
	uint64_t a = (page * GOLDEN >> 32) & (half - 1);
	uint64_t b = half + ((page * OTHER >> 32) & (half - 1));
	uint8_t low = p->counters[a] < p->counters[b] ? p->counters[a] : p->counters[b];

	if (low == COUNT_MAX)
		return low;
	if (p->counters[a] == low)
		set(p, a, low + 1);
	if (p->counters[b] == low)
		set(p, b, low + 1);
	return low + 1;
}

static uint8_t count(struct weir_pages *p, uint64_t page)
{
	uint64_t counter = page & (p->nr_counters - 1);

	if (p->is_sketch)
		return count_in_sketch(p, page);
	if (p->counters[counter] < COUNT_MAX)
		set(p, counter, p->counters[counter] + 1);
	return p->counters[counter];
}

bool weir_pages_written(struct weir_pages *p, uint64_t page)
{
	uint8_t value;

	reach(p, page);
	fade(p);
	value = count(p, page);
	settle_threshold(p);
	return value >= p->threshold;
}
