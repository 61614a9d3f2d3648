/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/exposition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "apps/metrics/buckets.h"
#include "apps/metrics/protobuf.h"
#include "lib/base/clock.h"

#define TOTAL "_total"

const char *const exposition_types[EXPOSITION_FORMATS] = {
	[EXPOSITION_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
	[EXPOSITION_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	[EXPOSITION_PROTOBUF] = ("application/vnd.google.protobuf; "
				 "proto=io.prometheus.client.MetricFamily; encoding=delimited"),
};

static const char *const type_names[] = {
	[METRIC_COUNTER] = "counter", [METRIC_COUNTER_NS] = "counter",	   [METRIC_GAUGE] = "gauge",
	[METRIC_INFO] = "gauge",      [METRIC_HISTOGRAM_NS] = "histogram",
};

void metric_label_add(struct metric_row *row, const char *name, const char *format, ...)
{
	size_t room = sizeof(row->labels) - row->labels_bytes, name_bytes = strlen(name) + 1;
	char *to = row->labels + row->labels_bytes;
	va_list args;
	int length;

	if (name_bytes >= room)
		return;
	va_start(args, format);
	length = vsnprintf(to + name_bytes, room - name_bytes, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= room - name_bytes)
		return;
	strcpy(to, name);
	row->labels_bytes += name_bytes + (size_t)length + 1;
}

void exposition_begin(struct exposition *x, FILE *out, enum exposition_format format)
{
	*x = (struct exposition){ .out = out, .format = format };
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	return length > strlen(end) && !strncmp(text + length - strlen(end), end, strlen(end));
}

/* In OpenMetrics a counter's family lacks the _total of its samples. */
static size_t family_length(const struct exposition *x, const struct metric *metric)
{
	size_t length = strlen(metric->name);

	return x->format == EXPOSITION_OPENMETRICS && ends_with(metric->name, length, TOTAL) ?
		       length - strlen(TOTAL) :
		       length;
}

static void put_family(struct exposition *x, const struct metric *metric)
{
	int length = (int)family_length(x, metric);

	fprintf(x->out, "# HELP %.*s %s.\n# TYPE %.*s %s\n", length, metric->name, metric->help,
		length, metric->name, type_names[metric->type]);
	if (x->format != EXPOSITION_OPENMETRICS)
		return;
	if (ends_with(metric->name, (size_t)length, "_bytes"))
		fprintf(x->out, "# UNIT %.*s bytes\n", length, metric->name);
	if (ends_with(metric->name, (size_t)length, "_seconds"))
		fprintf(x->out, "# UNIT %.*s seconds\n", length, metric->name);
}

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

/* @bound: of a histogram's bucket, or NULL. */
static void put_name(struct exposition *x, const struct metric *metric, const char *suffix,
		     const struct metric_row *row, const char *bound)
{
	const char *separator = "{";

	fprintf(x->out, "%s%s", metric->name, suffix);
	for (struct metric_label at = { row->labels }; metric_label_next(row, &at);) {
		fprintf(x->out, "%s%s=\"", separator, at.name);
		put_escaped(x->out, at.value);
		fputc('"', x->out);
		separator = ",";
	}
	if (bound)
		fprintf(x->out, "%sle=\"%s\"", separator, bound);
	fputs(row->labels_bytes || bound ? "} " : " ", x->out);
}

static void put_seconds(struct exposition *x, uint64_t ns)
{
	const struct timespec at = weir_timespec(ns);

	fprintf(x->out, "%lld.%09ld\n", (long long)at.tv_sec, at.tv_nsec);
}

static void put_count(struct exposition *x, uint64_t count)
{
	fprintf(x->out, "%" PRIu64 "\n", count);
}

static void put_histogram(struct exposition *x, const struct metric *metric,
			  const struct metric_row *row, const struct weir_histogram *histogram)
{
	struct classic_buckets buckets;
	char bound[32];

	buckets_classic(&buckets, histogram);
	for (int i = 0; i < BUCKETS_CLASSIC; i++) {
		snprintf(bound, sizeof(bound), "%.9g", buckets.bound_s[i]);
		put_name(x, metric, "_bucket", row, bound);
		put_count(x, buckets.upto[i]);
	}
	put_name(x, metric, "_bucket", row, "+Inf");
	put_count(x, buckets.count);
	put_name(x, metric, "_sum", row, NULL);
	put_seconds(x, histogram->sum);
	put_name(x, metric, "_count", row, NULL);
	put_count(x, buckets.count);
}

static void put_sample(struct exposition *x, const struct metric *metric,
		       const struct metric_row *row)
{
	const void *value = (const char *)row->values + metric->at;

	if (metric->type == METRIC_HISTOGRAM_NS) {
		put_histogram(x, metric, row, value);
		return;
	}
	put_name(x, metric, "", row, NULL);
	if (metric->type == METRIC_INFO)
		fputs("1\n", x->out);
	else if (metric->type == METRIC_COUNTER_NS)
		put_seconds(x, *(const uint64_t *)value);
	else
		put_count(x, *(const uint64_t *)value);
}

void exposition_group(struct exposition *x, const struct metric_group *group,
		      const struct metric_row *rows, size_t nr_rows)
{
	for (const struct metric *metric = group->metrics; nr_rows && metric->name; metric++) {
		if (x->format == EXPOSITION_PROTOBUF) {
			protobuf_put_metric(x->out, metric, rows, nr_rows);
			continue;
		}
		put_family(x, metric);
		for (size_t i = 0; i < nr_rows; i++)
			put_sample(x, metric, &rows[i]);
	}
}

void exposition_end(struct exposition *x)
{
	if (x->format == EXPOSITION_OPENMETRICS)
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
