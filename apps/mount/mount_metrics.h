/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Metrics of a mount. */
#ifndef WEIR_APPS_MOUNT_MOUNT_METRICS_H
#define WEIR_APPS_MOUNT_MOUNT_METRICS_H

#include <stddef.h>

#include "apps/metrics/exposition.h"
#include "apps/mount/mount_page.h"

#define MOUNT_VALUE(name, help, field) \
	{ name, METRIC_GAUGE, help, offsetof(struct mount_values, field) }

/*
 * The gauges of struct mount_values. The mount's own server and weir metrics prefix their names
 * differently: a Prometheus that scrapes both must not count a mount twice.
 */
#define MOUNT_VALUES(prefix) \
	MOUNT_VALUE(prefix "up", \
		    "1 while the donor is connected or may come back, 0 once it is gone", is_up), \
	MOUNT_VALUE(prefix "in_flight_operations", \
		    "reads, writes and calls to the donor in flight", in_flight), \
	MOUNT_VALUE(prefix "inodes", "inodes that the kernel knows", inodes), \
	MOUNT_VALUE(prefix "threads", "threads that receive the kernel's requests", threads), \
	MOUNT_VALUE(prefix "waiting_threads", \
		    "threads that wait for the donor beyond the timeout", waiting), \
	MOUNT_VALUE(prefix "shared", "0 if this client is alone or has the lease, else 1", shared)

struct mount;

extern const struct metric_group mount_metrics, operation_metrics;

/* Writes the metrics of a mount and of its session. @m: a struct mount. */
void mount_metrics_collect(struct exposition *x, void *m);

#endif
