/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/blk/blk.h"
#include "apps/metrics/host_metrics.h"

#include <errno.h>
#include <stdlib.h>

#define VALUE(name, type, help, counter)                                                   \
	{                                                                                  \
		"weir_blk_" name, type, help, sizeof(uint64_t) * WEIR_BLK_COUNTER_##counter \
	}

static const struct metric metrics[] = {
	VALUE("transfers_total", METRIC_COUNTER, "reads and writes of donors' memory", ios),
	VALUE("requests_total", METRIC_COUNTER, "requests made of these", requests),
	VALUE("work_requests_total", METRIC_COUNTER, "work requests posted", work_requests),
	VALUE("doorbells_total", METRIC_COUNTER, "posts of work requests", doorbells),
	VALUE("merged_requests_total", METRIC_COUNTER,
	      "requests that shared a work request with others", merged),
	VALUE("completions_total", METRIC_COUNTER, "completions taken", completions),
	VALUE("polled_completions_total", METRIC_COUNTER,
	      "completions found by a waiting thread's own polling", polled),
	VALUE("completion_events_total", METRIC_COUNTER,
	      "times that an event started polling", events),
	VALUE("empty_polls_total", METRIC_COUNTER, "polls that found nothing", empty_polls),
	VALUE("window_waits_total", METRIC_COUNTER, "times that the window was full", window_waits),
	VALUE("retries_total", METRIC_COUNTER,
	      "requests posted again after a connection broke", retries),
	VALUE("reconnects_total", METRIC_COUNTER, "connections re-established", reconnects),
	VALUE("failed_work_requests_total", METRIC_COUNTER, "work requests that failed", errors),
	VALUE("read_bytes_total", METRIC_COUNTER, "bytes read", bytes_read),
	VALUE("written_bytes_total", METRIC_COUNTER, "bytes written", bytes_written),
	VALUE("failovers_total", METRIC_COUNTER, "reads sent to another replica", failovers),
	VALUE("rebuilt_bytes_total", METRIC_COUNTER, "bytes copied to new replicas", bytes_copied),
	VALUE("repaired_bytes_total", METRIC_COUNTER,
	      "bytes replaced at a pool's donor that returned other data", bytes_repaired),
	VALUE("mismatched_reads_total", METRIC_COUNTER,
	      "reads that returned other data than was written", mismatches),
	VALUE("local_disk_written_bytes_total", METRIC_COUNTER,
	      "bytes copied to the local disk", local_bytes_written),
	VALUE("local_disk_read_bytes_total", METRIC_COUNTER,
	      "bytes read from the local disk for lack of a donor", local_bytes_read),
	VALUE("local_disk_behind_bytes", METRIC_GAUGE,
	      "bytes not on the local disk yet", local_behind),
	VALUE("pieces", METRIC_GAUGE, "pieces that the device has", pieces),
	VALUE("degraded_pieces", METRIC_GAUGE, "pieces with too few replicas", degraded),
	VALUE("lost_pieces", METRIC_GAUGE, "pieces without any replica", lost),
	VALUE("leaving_pieces", METRIC_GAUGE,
	      "pieces that a donor has asked back and still holds", leaving),
	VALUE("thin_pieces", METRIC_GAUGE,
	      "fully discarded pieces whose memory was given back", given_back),
	{ NULL },
};

const struct metric_group blk_metrics = {
	.title = "Block devices",
	.labels = "`device`, such as weir0",
	.metrics = metrics,
};

struct blk_values {
	uint64_t counters[WEIR_BLK_COUNTERS_NR];
};

struct blk_rows {
	struct metric_row row[WEIR_BLK_NUMBER_MAX + 1];
	struct blk_values values[WEIR_BLK_NUMBER_MAX + 1];
	size_t count;
};

/* An older module has fewer counters; those that it lacks are 0. */
static void on_device(const struct nlattr *const *attrs, void *arg)
{
	const struct nlattr *counted = attrs[WEIR_BLK_COUNTERS], *number = attrs[WEIR_BLK_NUMBER];
	struct blk_rows *rows = arg;
	size_t bytes;

	if (!counted || !number || rows->count > WEIR_BLK_NUMBER_MAX)
		return;
	bytes = mnl_attr_get_payload_len(counted);
	memcpy(rows->values[rows->count].counters, mnl_attr_get_payload(counted),
	       bytes < sizeof(struct blk_values) ? bytes : sizeof(struct blk_values));
	rows->row[rows->count].values = &rows->values[rows->count];
	metric_label_add(&rows->row[rows->count], "device", "weir%u", mnl_attr_get_u32(number));
	rows->count++;
}

static int collect(struct exposition *x, struct blk_netlink *talk, struct blk_rows *rows)
{
	int rc = blk_netlink_try(talk);

	if (rc == -ENOENT || rc == -EAFNOSUPPORT)
		return 0;
	if (!rc)
		rc = blk_netlink_ask(talk, blk_netlink_message(talk, WEIR_BLK_LIST, NLM_F_DUMP),
				     on_device, rows);
	if (!rc)
		exposition_group(x, &blk_metrics, rows->row, rows->count);
	return rc;
}

int blk_metrics_collect(struct exposition *x)
{
	struct blk_netlink *talk = calloc(1, sizeof(*talk));
	struct blk_rows *rows = calloc(1, sizeof(*rows));
	int rc = talk && rows ? collect(x, talk, rows) : -ENOMEM;

	if (talk)
		blk_netlink_close(talk);
	free(rows);
	free(talk);
	return rc;
}
