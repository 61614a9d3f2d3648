/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The measurement: starts workers and collects results. */
#ifndef WEIR_APPS_PERF_RUN_H
#define WEIR_APPS_PERF_RUN_H

#include <weir/session.h>
#include "core/base/histogram.h"
#include "apps/perf/options.h"
#include "apps/perf/target.h"
#include "apps/perf/trace.h"

/**
 * struct perf_result - results of a measurement
 * @ops: completed requests
 * @bytes: bytes moved
 * @seconds: from the first submission to the last completion
 * @beside_bytes: written by --beside meanwhile
 * @cpu_seconds, @context_switches: of the whole process during the measurement
 * @before, @after: summed counters of all sessions
 * @latency: of all requests
 */
struct perf_result {
	uint64_t ops, bytes, beside_bytes;
	double seconds, cpu_seconds;
	uint64_t context_switches;
	struct weir_session_info before, after;
	struct weir_histogram latency;
};

struct perf_run;

/**
 * run_create() - prepare a measurement
 * @trace: NULL without a trace; kept, like @options and @targets
 * @run: receives the run; the caller owes run_destroy() in any case
 *
 * Return: 0, or an exit status after a message.
 */
int run_create(const struct perf_options *options, const struct page_trace *trace,
	       struct perf_target *targets, struct perf_run **run);

/**
 * run_measure() - measure, once
 * @result: receives the results, even if requests failed
 *
 * Ends early on a stop request. All submitted requests are complete on return.
 *
 * Return: 0, or an exit status after a message.
 */
int run_measure(struct perf_run *run, struct perf_result *result);

/*
 * Ends the bulk beside, and its session. NULL is allowed. Return: 0, or an exit status after a
 * message.
 */
int run_end(struct perf_run *run);

/* The sessions must be closed, so that no completion is outstanding. NULL is allowed. */
void run_destroy(struct perf_run *run);

#endif
