/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/host_metrics.h"
#include "apps/mount/mount_metrics.h"
#include "apps/mount/mount_page.h"

#include <errno.h>
#include <stdlib.h>

static const struct metric of_mount[] = { MOUNT_VALUES("weir_host_mount_"), { NULL } };

const struct metric_group host_mount_metrics = {
	.title = "Mounts of the host",
	.labels = "`pid`; `mountpoint` and `donor`",
	.metrics = of_mount,
};

struct operation_values {
	uint64_t count;
	struct weir_histogram duration_ns;
};

static const struct metric of_operations[] = {
	{ "weir_host_mount_operations_total", METRIC_COUNTER, "operations that have ended",
	  offsetof(struct operation_values, count) },
	{ "weir_host_mount_operation_duration_seconds", METRIC_HISTOGRAM_NS,
	  "time from the receipt of a request of the kernel to the reply, of one operation in 64, "
	  "chosen at random; of all, if the mount serves metrics itself",
	  offsetof(struct operation_values, duration_ns) },
	{ NULL },
};

const struct metric_group host_operation_metrics = {
	.title = "Operations of the host's mounts",
	.labels = "those of the mount; `operation`, which is `read`, `write` or `metadata`",
	.metrics = of_operations,
};

static void fill_row(const struct mount_found *found, struct metric_row *row)
{
	row->values = &found->page.values;
	metric_label_add(row, "pid", "%d", (int)found->pid);
	metric_label_add(row, "mountpoint", "%s", found->page.mountpoint);
	metric_label_add(row, "donor", "%s", found->page.donor);
}

static int write_operations(struct exposition *x, const struct mount_list *list,
			    const struct metric_row *mounts)
{
	size_t count = list->count * OPERATION_KINDS;
	struct operation_values *values = calloc(count + 1, sizeof(*values));
	struct metric_row *rows = calloc(count + 1, sizeof(*rows));
	int rc = values && rows ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < count; i++) {
		const struct mount_page *page = &list->found[i / OPERATION_KINDS]->page;
		size_t kind = i % OPERATION_KINDS;

		values[i].count = page->operations[kind];
		values[i].duration_ns = page->duration_ns[kind];
		rows[i] = mounts[i / OPERATION_KINDS];
		rows[i].values = &values[i];
		metric_label_add(&rows[i], "operation", "%s", operation_names[kind]);
	}
	if (!rc)
		exposition_group(x, &host_operation_metrics, rows, count);
	free(rows);
	free(values);
	return rc;
}

int host_mount_metrics_collect(struct exposition *x)
{
	struct mount_list list = { 0 };
	int rc = mount_list_add(&list);
	struct metric_row *rows = calloc(list.count + 1, sizeof(*rows));

	if (!rows)
		rc = -ENOMEM;
	for (size_t i = 0; !rc && i < list.count; i++)
		fill_row(list.found[i], &rows[i]);
	if (!rc) {
		exposition_group(x, &host_mount_metrics, rows, list.count);
		rc = write_operations(x, &list, rows);
	}
	free(rows);
	mount_list_free(&list);
	return rc;
}
