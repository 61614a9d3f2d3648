/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/cache_pressure.h"
#include "apps/inspect/session_print.h"
#include "apps/common/size.h"
#include "apps/common/table.h"

#include <inttypes.h>
#include <stdio.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void add_row(struct text_table *table, const struct found_session *found)
{
	struct weir_stats_shm_window w;
	struct weir_counters c;

	stats_view_counters(&found->view, &c, &w);
	table_add(table, "%s", found->comm);
	table_add(table, "%d", found->pid);
	table_add(table, "%s", found->view.peer);
	const uint64_t plain[] = { c.requests,	c.merged,      c.work_requests,
				   c.doorbells, c.completions, c.events,
				   c.sleeps,	c.retries,     c.errors };
	for (size_t i = 0; i < LENGTH(plain); i++)
		table_add(table, "%" PRIu64, plain[i]);
	table_add(table, "%s", size_format(c.bytes_written).text);
	table_add(table, "%s", size_format(c.bytes_read).text);
}

void session_print_table(const struct session_list *find)
{
	static const char *const heads[] = { "session of", "pid",      "donor",	    "requests",
					     "merged",	   "send WRs", "doorbells", "completions",
					     "events",	   "sleeps",   "retries",   "errors",
					     "written",	   "read" };
	struct text_table table;

	if (!find->count)
		return;
	table_init(&table, LENGTH(heads));
	for (size_t i = 0; i < LENGTH(heads); i++)
		table_add(&table, "%s", heads[i]);
	for (size_t i = 0; i < find->count; i++)
		add_row(&table, &find->found[i]);
	table_print(&table, stdout);
	table_fini(&table);
}

static void print_number(const char *name, uint64_t number, const char *help)
{
	printf("%-15s %15" PRIu64 "  %s\n", name, number, help);
}

static struct cache_pressure pressure_in(const struct found_session *found, uint64_t entries)
{
	struct weir_stats_shm_page_heat counted;

	stats_view_pressure(&found->view, &counted);
	return cache_pressure_of(&counted, entries);
}

/* The page of a session is large: one at a time. */
static const struct weir_histogram *latency_of(const struct found_session *found, int kind)
{
	static struct weir_histogram latency;

	stats_view_latency(&found->view, (enum weir_stats_shm_kind)kind, &latency);
	return &latency;
}

static double quantile_us(const struct weir_histogram *latency, uint32_t per_million)
{
	return (double)weir_histogram_at(latency, per_million) / 1e3;
}

static void print_latencies(const struct found_session *found)
{
	for (int kind = 0; kind < WEIR_STATS_SHM_KINDS; kind++) {
		const struct weir_histogram *latency = latency_of(found, kind);

		if (latency->count)
			printf("%s latency: p50 %.1f us, p99 %.1f us, longest %.1f us, of %" PRIu64
			       " requests timed, one in 64\n",
			       stats_view_kinds[kind], quantile_us(latency, 500000),
			       quantile_us(latency, 990000), (double)latency->max / 1e3,
			       latency->count);
	}
}

static void print_latencies_json(const struct found_session *found, struct json *json)
{
	json_open_object(json, "latency");
	for (int kind = 0; kind < WEIR_STATS_SHM_KINDS; kind++) {
		const struct weir_histogram *latency = latency_of(found, kind);

		json_open_object(json, stats_view_kinds[kind]);
		json_uint(json, "timed_requests", latency->count);
		json_double(json, "p50_us", quantile_us(latency, 500000));
		json_double(json, "p99_us", quantile_us(latency, 990000));
		json_double(json, "max_us", (double)latency->max / 1e3);
		json_close(json);
	}
	json_close(json);
}

/* Only the causes that there are. */
static void print_failures(const struct found_session *found)
{
	uint64_t failures[WEIR_STATS_SHM_CAUSES];

	stats_view_failures(&found->view, failures);
	for (int cause = 0; cause < WEIR_STATS_SHM_CAUSES; cause++)
		if (failures[cause])
			printf("failed, %s: %" PRIu64 " work requests\n", stats_view_causes[cause],
			       failures[cause]);
}

static void print_failures_json(const struct found_session *found, struct json *json)
{
	uint64_t failures[WEIR_STATS_SHM_CAUSES];

	stats_view_failures(&found->view, failures);
	json_open_object(json, "failures");
	for (int cause = 0; cause < WEIR_STATS_SHM_CAUSES; cause++)
		json_uint(json, stats_view_causes[cause], failures[cause]);
	json_close(json);
}

static void show_one(const struct found_session *found, uint64_t entries)
{
	struct cache_pressure pressure = pressure_in(found, entries);
	struct weir_stats_shm_window window;
	struct weir_counters counters;

	stats_view_counters(&found->view, &counters, &window);
	printf("session of %s, process %d, with %s over %s\n", found->comm, found->pid,
	       found->view.peer, found->view.device);
#define PRINT_COUNTER(name, help) print_number(#name, counters.name, help);
	WEIR_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
	print_number("window_bytes", window.bytes, "in flight on the NIC, at the last change");
	print_number("window_wrs", window.wrs, "work requests in flight, at the last change");
	print_number("window_limit", window.bytes_max,
		     "bytes that might be in flight, at the last change");
	print_number("window_top", window.bytes_top, "highest value of the limit");
	print_number("window_wrs_limit", window.wrs_max,
		     "work requests that might be in flight, at the last change");
	print_number("window_wrs_top", window.wrs_top, "highest value of that limit");
	print_number("mr_dyn_bytes", found->view.mr_dyn_bytes,
		     "from this length on unregistered memory is registered, not copied");
	print_latencies(found);
	print_failures(found);
	cache_pressure_print(&pressure, &counters);
}

void session_print_detail(const struct session_list *find, uint64_t entries)
{
	for (size_t i = 0; i < find->count; i++) {
		if (i)
			putchar('\n');
		show_one(&find->found[i], entries);
	}
}

void session_print_json(const struct session_list *find, uint64_t entries, struct json *json)
{
	struct weir_stats_shm_window window;
	struct weir_counters counters;

	json_open_array(json, "sessions");
	for (size_t i = 0; i < find->count; i++) {
		const struct found_session *found = &find->found[i];
		struct cache_pressure pressure = pressure_in(found, entries);

		stats_view_counters(&found->view, &counters, &window);
		json_open_object(json, NULL);
		json_uint(json, "pid", (uint64_t)found->pid);
		json_string(json, "process", found->comm);
		json_string(json, "donor", found->view.peer);
		json_string(json, "device", found->view.device);
#define PRINT_COUNTER(name, help) json_uint(json, #name, counters.name);
		WEIR_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
		json_uint(json, "window_bytes", window.bytes);
		json_uint(json, "window_wrs", window.wrs);
		json_uint(json, "window_limit", window.bytes_max);
		json_uint(json, "window_top", window.bytes_top);
		json_uint(json, "window_wrs_limit", window.wrs_max);
		json_uint(json, "window_wrs_top", window.wrs_top);
		json_uint(json, "mr_dyn_bytes", found->view.mr_dyn_bytes);
		print_latencies_json(found, json);
		print_failures_json(found, json);
		cache_pressure_json(&pressure, &counters, json);
		json_close(json);
	}
	json_close(json);
}
