/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Metrics of a mount. */
#ifndef WEIR_APPS_MOUNT_MOUNT_METRICS_H
#define WEIR_APPS_MOUNT_MOUNT_METRICS_H

#include "apps/metrics/exposition.h"

struct mount;

extern const struct metric_group mount_metrics, operation_metrics;

/* Writes the metrics of a mount and of its session. @m: a struct mount. */
void mount_metrics_collect(struct exposition *x, void *m);

#endif
