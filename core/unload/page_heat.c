/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A write updates one or two counters and the histogram, and sometimes fades a counter. A counter
 * loses a quarter each time the cursor passes, so its value covers the last few rounds. A round has
 * FADE_TICKS writes a page on average: enough to tell pages apart, and far below the limit of eight
 * bits.
 *
 * If a few pages take nearly all writes, their counters would reach the limit and look alike. The
 * cursor therefore speeds up before the threshold gets there. This is cheap, because the cursor
 * skips empty lines of counters by the word.
 */
#include "core/unload/page_heat.h"

#define COUNT_MAX 255
#define FADE_TICKS 8
#define THRESHOLD_HIGH 192
#define FADES_MAX 64 /* fade steps in one write, each of a counter or of an empty run */
#define LINE WEIR_PAGE_HEAT_LINE
#define LINES WEIR_PAGE_HEAT_LINES
#define GOLDEN 0x9e3779b97f4a7c15ull
#define OTHER 0xd6e8feb86659fd93ull

int weir_page_heat_init(struct weir_page_heat *p, uint8_t *counters, uint32_t nr_counters,
			uint32_t room)
{
	if (!counters || (uintptr_t)counters % sizeof(uint64_t) || !room ||
	    nr_counters < WEIR_PAGE_HEAT_COUNTERS_MIN ||
	    nr_counters > WEIR_PAGE_HEAT_COUNTERS_MAX || nr_counters & (nr_counters - 1))
		return -EINVAL;
	*p = (struct weir_page_heat){ .counters = counters,
				      .lines = (uint64_t *)(counters + nr_counters),
				      .nr_counters = nr_counters,
				      .room = room,
				      .threshold = 1 };
	return 0;
}

/* Moves a counter in the histogram from @from to @to. */
static void update_histogram(struct weir_page_heat *p, uint8_t from, uint8_t to)
{
	if (from)
		p->histogram[from]--;
	if (to)
		p->histogram[to]++;
	p->count += (to > 0) - (from > 0);
	p->hot += (to >= p->threshold) - (from >= p->threshold);
}

/* Finds the lowest threshold that keeps the hot pages within @room. */
static void settle_threshold(struct weir_page_heat *p)
{
	while (p->hot > p->room)
		p->hot -= p->histogram[p->threshold++];
	while (p->threshold > 1 && p->hot + p->histogram[p->threshold - 1] <= p->room)
		p->hot += p->histogram[--p->threshold];
}

static bool is_in_histogram(const struct weir_page_heat *p, uint64_t counter)
{
	return !p->is_sketch || counter < p->nr_counters / 2;
}

static void set_counter(struct weir_page_heat *p, uint64_t counter, uint8_t value)
{
	if (!p->counters[counter])
		p->lines[counter / LINE / LINES] |= 1ull << counter / LINE % LINES;
	if (is_in_histogram(p, counter))
		update_histogram(p, p->counters[counter], value);
	p->counters[counter] = value;
}

/* The cursor's range: all pages ever counted, or the whole sketch. */
static uint64_t first_counter(const struct weir_page_heat *p)
{
	return p->is_sketch ? 0 : p->first;
}

static uint64_t end_counter(const struct weir_page_heat *p)
{
	return p->is_sketch ? p->nr_counters : p->last + 1;
}

static bool counters_are_empty(const struct weir_page_heat *p, uint64_t counter, uint32_t count)
{
	uint64_t word;
	uint32_t i;

	for (i = 0; i < count; i += sizeof(word)) {
		memcpy(&word, p->counters + counter + i, sizeof(word));
		if (word)
			return false;
	}
	return true;
}

/* Empty counters from the start of a line on, as far as one word of @lines shows. */
static uint64_t count_empty_lines(struct weir_page_heat *p, uint64_t counter)
{
	uint64_t line = counter / LINE, end = p->nr_counters / LINE;
	uint64_t *word = &p->lines[line / LINES];
	uint64_t left = *word >> line % LINES;
	uint64_t count = left ? (uint64_t)__builtin_ctzll(left) : LINES - line % LINES;

	if (!count && counters_are_empty(p, counter, LINE)) {
		*word &= ~(1ull << line % LINES);
		count = 1;
	}
	return (count < end - line ? count : end - line) * LINE;
}

/* The number of empty counters that one step can skip from here, or 0. */
static uint64_t count_empty_here(struct weir_page_heat *p, uint64_t counter)
{
	uint64_t count = counter % LINE ? 0 : count_empty_lines(p, counter);

	if (count || counter % sizeof(uint64_t) ||
	    !counters_are_empty(p, counter, sizeof(uint64_t)))
		return count;
	return sizeof(uint64_t);
}

/* Fades one counter, or skips empty ones. */
static void fade_next_counter(struct weir_page_heat *p)
{
	uint64_t counter, empty;
	uint8_t value;

	if (p->cursor < first_counter(p) || p->cursor >= end_counter(p))
		p->cursor = first_counter(p);
	counter = p->cursor & (p->nr_counters - 1);
	empty = count_empty_here(p, counter);
	if (empty) {
		p->cursor += empty;
		return;
	}
	p->cursor++;
	value = p->counters[counter];
	set_counter(p, counter, (uint8_t)(value - (value + 3) / 4));
}

static void fade_some(struct weir_page_heat *p)
{
	unsigned int i;

	if (p->threshold > THRESHOLD_HIGH) {
		for (i = 0; i < FADES_MAX; i++)
			fade_next_counter(p);
	} else if (++p->ticks >= FADE_TICKS) {
		p->ticks = 0;
		fade_next_counter(p);
	}
}

/* Pages share counters from now on. Happens once at most, and restarts all counts. */
static void become_sketch(struct weir_page_heat *p)
{
	uint32_t i;

	p->is_sketch = true;
	for (i = 0; i < p->nr_counters; i++)
		p->counters[i] = 0;
	for (i = 0; i < p->nr_counters / LINE; i += LINES)
		p->lines[i / LINES] = 0;
	for (i = 0; i <= COUNT_MAX; i++)
		p->histogram[i] = 0;
	p->count = 0;
	p->threshold = 1;
	p->hot = 0;
	p->cursor = 0;
}

static void extend_range(struct weir_page_heat *p, uint64_t page)
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

/* Raises only the lower of the two counters: the higher also counts other pages. */
static uint8_t count_in_sketch(struct weir_page_heat *p, uint64_t page)
{
	uint32_t half = p->nr_counters / 2;
	uint64_t a = (page * GOLDEN >> 32) & (half - 1);
	uint64_t b = half + ((page * OTHER >> 32) & (half - 1));
	uint8_t low = p->counters[a] < p->counters[b] ? p->counters[a] : p->counters[b];

	if (low == COUNT_MAX)
		return low;
	if (p->counters[a] == low)
		set_counter(p, a, low + 1);
	if (p->counters[b] == low)
		set_counter(p, b, low + 1);
	return low + 1;
}

static uint8_t count(struct weir_page_heat *p, uint64_t page)
{
	uint64_t counter = page & (p->nr_counters - 1);

	if (p->is_sketch)
		return count_in_sketch(p, page);
	if (p->counters[counter] < COUNT_MAX)
		set_counter(p, counter, p->counters[counter] + 1);
	return p->counters[counter];
}

bool weir_page_heat_record_write(struct weir_page_heat *p, uint64_t page)
{
	uint8_t value;

	extend_range(p, page);
	fade_some(p);
	value = count(p, page);
	settle_threshold(p);
	return value >= p->threshold;
}
