/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The measurement itself: workers that submit, and what came of it. */
#ifndef WEIR_APPS_PERF_RUN_H
#define WEIR_APPS_PERF_RUN_H

#include <weir/session.h>
#include "apps/perf/histogram.h"
#include "apps/perf/options.h"
#include "apps/perf/target.h"
#include "apps/perf/trace.h"

/**
 * struct perf_result - what was measured
 * @ops, @bytes: requests that were done, and what they moved
 * @seconds: from the first submission to the last completion
 * @cpu_seconds, @context_switches: of the whole process meanwhile
 * @before, @after: the counters of all sessions
 */
struct perf_result {
	uint64_t ops, bytes;
	double seconds, cpu_seconds;
	uint64_t context_switches;
	struct weir_session_info before, after;
	struct histogram latency;
};

struct perf_run;

/**
 * run_create() - make ready
 * @trace: NULL without one; *kept*, as @options and @targets are
 * @run: receives it
 *
 * Return: 0, or an exit status; it has explained itself then.
 */
int run_create(const struct perf_options *options, const struct page_trace *trace,
	       struct perf_target *targets, struct perf_run **run);

/**
 * run_measure() - measure, once
 * @result: receives what was measured, also when requests failed
 *
 * Ends early when asked to stop. Everything submitted has been waited for when it returns.
 * Return: 0, or an exit status; it has explained itself then.
 */
int run_measure(struct perf_run *run, struct perf_result *result);

/* The sessions are closed: no completion is still on its way out. NULL is fine. */
void run_destroy(struct perf_run *run);

#endif
