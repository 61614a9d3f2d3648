/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/host_metrics.h"
#include "lib/span/span.h"

static const struct metric metrics[] = {
	{ "weir_spans_total", METRIC_COUNTER, "spans of this process, by what became of them", 0 },
	{ NULL },
};

const struct metric_group span_metrics = {
	.title = "Spans",
	.labels = "`outcome`: `exported`, `refused` by the collector, or `dropped`, because too "
		  "many waited",
	.metrics = metrics,
};

void span_metrics_collect(struct exposition *x)
{
	struct weir_span_counts counts;
	struct metric_row rows[] = {
		{ .values = &counts.exported },
		{ .values = &counts.refused },
		{ .values = &counts.dropped },
	};

	if (!weir_span_counts(&counts))
		return;
	metric_label_add(&rows[0], "outcome", "exported");
	metric_label_add(&rows[1], "outcome", "refused");
	metric_label_add(&rows[2], "outcome", "dropped");
	exposition_group(x, &span_metrics, rows, 3);
}
