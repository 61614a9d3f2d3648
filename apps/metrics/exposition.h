/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Metrics as Prometheus reads them: as text, as OpenMetrics, or as protocol buffers.
 *
 * A group declares metrics that have the same labels and the same source, such as a session. The
 * declarations are the one home of names and meanings: samples, HELP lines and the reference page
 * come from them. A row holds the labels and the values of one source.
 */
#ifndef WEIR_APPS_METRICS_EXPOSITION_H
#define WEIR_APPS_METRICS_EXPOSITION_H

#include "core/base/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define METRIC_LABELS_MAX 768 /* bytes of a row's labels, with a NUL after each name and value */

enum metric_type {
	METRIC_COUNTER, /* uint64_t; only grows while the source lives */
	METRIC_COUNTER_NS, /* uint64_t nanoseconds, shown in seconds */
	METRIC_GAUGE, /* uint64_t */
	METRIC_INFO, /* no value: the labels are the information, the sample is 1 */
	METRIC_HISTOGRAM_NS, /* struct weir_histogram of nanoseconds, shown in seconds */
};

/**
 * struct metric - the declaration of a metric
 * @name: by Prometheus's conventions, with the unit and, for counters, _total
 * @type: type of the value, and how it is shown
 * @help: its meaning
 * @at: offset of the value in the row's values
 */
struct metric {
	const char *name;
	enum metric_type type;
	const char *help;
	size_t at;
};

/**
 * struct metric_group - metrics of one kind of source
 * @title: the kind of source, for the reference page
 * @labels: names and meanings of the labels, for the reference page; NULL: none
 * @metrics: ends with an entry without a name
 */
struct metric_group {
	const char *title, *labels;
	const struct metric *metrics;
};

/**
 * struct metric_row - one source
 * @labels: names and values in turn, each with its NUL; metric_label() writes them
 * @labels_bytes: length of @labels
 * @values: the struct that the offsets in the declarations belong to
 */
struct metric_row {
	char labels[METRIC_LABELS_MAX];
	size_t labels_bytes;
	const void *values;
};

/* Use: for (struct metric_label at = { row->labels }; metric_label_next(row, &at);) */
struct metric_label {
	const char *next, *name, *value;
};

static inline bool metric_label_next(const struct metric_row *row, struct metric_label *at)
{
	if (at->next == row->labels + row->labels_bytes)
		return false;
	at->name = at->next;
	at->value = at->name + strlen(at->name) + 1;
	at->next = at->value + strlen(at->value) + 1;
	return true;
}

/**
 * metric_label_add() - add a label to a row
 * @row: the row; its labels are empty at first
 * @name: the label
 * @format: its value. A label that does not fit is left out
 */
void metric_label_add(struct metric_row *row, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum exposition_format {
	EXPOSITION_TEXT, /* Prometheus's, 0.0.4 */
	EXPOSITION_OPENMETRICS, /* 1.0.0 */
	EXPOSITION_PROTOBUF, /* delimited messages of prometheus.proto */
	EXPOSITION_FORMATS
};

extern const char *const exposition_types[EXPOSITION_FORMATS]; /* values for Content-Type */

struct exposition {
	FILE *out;
	enum exposition_format format;
};

void exposition_begin(struct exposition *x, FILE *out, enum exposition_format format);

/* Writes all metrics of a group; nothing without rows. The rows' labels must differ. */
void exposition_group(struct exposition *x, const struct metric_group *group,
		      const struct metric_row *rows, size_t nr_rows);

void exposition_end(struct exposition *x);

/* Writes the groups as a page of the reference, in Markdown. */
void exposition_describe(FILE *out, const struct metric_group *const *groups, size_t nr_groups);

#endif
