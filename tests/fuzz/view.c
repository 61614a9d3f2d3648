/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another process shows arbitrary bytes as its shared statistics. A reader ends, stays within
 * the bytes, and reports lines of text.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inspect/trace_text.h"
#include "apps/inspect/stats_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weir_stats_shm stats;
static struct stats_view_trace look;

static void assert_is_a_line(const char *text)
{
	for (; *text; text++)
		assert(*text >= ' ' && *text <= '~');
}

static void tell_all(void)
{
	char *text = NULL;
	size_t length;
	uint32_t i;
	FILE *out;

	assert(look.count <= WEIR_STATS_SHM_SLOTS);
	out = open_memstream(&text, &length);
	for (i = 0; i < look.count; i++)
		trace_text_print(out, &look.record[i]);
	fclose(out);
	assert_is_a_line(text);
	free(text);
}

/* The first byte selects the valid parts of the head; slots may be valid too. */
static void fill(const uint8_t *data, size_t size)
{
	uint8_t right = *data;
	size_t i;

	memset(&stats, 0, sizeof(stats));
	memcpy(&stats, data, size < sizeof(stats) ? size : sizeof(stats));
	if (right & 1)
		stats.magic = WEIR_STATS_SHM_MAGIC;
	if (right & 2)
		stats.version = WEIR_STATS_SHM_VERSION;
	if (right & 4)
		stats.slots = WEIR_STATS_SHM_SLOTS;
	for (i = 0; right & 8 && i < WEIR_STATS_SHM_SLOTS; i++)
		stats.trace[i].number -= stats.trace[i].number % WEIR_STATS_SHM_SLOTS - i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_stats_shm_window window;
	struct weir_counters counters;
	static struct weir_histogram latency;
	struct stats_view view;
	uint64_t after;

	if (size < 9)
		return 0;
	fill(data, size);
	memcpy(&after, data + 1, sizeof(after));
	if (stats_view_check(&view, &stats))
		return 0;
	assert_is_a_line(view.device);
	assert_is_a_line(view.peer);
	stats_view_counters(&view, &counters, &window);
	stats_view_latency(&view, size % WEIR_STATS_SHM_KINDS, &latency);
	(void)weir_histogram_at(&latency, 990000);
	stats_view_trace(&view, 0, &look);
	tell_all();
	stats_view_trace(&view, after, &look);
	assert(look.newest >= after);
	tell_all();
	return 0;
}
