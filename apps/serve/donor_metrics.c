/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The counters belong to the donor's thread, which copies them: neither thread needs a lock. */
#include "apps/serve/donor_metrics.h"

#include "apps/serve/available_memory.h"
#include "apps/serve/donor_call.h"
#include "apps/serve/tenant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct donor_values {
	uint64_t memory_bytes, limit_bytes, lent_bytes, available_bytes;
	uint64_t huge_pages, clients, regions;
	uint64_t joins, rejects, messages, unloaded, unload_refused, unload_pauses;
};

#define DONOR(name, type, help, field)                                               \
	{                                                                            \
		"weir_donor_" name, type, help, offsetof(struct donor_values, field) \
	}

static const struct metric of_donor[] = {
	DONOR("memory_bytes", METRIC_GAUGE, "bytes that the donor was started with", memory_bytes),
	DONOR("limit_bytes", METRIC_GAUGE,
	      "bytes that the donor lends at most, by weir lend and --spare", limit_bytes),
	DONOR("lent_bytes", METRIC_GAUGE, "bytes that regions and file systems hold", lent_bytes),
	DONOR("machine_available_bytes", METRIC_GAUGE,
	      "bytes that the machine or the control group could still give", available_bytes),
	DONOR("huge_pages", METRIC_GAUGE, "1 if the memory is in huge pages, else 0", huge_pages),
	DONOR("clients", METRIC_GAUGE, "clients connected", clients),
	DONOR("regions", METRIC_GAUGE, "regions that clients and file systems hold", regions),
	DONOR("joined_clients_total", METRIC_COUNTER, "clients that proved a key and joined",
	      joins),
	DONOR("rejected_clients_total", METRIC_COUNTER, "clients that were rejected", rejects),
	DONOR("messages_total", METRIC_COUNTER, "messages and calls received from clients",
	      messages),
	DONOR("unloaded_writes_total", METRIC_COUNTER, "writes that the donor's processor copied",
	      unloaded),
	DONOR("refused_unloaded_writes_total", METRIC_COUNTER,
	      "unloaded writes refused by the check of bounds and rights", unload_refused),
	DONOR("unload_pauses_total", METRIC_COUNTER,
	      "times that clients were told to stop unloading for a while", unload_pauses),
	{ NULL },
};

const struct metric_group donor_metrics = {
	.title = "Donors",
	.metrics = of_donor,
};

static const struct metric of_identity[] = {
	{ "weir_donor_info", METRIC_INFO, "always 1; the labels tell which donor it is", 0 },
	{ NULL },
};

const struct metric_group donor_identity_metrics = {
	.title = "Identity of a donor",
	.labels = "`address`, where it listens; `device`; `incarnation`, new with each start",
	.metrics = of_identity,
};

#define FILES(name, help, field)                                   \
	{                                                          \
		"weir_file_server_" name, METRIC_GAUGE, help,      \
			offsetof(struct file_server_values, field) \
	}

struct file_server_values {
	uint64_t files, taken_bytes, used_bytes, limbo_bytes, dirty_bytes, clients;
};

static const struct metric of_file_server[] = {
	FILES("files", "files and directories", files),
	FILES("taken_bytes", "bytes of lent memory that the file system has taken", taken_bytes),
	FILES("used_bytes", "bytes in files, and bytes in limbo", used_bytes),
	FILES("limbo_bytes", "bytes freed that a client may still write to", limbo_bytes),
	FILES("dirty_bytes", "bytes freed and not zeroed yet", dirty_bytes),
	FILES("clients", "clients that have mounted the file system", clients),
	{ NULL },
};

const struct metric_group file_server_metrics = {
	.title = "File systems of a donor",
	.labels = "`tenant`, the number of the key on the command line, from 0",
	.metrics = of_file_server,
};

/* The donor's thread copies this; @files[@nr], of the tenants whose file system exists. */
struct snapshot {
	struct fs_tenants *tenants;
	struct weir_donor_info donor;
	struct file_server_values *files;
	struct metric_row *rows;
	unsigned int nr;
};

static void copy_file_server(struct snapshot *snapshot, const struct fs_tenant *tenant)
{
	struct file_server_values *values = &snapshot->files[snapshot->nr];
	struct metric_row *row = &snapshot->rows[snapshot->nr++];
	struct fsd_info info;

	fsd_info(tenant->fsd, &info);
	*values = (struct file_server_values){
		.files = info.files,
		.taken_bytes = info.bytes_taken,
		.used_bytes = info.bytes_used,
		.limbo_bytes = info.bytes_limbo,
		.dirty_bytes = info.bytes_dirty,
		.clients = info.mounted,
	};
	row->values = values;
	metric_label_add(row, "tenant", "%u", tenant->index);
}

static void take_snapshot(void *arg)
{
	struct snapshot *snapshot = arg;
	const struct fs_tenants *tenants = snapshot->tenants;

	weir_donor_info(tenants->donor, &snapshot->donor, sizeof(snapshot->donor));
	for (unsigned int i = 0; i < tenants->nr; i++)
		if (tenants->tenant[i].fsd)
			copy_file_server(snapshot, &tenants->tenant[i]);
}

static void write_donor(struct exposition *x, const struct weir_donor_info *info)
{
	const struct donor_values values = {
		.memory_bytes = info->memory_bytes,
		.limit_bytes = info->limit_bytes,
		.lent_bytes = info->lent_bytes,
		.available_bytes = available_memory(""),
		.huge_pages = info->huge_pages,
		.clients = info->clients,
		.regions = info->regions,
		.joins = info->joins,
		.rejects = info->rejects,
		.messages = info->messages,
		.unloaded = info->unloaded,
		.unload_refused = info->unload_refused,
		.unload_pauses = info->unload_pauses,
	};
	struct metric_row row = { .values = &values };

	exposition_group(x, &donor_metrics, &row, 1);
	metric_label_add(&row, "address", "%s", info->address);
	metric_label_add(&row, "device", "%s", info->device);
	metric_label_add(&row, "incarnation", "%016" PRIx64, info->incarnation);
	exposition_group(x, &donor_identity_metrics, &row, 1);
}

int donor_metrics_collect(struct exposition *x, struct fs_tenants *tenants)
{
	struct snapshot snapshot = {
		.tenants = tenants,
		.files = calloc(tenants->nr, sizeof(*snapshot.files)),
		.rows = calloc(tenants->nr, sizeof(*snapshot.rows)),
	};
	int rc = snapshot.files && snapshot.rows ? 0 : -ENOMEM;

	if (!rc)
		rc = donor_call(tenants->donor, take_snapshot, &snapshot);
	if (!rc) {
		write_donor(x, &snapshot.donor);
		exposition_group(x, &file_server_metrics, snapshot.rows, snapshot.nr);
	}
	free(snapshot.files);
	free(snapshot.rows);
	return rc;
}
