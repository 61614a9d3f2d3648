/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/exposition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/clock.h"

/* Upper bounds of a histogram's buckets: 2^10 ns (1 us) to 2^34 ns (17 s), by factors of 2. */
#define BOUND_FIRST 10
#define BOUND_LAST 34
#define TOTAL "_total"

static const char *const type_names[] = {
	[METRIC_COUNTER] = "counter", [METRIC_COUNTER_NS] = "counter",	   [METRIC_GAUGE] = "gauge",
	[METRIC_INFO] = "gauge",      [METRIC_HISTOGRAM_NS] = "histogram",
};

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
}

void metric_label(struct metric_row *row, const char *name, const char *format, ...)
{
	size_t used = strlen(row->labels);
	char value[METRIC_LABELS_MAX / 2], label[METRIC_LABELS_MAX] = "";
	FILE *file = fmemopen(label, sizeof(label), "w");
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (!file)
		return;
	fprintf(file, "%s%s=\"", used ? "," : "", name);
	put_escaped(file, value);
	fputc('"', file);
	if (!fclose(file) && strlen(label) < sizeof(row->labels) - used)
		strcpy(row->labels + used, label);
}

void exposition_begin(struct exposition *x, FILE *out, bool is_openmetrics)
{
	*x = (struct exposition){ .out = out, .is_openmetrics = is_openmetrics };
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	return length > strlen(end) && !strncmp(text + length - strlen(end), end, strlen(end));
}

/* In OpenMetrics a counter's family lacks the _total of its samples. */
static size_t family_length(const struct exposition *x, const struct metric *metric)
{
	size_t length = strlen(metric->name);

	return x->is_openmetrics && ends_with(metric->name, length, TOTAL) ?
		       length - strlen(TOTAL) :
		       length;
}

static void put_family(struct exposition *x, const struct metric *metric)
{
	int length = (int)family_length(x, metric);

	fprintf(x->out, "# HELP %.*s %s.\n# TYPE %.*s %s\n", length, metric->name, metric->help,
		length, metric->name, type_names[metric->type]);
	if (!x->is_openmetrics)
		return;
	if (ends_with(metric->name, (size_t)length, "_bytes"))
		fprintf(x->out, "# UNIT %.*s bytes\n", length, metric->name);
	if (ends_with(metric->name, (size_t)length, "_seconds"))
		fprintf(x->out, "# UNIT %.*s seconds\n", length, metric->name);
}

static void put_name(struct exposition *x, const struct metric *metric, const char *suffix,
		     const struct metric_row *row)
{
	fprintf(x->out, "%s%s", metric->name, suffix);
	if (row->labels[0])
		fprintf(x->out, "{%s}", row->labels);
	fputc(' ', x->out);
}

static void put_seconds(struct exposition *x, uint64_t ns)
{
	const struct timespec at = weir_timespec(ns);

	fprintf(x->out, "%lld.%09ld\n", (long long)at.tv_sec, at.tv_nsec);
}

static void put_bucket(struct exposition *x, const struct metric *metric,
		       const struct metric_row *row, const char *bound, uint64_t count)
{
	fprintf(x->out, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", metric->name, row->labels,
		row->labels[0] ? "," : "", bound, count);
}

static void put_histogram(struct exposition *x, const struct metric *metric,
			  const struct metric_row *row, const struct weir_histogram *histogram)
{
	uint64_t count = 0, from = 0;
	char bound[32];

	for (int i = BOUND_FIRST; i <= BOUND_LAST; i++) {
		uint64_t to = 1ull << i;

		count += weir_histogram_between(histogram, from, to);
		from = to;
		snprintf(bound, sizeof(bound), "%.9g", (double)to / WEIR_NS_PER_S);
		put_bucket(x, metric, row, bound, count);
	}
	put_bucket(x, metric, row, "+Inf", histogram->count);
	put_name(x, metric, "_sum", row);
	put_seconds(x, histogram->sum);
	put_name(x, metric, "_count", row);
	fprintf(x->out, "%" PRIu64 "\n", histogram->count);
}

static void put_sample(struct exposition *x, const struct metric *metric,
		       const struct metric_row *row)
{
	const void *value = (const char *)row->values + metric->at;

	if (metric->type == METRIC_HISTOGRAM_NS) {
		put_histogram(x, metric, row, value);
		return;
	}
	put_name(x, metric, "", row);
	if (metric->type == METRIC_INFO)
		fputs("1\n", x->out);
	else if (metric->type == METRIC_COUNTER_NS)
		put_seconds(x, *(const uint64_t *)value);
	else
		fprintf(x->out, "%" PRIu64 "\n", *(const uint64_t *)value);
}

void exposition_group(struct exposition *x, const struct metric_group *group,
		      const struct metric_row *rows, size_t nr_rows)
{
	for (const struct metric *metric = group->metrics; nr_rows && metric->name; metric++) {
		put_family(x, metric);
		for (size_t i = 0; i < nr_rows; i++)
			put_sample(x, metric, &rows[i]);
	}
}

void exposition_end(struct exposition *x)
{
	if (x->is_openmetrics)
		fputs("# EOF\n", x->out);
}

void exposition_describe(FILE *out, const struct metric_group *const *groups, size_t nr_groups)
{
	for (size_t i = 0; i < nr_groups; i++) {
		fprintf(out, "\n## %s\n\n", groups[i]->title);
		if (groups[i]->labels)
			fprintf(out, "Labels: %s.\n\n", groups[i]->labels);
		fputs("| metric | type | meaning |\n| --- | --- | --- |\n", out);
		for (const struct metric *metric = groups[i]->metrics; metric->name; metric++)
			fprintf(out, "| `%s` | %s | %s |\n", metric->name, type_names[metric->type],
				metric->help);
	}
}
