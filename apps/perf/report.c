/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/report.h"
#include "apps/common/json.h"
#include "apps/common/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BAR_COLUMNS 50

/* Increase of a session's counter during the measurement. */
#define COUNTED(result, name) ((result)->after.name - (result)->before.name)

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static const char *mr_name(const struct perf_options *o, const struct perf_result *result)
{
	return o->user_mr ? "user" : perf_mr_names[result->after.mr];
}

static const char *polling_name(const struct perf_result *result)
{
	return perf_polling_names[result->after.polling];
}

static const char *unload_name(const struct perf_options *o)
{
	return perf_unload_names[o->session.unload ? o->session.unload : WEIR_UNLOAD_OFF];
}

void report_title(const struct perf_options *o, char *text, size_t room)
{
	snprintf(text, room, "%s, %s%s, %s over %s, %u thread%s of depth %u", perf_op_names[o->op],
		 size_format(o->size).text, o->trace_path ? " a page" : "",
		 perf_pattern_names[o->pattern], size_format(o->region_bytes).text, o->threads,
		 o->threads == 1 ? "" : "s", o->depth);
}

/* Prints a line per power of two between the shortest and the longest. */
static void print_histogram(const struct weir_histogram *h)
{
	uint64_t most = 0, count;
	int first = -1, last = 0;

	for (int i = 0; i < 48; i++) {
		count = weir_histogram_between(h, 1ull << i, 2ull << i);
		most = count > most ? count : most;
		if (count && first < 0)
			first = i;
		if (count)
			last = i;
	}
	for (int i = first; first >= 0 && i <= last; i++) {
		int columns;

		count = weir_histogram_between(h, 1ull << i, 2ull << i);
		columns = (int)((double)count / (double)most * BAR_COLUMNS + 0.5);
		printf("%12.1f us %12" PRIu64 " %6.2f %%  %.*s\n", us(1ull << i), count,
		       100 * ratio(count, h->count), columns,
		       "##################################################");
	}
}

/* How requests reached memory that was not registered at start. */
static void print_memory(const struct perf_result *r)
{
	uint64_t copied = COUNTED(r, pre), registered = COUNTED(r, dyn);

	if (!copied && !registered)
		return;
	printf("copied         %12" PRIu64 "  requests, through bounce buffers\n", copied);
	printf("registered     %12" PRIu64 "  requests, individually\n", registered);
	if (r->after.mr_dyn_bytes)
		printf("registers from %12zu  bytes on; shorter requests are copied if possible\n",
		       r->after.mr_dyn_bytes);
}

static void print_costs(const struct perf_result *r)
{
	uint64_t wrs = COUNTED(r, work_requests), doorbells = COUNTED(r, doorbells);

	printf("requests       %12" PRIu64 "  %.0f/s, %s/s\n", r->ops, (double)r->ops / r->seconds,
	       size_format((uint64_t)((double)r->bytes / r->seconds)).text);
	printf("work requests  %12" PRIu64 "  of %.2f requests\n", wrs, ratio(r->ops, wrs));
	printf("doorbells      %12" PRIu64 "  of %.2f work requests\n", doorbells,
	       ratio(wrs, doorbells));
	print_memory(r);
	printf("completions    %12" PRIu64 "\n", COUNTED(r, completions));
	printf("events         %12" PRIu64 "\n", COUNTED(r, events));
	if (COUNTED(r, small))
		printf("unloaded       %12" PRIu64 "  of %" PRIu64 " small writes, %" PRIu64
		       " to hot pages\n",
		       COUNTED(r, unloaded), COUNTED(r, small), COUNTED(r, hot));
	printf("switches       %12" PRIu64 "  of context\n", r->context_switches);
	printf("CPU            %12.2f  s, of %.2f s\n", r->cpu_seconds, r->seconds);
}

void report_text(const struct perf_options *o, const struct perf_result *r)
{
	const struct weir_histogram *h = &r->latency;
	char title[256];

	report_title(o, title, sizeof(title));
	printf("%s", r->after.peer);
	if (o->nr_donors > 1)
		printf(" and %u more", o->nr_donors - 1);
	printf(" over %s: %s\n", r->after.device, title);
	printf("preset %s: batching %s, memory %s, polling %s, window %s and %s work requests, "
	       "class %s, %u channel%s\n\n",
	       perf_preset_names[r->after.preset], perf_batching_names[r->after.batching],
	       mr_name(o, r), polling_name(r), o->window.bytes,
	       o->window.wrs, client_class_names[o->tuning.class_nr], r->after.channels,
	       r->after.channels == 1 ? "" : "s");
	print_costs(r);
	if (o->has_beside)
		printf("beside         %12s  /s, of class %s\n",
		       size_format((uint64_t)((double)r->beside_bytes / r->seconds)).text,
		       client_class_names[o->beside.class_nr]);
	printf("\nlatency, us: p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f; from\n",
	       us(weir_histogram_at(h, 500000)), us(weir_histogram_at(h, 900000)),
	       us(weir_histogram_at(h, 990000)), us(weir_histogram_at(h, 999000)), us(h->max));
	print_histogram(h);
}

