/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/host_metrics.h"

#include "apps/inspect/session_list.h"

#include <errno.h>
#include <stdlib.h>

struct session_values {
	struct weir_counters counters;
	struct weir_stats_shm_window window;
};

/* Name and type for each counter of WEIR_COUNTERS. */
#define SESSION_requests "weir_session_requests_total", METRIC_COUNTER
#define SESSION_work_requests "weir_session_work_requests_total", METRIC_COUNTER
#define SESSION_merged "weir_session_merged_requests_total", METRIC_COUNTER
#define SESSION_doorbells "weir_session_doorbells_total", METRIC_COUNTER
#define SESSION_chains "weir_session_chains_total", METRIC_COUNTER
#define SESSION_completions "weir_session_completions_total", METRIC_COUNTER
#define SESSION_events "weir_session_completion_events_total", METRIC_COUNTER
#define SESSION_empty_polls "weir_session_empty_polls_total", METRIC_COUNTER
#define SESSION_arms "weir_session_completion_queue_arms_total", METRIC_COUNTER
#define SESSION_sleeps "weir_session_sleeps_total", METRIC_COUNTER
#define SESSION_window_waits "weir_session_window_waits_total", METRIC_COUNTER
#define SESSION_inlined "weir_session_inlined_work_requests_total", METRIC_COUNTER
#define SESSION_pre "weir_session_copied_requests_total", METRIC_COUNTER
#define SESSION_dyn "weir_session_registered_requests_total", METRIC_COUNTER
#define SESSION_bytes_read "weir_session_read_bytes_total", METRIC_COUNTER
#define SESSION_bytes_written "weir_session_written_bytes_total", METRIC_COUNTER
#define SESSION_retries "weir_session_retries_total", METRIC_COUNTER
#define SESSION_errors "weir_session_failed_work_requests_total", METRIC_COUNTER
#define SESSION_reconnects "weir_session_reconnects_total", METRIC_COUNTER
#define SESSION_small "weir_session_unloadable_writes_total", METRIC_COUNTER
#define SESSION_hot "weir_session_hot_writes_total", METRIC_COUNTER
#define SESSION_unloaded "weir_session_unloaded_writes_total", METRIC_COUNTER
#define SESSION_unload_full "weir_session_unload_refusals_total", METRIC_COUNTER
#define SESSION_pages "weir_session_recently_written_pages", METRIC_GAUGE
#define SESSION_split "weir_session_split_requests_total", METRIC_COUNTER
#define SESSION_unlocked "weir_session_unlocked_chains_total", METRIC_COUNTER

