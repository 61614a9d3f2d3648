/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/host_metrics.h"

#include "apps/share/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct share_values {
	uint64_t weight, rate_bytes_s, connections, connections_max, memory_bytes;
	uint64_t bytes_sent, bytes_received, turns, waited_ns;
};

#define VALUE(name, type, help, field)                                                      \
	{                                                                                   \
		"weir_share_tenant_" name, type, help, offsetof(struct share_values, field) \
	}

static const struct metric metrics[] = {
	VALUE("weight", METRIC_GAUGE, "weight of the tenant's party among all", weight),
	VALUE("rate_limit_bytes", METRIC_GAUGE,
	      "bytes a second that the tenant's party may send; 0: any number", rate_bytes_s),
	VALUE("connections", METRIC_GAUGE, "connections that the tenant has open", connections),
	VALUE("connections_limit", METRIC_GAUGE,
	      "most connections that the tenant's party may have", connections_max),
	VALUE("memory_bytes", METRIC_GAUGE, "bytes of the tenant's rings and regions",
	      memory_bytes),
	VALUE("sent_bytes_total", METRIC_COUNTER, "bytes sent, writes by a handle included",
	      bytes_sent),
	VALUE("received_bytes_total", METRIC_COUNTER, "bytes received, reads by a handle included",
	      bytes_received),
	VALUE("turns_total", METRIC_COUNTER, "times that the scheduler served the tenant", turns),
	VALUE("waited_seconds_total", METRIC_COUNTER_NS,
	      "time that the tenant waited for these turns", waited_ns),
	{ NULL },
};

const struct metric_group share_metrics = {
	.title = "Tenants of weir share",
	.labels = "`tenant`, a number; `pid` and `process`; `uid`, the user; `cgroup`, the end of "
		  "the control group's path if the party is a control group, else empty",
	.metrics = metrics,
};

#define OF_CLASS(name, type, help, field)                          \
	{                                                          \
		"weir_share_tenant_class_" name, type, help,       \
			offsetof(struct weir_mux_ipc_class, field) \
	}

static const struct metric of_classes[] = {
	OF_CLASS("connections", METRIC_GAUGE, "connections of the tenant in the class, now",
		 connections),
	OF_CLASS("sent_bytes_total", METRIC_COUNTER,
		 "bytes sent in the class, writes by a handle included", bytes_sent),
	OF_CLASS("received_bytes_total", METRIC_COUNTER,
		 "bytes received in the class, reads by a handle included", bytes_received),
	OF_CLASS("turns_total", METRIC_COUNTER,
		 "times that the scheduler served the tenant in the class", turns),
	OF_CLASS("waited_seconds_total", METRIC_COUNTER_NS,
		 "time that the tenant waited for these turns", waited_ns),
	{ NULL },
};

const struct metric_group share_class_metrics = {
	.title = "Classes of a tenant of weir share",
	.labels = "those of the tenant; `class`, a number of `share.conf`, where 0 is the most "
		  "urgent",
	.metrics = of_classes,
};

static void fill_row(const struct weir_mux_ipc_tenant *is, struct share_values *values,
		     struct metric_row *row)
{
	*values = (struct share_values){
		.weight = is->weight,
		.rate_bytes_s = is->rate_bytes_s,
		.connections = is->connections,
		.connections_max = is->connections_max,
		.memory_bytes = is->memory_bytes,
		.bytes_sent = is->bytes_sent,
		.bytes_received = is->bytes_received,
		.turns = is->turns,
		.waited_ns = is->waited_ns,
	};
	row->values = values;
	metric_label_add(row, "tenant", "%u", is->nr);
	metric_label_add(row, "pid", "%u", is->pid);
	metric_label_add(row, "process", "%s", is->name);
	metric_label_add(row, "uid", "%u", is->uid);
	metric_label_add(row, "cgroup", "%s", is->cgroup);
}

/* @tenants: the rows of the tenants, in the order of @snapshot */
static int write_classes(struct exposition *x, const struct share_snapshot *snapshot,
			 const struct metric_row *tenants)
{
	struct metric_row *rows = calloc(snapshot->count * WEIR_MUX_CLASSES_MAX + 1, sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct share_snapshot_tenant *tenant = &snapshot->tenants[i];

		for (unsigned int nr = 0; nr < tenant->nr_classes; nr++, count++) {
			rows[count] = tenants[i];
			rows[count].values = &tenant->classes[nr];
			metric_label_add(&rows[count], "class", "%u", nr);
		}
	}
	exposition_group(x, &share_class_metrics, rows, count);
	free(rows);
	return 0;
}

static int write_tenants(struct exposition *x, const struct share_snapshot *snapshot)
{
	struct share_values *values = calloc(snapshot->count + 1, sizeof(*values));
	struct metric_row *rows = calloc(snapshot->count + 1, sizeof(*rows));
	int rc = values && rows ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < snapshot->count; i++)
		fill_row(&snapshot->tenants[i].is, &values[i], &rows[i]);
	if (!rc) {
		exposition_group(x, &share_metrics, rows, snapshot->count);
		rc = write_classes(x, snapshot, rows);
	}
	free(rows);
	free(values);
	return rc;
}

int share_metrics_collect(struct exposition *x, const char *socket)
{
	struct share_snapshot snapshot;
	struct weir_error error;
	int rc;

	if (access(socket, F_OK))
		return 0;
	rc = share_snapshot_take(&snapshot, socket, SHARE_SNAPSHOT_CLASSES, &error);
	if (rc == -ECONNREFUSED)
		return 0;
	if (rc)
		return rc;
	rc = write_tenants(x, &snapshot);
	share_snapshot_fini(&snapshot);
	return rc;
}
