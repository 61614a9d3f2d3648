/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names differ from those that a donor serves itself: a Prometheus that scrapes both must not
 * count a donor twice.
 */
#include "apps/metrics/host_metrics.h"
#include "apps/serve/donor_page.h"

#include <errno.h>
#include <stdlib.h>

#define VALUE(name, type, help, field)                                                 \
	{                                                                              \
		"weir_host_donor_" name, type, help, offsetof(struct donor_page, field) \
	}

static const struct metric metrics[] = {
	VALUE("memory_bytes", METRIC_GAUGE, "bytes that the donor was started with", start_bytes),
	VALUE("limit_bytes", METRIC_GAUGE, "bytes that the donor lends at most", limit_bytes),
	VALUE("lent_bytes", METRIC_GAUGE, "bytes that regions and file systems hold", lent_bytes),
	VALUE("machine_available_bytes", METRIC_GAUGE,
	      "bytes that the machine or the control group could still give", available_bytes),
	VALUE("clients", METRIC_GAUGE, "clients connected", clients),
	VALUE("regions", METRIC_GAUGE, "regions that clients and file systems hold", regions),
	VALUE("joined_clients_total", METRIC_COUNTER, "clients that proved a key and joined",
	      joins),
	VALUE("rejected_clients_total", METRIC_COUNTER, "clients that were rejected", rejects),
	VALUE("unloaded_writes_total", METRIC_COUNTER, "writes that the donor's processor copied",
	      unloaded),
	{ NULL },
};

const struct metric_group host_donor_metrics = {
	.title = "Donors of the host",
	.labels = "`pid`; `address`, where it listens; `device`",
	.metrics = metrics,
};

static int write_donors(struct exposition *x, const struct donor_list *list)
{
	struct metric_row *rows = calloc(list->count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		const struct donor_page *page = &list->found[i].page;

		rows[i].values = page;
		metric_label_add(&rows[i], "pid", "%d", (int)list->found[i].pid);
		metric_label_add(&rows[i], "address", "%s", page->address);
		metric_label_add(&rows[i], "device", "%s", page->device);
	}
	exposition_group(x, &host_donor_metrics, rows, list->count);
	free(rows);
	return 0;
}

int host_donor_metrics_collect(struct exposition *x)
{
	struct donor_list list = { 0 };
	int rc = donor_list_add(&list, 0);

	if (!rc)
		rc = write_donors(x, &list);
	donor_list_free(&list);
	return rc;
}
