/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/mount_metrics.h"

#include <string.h>
#include <unistd.h>

#include "apps/metrics/host_metrics.h"
#include "apps/mount/mount.h"

static const struct metric of_mount[] = { MOUNT_VALUES("weir_mount_"), { NULL } };

const struct metric_group mount_metrics = {
	.title = "Mounts",
	.labels = "`mountpoint` and `donor`",
	.metrics = of_mount,
};

static const struct metric of_operations[] = {
	{ "weir_mount_operation_duration_seconds", METRIC_HISTOGRAM_NS,
	  "time from the receipt of a request of the kernel to the reply", 0 },
	{ NULL },
};

const struct metric_group operation_metrics = {
	.title = "Operations of a mount",
	.labels = "`mountpoint`; `operation`, which is `read`, `write` or `metadata`",
	.metrics = of_operations,
};

static void write_mount(struct exposition *x, struct mount *m)
{
	struct mount_values values;
	struct metric_row row = { .values = &values };

	mount_page_values(m, &values);
	metric_label_add(&row, "mountpoint", "%s", m->options->mountpoint);
	metric_label_add(&row, "donor", "%s", m->options->donor);
	exposition_group(x, &mount_metrics, &row, 1);
}

static void write_operations(struct exposition *x, struct mount *m)
{
	static struct weir_histogram copies[OPERATION_KINDS]; /* one collection at a time */
	struct metric_row rows[OPERATION_KINDS] = { 0 };

	pthread_mutex_lock(&m->operation_time.lock);
	memcpy(copies, m->page.page->duration_ns, sizeof(copies));
	pthread_mutex_unlock(&m->operation_time.lock);
	for (int i = 0; i < OPERATION_KINDS; i++) {
		rows[i].values = &copies[i];
		metric_label_add(&rows[i], "mountpoint", "%s", m->options->mountpoint);
		metric_label_add(&rows[i], "operation", "%s", operation_names[i]);
	}
	exposition_group(x, &operation_metrics, rows, OPERATION_KINDS);
}

/* Without memory or descriptors a group is missing for once. */
void mount_metrics_collect(struct exposition *x, void *arg)
{
	struct mount *m = arg;

	build_metrics_collect(x);
	span_metrics_collect(x);
	write_mount(x, m);
	write_operations(x, m);
	(void)session_metrics_collect(x, getpid());
	(void)softnic_metrics_collect(x, getpid());
}
