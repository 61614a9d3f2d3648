/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/host_metrics.h"

#include "apps/inspect/softnic_list.h"

#include <errno.h>
#include <stdlib.h>

/* Name and type for each counter of SOFTNIC_COUNTERS. */
#define SOFTNIC_doorbells "weir_softnic_doorbells_total", METRIC_COUNTER
#define SOFTNIC_send_wrs "weir_softnic_send_work_requests_total", METRIC_COUNTER
#define SOFTNIC_recv_wrs "weir_softnic_receive_work_requests_total", METRIC_COUNTER
#define SOFTNIC_completions "weir_softnic_completions_total", METRIC_COUNTER
#define SOFTNIC_cq_events "weir_softnic_completion_events_total", METRIC_COUNTER
#define SOFTNIC_writes "weir_softnic_writes_total", METRIC_COUNTER
#define SOFTNIC_reads "weir_softnic_reads_total", METRIC_COUNTER
#define SOFTNIC_sends "weir_softnic_sends_total", METRIC_COUNTER
#define SOFTNIC_atomics "weir_softnic_atomics_total", METRIC_COUNTER
#define SOFTNIC_write_bytes "weir_softnic_written_bytes_total", METRIC_COUNTER
#define SOFTNIC_read_bytes "weir_softnic_read_bytes_total", METRIC_COUNTER
#define SOFTNIC_send_bytes "weir_softnic_sent_bytes_total", METRIC_COUNTER
#define SOFTNIC_receives "weir_softnic_receives_total", METRIC_COUNTER
#define SOFTNIC_receive_bytes "weir_softnic_received_bytes_total", METRIC_COUNTER
#define SOFTNIC_errors "weir_softnic_failed_completions_total", METRIC_COUNTER
#define SOFTNIC_rnr_naks "weir_softnic_receiver_not_ready_total", METRIC_COUNTER
#define SOFTNIC_packets_out "weir_softnic_transmitted_packets_total", METRIC_COUNTER
#define SOFTNIC_packets_in "weir_softnic_accepted_packets_total", METRIC_COUNTER
#define SOFTNIC_refused "weir_softnic_refused_packets_total", METRIC_COUNTER
#define SOFTNIC_retransmitted "weir_softnic_retransmitted_packets_total", METRIC_COUNTER
#define SOFTNIC_duplicates "weir_softnic_duplicate_packets_total", METRIC_COUNTER
#define SOFTNIC_gaps "weir_softnic_gap_packets_total", METRIC_COUNTER
#define SOFTNIC_sealed "weir_softnic_encrypted_packets_total", METRIC_COUNTER
#define SOFTNIC_forged "weir_softnic_forged_packets_total", METRIC_COUNTER
#define SOFTNIC_mrs "weir_softnic_memory_regions", METRIC_GAUGE
#define SOFTNIC_qps "weir_softnic_queue_pairs", METRIC_GAUGE

/* The same for each counter of SOFTNIC_PEER_COUNTERS. */
#define PEER_packets_out "weir_softnic_peer_transmitted_packets_total"
#define PEER_packets_in "weir_softnic_peer_accepted_packets_total"
#define PEER_bytes_out "weir_softnic_peer_transmitted_bytes_total"
#define PEER_bytes_in "weir_softnic_peer_received_bytes_total"
#define PEER_retransmitted "weir_softnic_peer_retransmitted_packets_total"
#define PEER_duplicates "weir_softnic_peer_duplicate_packets_total"
#define PEER_gaps "weir_softnic_peer_gap_packets_total"
#define PEER_timeouts "weir_softnic_peer_timeouts_total"
#define PEER_naks_out "weir_softnic_peer_sent_naks_total"
#define PEER_naks_in "weir_softnic_peer_received_naks_total"
#define PEER_rnr_out "weir_softnic_peer_sent_rnr_naks_total"
#define PEER_rnr_in "weir_softnic_peer_received_rnr_naks_total"

#define PEER_COUNTER(name, help) \
	{ PEER_##name, METRIC_COUNTER, help, offsetof(struct softnic_peer_counters, name) },

static const struct metric peer_metrics[] = {
	SOFTNIC_PEER_COUNTERS(PEER_COUNTER){ NULL },
};

const struct metric_group softnic_peer_metrics = {
	.title = "Peers of softnic",
	.labels = "`pid`, `process` and `peer`",
	.metrics = peer_metrics,
};

#define COUNTER(name, help) { SOFTNIC_##name, help, offsetof(struct softnic_counters, name) },

static const struct metric metrics[] = {
	SOFTNIC_COUNTERS(COUNTER){ NULL },
};

const struct metric_group softnic_metrics = {
	.title = "softnic",
	.labels = "`pid` and `process`",
	.metrics = metrics,
};

static const struct metric of_host[] = {
	{ "weir_softnic_silent_processes", METRIC_GAUGE,
	  "processes with softnic open that are stopped or do not answer, of this user",
	  offsetof(struct softnic_list, silent) },
	{ NULL },
};

const struct metric_group softnic_host_metrics = {
	.title = "softnic of the host",
	.metrics = of_host,
};

static int collect_peers(struct exposition *x, const struct softnic_list *list, pid_t pid)
{
	struct metric_row *rows = calloc(list->count * SOFTNIC_PEERS_MAX + 1, sizeof(*rows));
	size_t nr = 0;

	for (size_t i = 0; rows && i < list->count; i++) {
		const struct softnic_process *process = &list->process[i];

		for (size_t k = 0; k < process->nr_peers && (!pid || process->pid == pid); k++) {
			rows[nr].values = &process->peers[k].counters;
			metric_label_add(&rows[nr], "pid", "%d", process->pid);
			metric_label_add(&rows[nr], "process", "%s", process->comm);
			metric_label_add(&rows[nr++], "peer", "%s",
				     softnic_list_peer(&process->peers[k]).text);
		}
	}
	if (rows)
		exposition_group(x, &softnic_peer_metrics, rows, nr);
	free(rows);
	return rows ? 0 : -ENOMEM;
}

int softnic_metrics_collect(struct exposition *x, pid_t pid)
{
	struct softnic_list list;
	struct metric_row *rows;
	size_t nr = 0;
	int rc = softnic_list_take(&list);

	if (rc)
		return rc;
	rows = calloc(list.count + 1, sizeof(*rows));
	for (size_t i = 0; rows && i < list.count; i++) {
		const struct softnic_process *process = &list.process[i];

		if (pid && process->pid != pid)
			continue;
		rows[nr].values = &process->counters;
		metric_label_add(&rows[nr], "pid", "%d", process->pid);
		metric_label_add(&rows[nr++], "process", "%s", process->comm);
	}
	if (rows)
		exposition_group(x, &softnic_metrics, rows, nr);
	if (!pid)
		exposition_group(x, &softnic_host_metrics,
				 &(struct metric_row){ .values = &list }, 1);
	rc = rows ? collect_peers(x, &list, pid) : -ENOMEM;
	free(rows);
	softnic_list_free(&list);
	return rc;
}
