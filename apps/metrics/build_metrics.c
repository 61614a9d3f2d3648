/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/host_metrics.h"

static const struct metric metrics[] = {
	{ "weir_build_info", METRIC_INFO, "always 1; the label tells which weir it is", 0 },
	{ NULL },
};

const struct metric_group build_metrics = {
	.title = "All commands",
	.labels = "`version`",
	.metrics = metrics,
};

void build_metrics_collect(struct exposition *x)
{
	struct metric_row row = { .values = "" };

	metric_label_add(&row, "version", "%s", WEIR_VERSION);
	exposition_group(x, &build_metrics, &row, 1);
}