static void json_settings(struct json *json, const struct perf_options *o,
			  const struct perf_result *r)
{
	json_open_object(json, "settings");
	json_string(json, "donor", r->after.peer);
	json_uint(json, "donors", o->nr_donors);
	json_string(json, "device", r->after.device);
	json_string(json, "op", perf_op_names[o->op]);
	json_string(json, "pattern", perf_pattern_names[o->pattern]);
	if (o->trace_path)
		json_string(json, "trace", o->trace_path);
	json_uint(json, "threads", o->threads);
	json_uint(json, "depth", o->depth);
	json_uint(json, "batch", o->trace_path ? 1 : o->batch);
	json_uint(json, "size_bytes", o->size);
	json_uint(json, "region_bytes", o->region_bytes);
	json_double(json, "seconds", o->seconds);
	json_uint(json, "ops", o->ops);
	json_uint(json, "seed", o->seed);
	json_string(json, "preset", perf_preset_names[r->after.preset]);
	json_string(json, "batching", perf_batching_names[r->after.batching]);
	json_string(json, "mr", mr_name(o, r));
	json_uint(json, "mr_dyn_bytes", r->after.mr_dyn_bytes);
	json_string(json, "polling", polling_name(r));
	json_string(json, "window", o->window.bytes);
	json_string(json, "window_wrs", o->window.wrs);
	json_string(json, "class", client_class_names[o->tuning.class_nr]);
	if (o->has_beside)
		json_string(json, "beside", client_class_names[o->beside.class_nr]);
	json_string(json, "unload", unload_name(o));
	json_uint(json, "channels", r->after.channels);
	if (o->pattern == PATTERN_STRIDED)
		json_uint(json, "stride_bytes", o->stride * o->size);
	if (o->pattern == PATTERN_CLUSTERS) {
		json_uint(json, "cluster", o->cluster);
		json_uint(json, "gap_us", o->gap_us);
	}
	json_boolean(json, "verify", o->verify);
	json_close(json);
}

static void json_latency(struct json *json, const struct weir_histogram *h)
{
	json_open_object(json, "latency_us");
	json_double(json, "p50", us(weir_histogram_at(h, 500000)));
	json_double(json, "p90", us(weir_histogram_at(h, 900000)));
	json_double(json, "p99", us(weir_histogram_at(h, 990000)));
	json_double(json, "p999", us(weir_histogram_at(h, 999000)));
	json_double(json, "max", us(h->max));
	json_close(json);
}

void report_json(const struct perf_options *o, const struct perf_result *r)
{
	struct json json;

	json_begin(&json, stdout);
	json_uint(&json, "ops", r->ops);
	json_uint(&json, "bytes", r->bytes);
	json_double(&json, "seconds", r->seconds);
	json_double(&json, "ops_per_second", (double)r->ops / r->seconds);
	json_double(&json, "bytes_per_second", (double)r->bytes / r->seconds);
	if (o->has_beside)
		json_double(&json, "beside_bytes_per_second",
			    (double)r->beside_bytes / r->seconds);
	json_uint(&json, "work_requests", COUNTED(r, work_requests));
	json_uint(&json, "doorbells", COUNTED(r, doorbells));
	json_uint(&json, "completions", COUNTED(r, completions));
	json_uint(&json, "events", COUNTED(r, events));
	json_uint(&json, "context_switches", r->context_switches);
	json_double(&json, "cpu_seconds", r->cpu_seconds);
	json_double(&json, "merge_ratio", ratio(r->ops, COUNTED(r, work_requests)));
	json_uint(&json, "copied", COUNTED(r, pre));
	json_uint(&json, "small", COUNTED(r, small));
	json_uint(&json, "hot", COUNTED(r, hot));
	json_uint(&json, "unloaded", COUNTED(r, unloaded));
	json_uint(&json, "unload_full", COUNTED(r, unload_full));
	json_uint(&json, "registered", COUNTED(r, dyn));
	json_uint(&json, "empty_polls", COUNTED(r, empty_polls));
	json_uint(&json, "arms", COUNTED(r, arms));
	json_uint(&json, "sleeps", COUNTED(r, sleeps));
	json_latency(&json, &r->latency);
	json_settings(&json, o, r);
	json_end(&json);
}