#define COUNTER(name, help) \
	{ SESSION_##name, help, offsetof(struct session_values, counters.name) },
#define WINDOW(name, help, field)                                                       \
	{                                                                               \
		name, METRIC_GAUGE, help, offsetof(struct session_values, window.field) \
	}

static const struct metric metrics[] = {
	WEIR_COUNTERS(COUNTER) WINDOW("weir_session_window_bytes",
				      "bytes that the NIC's window allows in flight", bytes_max),
	WINDOW("weir_session_window_max_bytes", "largest value that the window may take",
	       bytes_top),
	WINDOW("weir_session_window_work_requests",
	       "work requests that the NIC's window allows in flight", wrs_max),
	WINDOW("weir_session_in_flight_bytes",
	       "bytes in flight, of all sessions of the process on the NIC", bytes),
	WINDOW("weir_session_in_flight_work_requests",
	       "work requests in flight, of all sessions of the process on the NIC", wrs),
	{ NULL },
};

const struct metric_group session_metrics = {
	.title = "Sessions",
	.labels = "`pid` and `process`; `session`, a number for each session of the host; "
		  "`device`, the verbs device; `peer`, the donor's address",
	.metrics = metrics,
};

static const struct metric of_requests[] = {
	{ "weir_session_request_duration_seconds", METRIC_HISTOGRAM_NS,
	  "time from submission to completion, of one request in 64, chosen at random", 0 },
	{ NULL },
};

const struct metric_group request_metrics = {
	.title = "Requests of a session",
	.labels = "those of the session; `operation`, which is `read`, `write` or `atomic`",
	.metrics = of_requests,
};

static const struct metric of_failures[] = {
	{ "weir_session_failures_total", METRIC_COUNTER, "work requests that failed, by cause", 0 },
	{ NULL },
};

const struct metric_group failure_metrics = {
	.title = "Failures of a session",
	.labels = "those of the session; `cause`: `flushed` (its channel had failed or was closed "
		  "before), `no_answer` (of the donor's NIC, after all repetitions), `no_buffer` "
		  "(the donor had no receive posted), `refused` (by the donor: the region, the "
		  "rights or the operation), `local_memory` (refused by the own NIC), or `other`",
	.metrics = of_failures,
};

static void fill_row(const struct found_session *found, struct session_values *values,
		     struct metric_row *row)
{
	stats_view_counters(&found->view, &values->counters, &values->window);
	row->values = values;
	metric_label_add(row, "pid", "%d", found->pid);
	metric_label_add(row, "process", "%s", found->comm);
	metric_label_add(row, "session", "%llu", (unsigned long long)found->inode);
	metric_label_add(row, "device", "%s", found->view.device);
	metric_label_add(row, "peer", "%s", found->view.peer);
}

static int write_requests(struct exposition *x, const struct session_list *find,
			  const struct metric_row *sessions)
{
	size_t count = find->count * WEIR_STATS_SHM_KINDS;
	struct weir_histogram *latencies = calloc(count + 1, sizeof(*latencies));
	struct metric_row *rows = calloc(count + 1, sizeof(*rows));
	int rc = latencies && rows ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < count; i++) {
		enum weir_stats_shm_kind kind = i % WEIR_STATS_SHM_KINDS;

		rows[i] = sessions[i / WEIR_STATS_SHM_KINDS];
		rows[i].values = &latencies[i];
		metric_label_add(&rows[i], "operation", "%s", stats_view_kinds[kind]);
		stats_view_latency(&find->found[i / WEIR_STATS_SHM_KINDS].view, kind,
				   &latencies[i]);
	}
	if (!rc)
		exposition_group(x, &request_metrics, rows, count);
	free(rows);
	free(latencies);
	return rc;
}

static int write_failures(struct exposition *x, const struct session_list *find,
			  const struct metric_row *sessions)
{
	size_t count = find->count * WEIR_STATS_SHM_CAUSES;
	uint64_t(*failures)[WEIR_STATS_SHM_CAUSES] = calloc(find->count + 1, sizeof(*failures));
	struct metric_row *rows = calloc(count + 1, sizeof(*rows));
	int rc = failures && rows ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < count; i++) {
		size_t session = i / WEIR_STATS_SHM_CAUSES, cause = i % WEIR_STATS_SHM_CAUSES;

		if (!cause)
			stats_view_failures(&find->found[session].view, failures[session]);
		rows[i] = sessions[session];
		rows[i].values = &failures[session][cause];
		metric_label_add(&rows[i], "cause", "%s", stats_view_causes[cause]);
	}
	if (!rc)
		exposition_group(x, &failure_metrics, rows, count);
	free(rows);
	free(failures);
	return rc;
}

int session_metrics_collect(struct exposition *x, pid_t pid)
{
	struct session_list find = { 0 };
	int rc = pid ? session_list_add_process(&find, pid) : session_list_add_all(&find);
	struct session_values *values = calloc(find.count + 1, sizeof(*values));
	struct metric_row *rows = calloc(find.count + 1, sizeof(*rows));

	if (!values || !rows)
		rc = -ENOMEM;
	for (size_t i = 0; !rc && i < find.count; i++)
		fill_row(&find.found[i], &values[i], &rows[i]);
	if (!rc) {
		exposition_group(x, &session_metrics, rows, find.count);
		rc = write_requests(x, &find, rows);
		rc = rc ? rc : write_failures(x, &find, rows);
	}
	free(rows);
	free(values);
	session_list_free(&find);
	return rc;
}
