/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A family is packed in parts: the head, and each row as a family of one metric. Parts in
 * succession are the same as the whole: so no more than a row is in memory unpacked.
 */
#include "apps/metrics/protobuf.h"

#include "apps/metrics/buckets.h"
#include "apps/metrics/prometheus.pb-c.h"
#include "lib/base/clock.h"

#include <stdlib.h>

#define LABELS_MAX 16
/* Of two buckets, one ends a span at most. */
#define SPANS_MAX ((BUCKETS_NATIVE + 1) / 2)

struct sink {
	ProtobufCBuffer base;
	FILE *out;
};

static void append(ProtobufCBuffer *buffer, size_t length, const uint8_t *bytes)
{
	fwrite(bytes, 1, length, ((struct sink *)buffer)->out);
}

static void pack(FILE *out, const Prometheus__MetricFamily *part)
{
	struct sink sink = { { append }, out };

	prometheus__metric_family__pack_to_buffer(part, &sink.base);
}

/* A message of histograms, and what its pointers point to. */
struct histogram_message {
	Prometheus__Histogram is;
	Prometheus__Bucket bucket[BUCKETS_CLASSIC], *bucket_at[BUCKETS_CLASSIC];
	Prometheus__BucketSpan span[SPANS_MAX], *span_at[SPANS_MAX];
	int64_t delta[BUCKETS_NATIVE];
};

static void fill_classic(struct histogram_message *message, const struct classic_buckets *buckets)
{
	for (int i = 0; i < BUCKETS_CLASSIC; i++) {
		message->bucket[i] = (Prometheus__Bucket)PROMETHEUS__BUCKET__INIT;
		message->bucket[i].upper_bound = buckets->bound_s[i];
		message->bucket[i].cumulative_count = buckets->upto[i];
		message->bucket_at[i] = &message->bucket[i];
	}
	message->is.bucket = message->bucket_at;
	message->is.n_bucket = BUCKETS_CLASSIC;
}

/* Counts are told as differences from the bucket before, those of empty buckets not at all. */
static void fill_native(struct histogram_message *message, const struct native_buckets *buckets)
{
	Prometheus__BucketSpan *span = NULL;
	int next = -BUCKETS_NATIVE_FIRST; /* the first span counts from the index 0 */
	uint64_t before = 0;

	message->is.positive_span = message->span_at;
	message->is.positive_delta = message->delta;
	for (int i = 0; i < BUCKETS_NATIVE; i++) {
		if (!buckets->of[i])
			continue;
		if (!span || next != i) {
			span = &message->span[message->is.n_positive_span];
			*span = (Prometheus__BucketSpan)PROMETHEUS__BUCKET_SPAN__INIT;
			span->offset = i - next;
			message->span_at[message->is.n_positive_span++] = span;
		}
		span->length++;
		message->delta[message->is.n_positive_delta++] = (int64_t)(buckets->of[i] - before);
		before = buckets->of[i];
		next = i + 1;
	}
	message->is.schema = BUCKETS_NATIVE_SCHEMA;
	message->is.zero_threshold = BUCKETS_ZERO_MAX_S;
	message->is.zero_count = buckets->zeroes;
}

static void fill_histogram(struct histogram_message *message, const struct weir_histogram *from)
{
	struct classic_buckets classic;
	struct native_buckets native;

	message->is = (Prometheus__Histogram)PROMETHEUS__HISTOGRAM__INIT;
	buckets_classic(&classic, from);
	fill_classic(message, &classic);
	buckets_native(&native, from);
	fill_native(message, &native);
	message->is.sample_count = native.count;
	message->is.sample_sum = (double)from->sum / WEIR_NS_PER_S;
}

static double value_of(const struct metric *metric, const void *value)
{
	if (metric->type == METRIC_INFO)
		return 1;
	return (double)*(const uint64_t *)value /
	       (metric->type == METRIC_COUNTER_NS ? WEIR_NS_PER_S : 1);
}

/* Packs a row with its labels. @histogram: room for a message, if the metric is a histogram. */
static void put_row(FILE *out, const struct metric *metric, const struct metric_row *row,
		    struct histogram_message *histogram)
{
	const void *value = (const char *)row->values + metric->at;
	Prometheus__MetricFamily part = PROMETHEUS__METRIC_FAMILY__INIT;
	Prometheus__Metric message = PROMETHEUS__METRIC__INIT, *only = &message;
	Prometheus__Counter counter = PROMETHEUS__COUNTER__INIT;
	Prometheus__Gauge gauge = PROMETHEUS__GAUGE__INIT;
	Prometheus__LabelPair labels[LABELS_MAX], *label_at[LABELS_MAX];

	for (struct metric_label at = { row->labels };
	     message.n_label < LABELS_MAX && metric_label_next(row, &at);) {
		Prometheus__LabelPair *label = &labels[message.n_label];

		*label = (Prometheus__LabelPair)PROMETHEUS__LABEL_PAIR__INIT;
		label->name = (char *)at.name;
		label->value = (char *)at.value;
		label_at[message.n_label++] = label;
	}
	message.label = label_at;
	if (metric->type == METRIC_HISTOGRAM_NS) {
		fill_histogram(histogram, value);
		message.histogram = &histogram->is;
	} else if (metric->type == METRIC_GAUGE || metric->type == METRIC_INFO) {
		gauge.value = value_of(metric, value);
		message.gauge = &gauge;
	} else {
		counter.value = value_of(metric, value);
		message.counter = &counter;
	}
	part.metric = &only;
	part.n_metric = 1;
	pack(out, &part);
}

static void put_head(FILE *out, const struct metric *metric)
{
	static const Prometheus__MetricType types[] = {
		[METRIC_COUNTER] = PROMETHEUS__METRIC_TYPE__COUNTER,
		[METRIC_COUNTER_NS] = PROMETHEUS__METRIC_TYPE__COUNTER,
		[METRIC_GAUGE] = PROMETHEUS__METRIC_TYPE__GAUGE,
		[METRIC_INFO] = PROMETHEUS__METRIC_TYPE__GAUGE,
		[METRIC_HISTOGRAM_NS] = PROMETHEUS__METRIC_TYPE__HISTOGRAM,
	};
	Prometheus__MetricFamily head = PROMETHEUS__METRIC_FAMILY__INIT;

	head.name = (char *)metric->name;
	head.help = (char *)metric->help;
	head.type = types[metric->type];
	pack(out, &head);
}

static void put_varint(FILE *out, size_t value)
{
	for (; value >= 128; value >>= 7)
		fputc((int)(value & 127) | 128, out);
	fputc((int)value, out);
}

void protobuf_put_metric(FILE *out, const struct metric *metric, const struct metric_row *rows,
			 size_t nr_rows)
{
	char *bytes = NULL;
	size_t length = 0;
	struct histogram_message *histogram = malloc(sizeof(*histogram));
	FILE *family = open_memstream(&bytes, &length);

	if (histogram && family) {
		put_head(family, metric);
		for (size_t i = 0; i < nr_rows; i++)
			put_row(family, metric, &rows[i], histogram);
	}
	if (family && !fclose(family) && length) {
		put_varint(out, length);
		fwrite(bytes, 1, length, out);
	}
	free(bytes);
	free(histogram);
}
