/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Metrics as protocol buffers: the one format of Prometheus that has native histograms. Each metric
 * is a MetricFamily of prometheus.proto, after its length.
 */
#ifndef WEIR_APPS_METRICS_PROTOBUF_H
#define WEIR_APPS_METRICS_PROTOBUF_H

#include "apps/metrics/exposition.h"

/* Without memory, the metric is missing for once. */
void protobuf_put_metric(FILE *out, const struct metric *metric, const struct metric_row *rows,
			 size_t nr_rows);

#endif
