/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir perf: speed and cost of donors' memory. Regions are created for the measurement and returned
 * after it. The counts are the sessions' own counters.
 */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/perf/options.h"
#include "apps/perf/perf.h"
#include "apps/perf/report.h"
#include "apps/perf/run.h"
#include "apps/perf/target.h"
#include "apps/perf/trace.h"
#include "apps/common/stop.h"

#include <stdlib.h>
#include <string.h>

#define TRACE_DEPTH_MAX 4096u

static int report(const struct perf_options *o, const struct perf_result *result)
{
	if (o->json)
		report_json(o, result);
	else
		report_text(o, result);
	return o->plot_path ? plot_write(o, result) : 0;
}

static int measure(const struct perf_options *o, const struct page_trace *trace,
		   struct perf_target *targets, struct perf_run **run)
{
	struct perf_result *result = malloc(sizeof(*result));
	int status;

	if (!result)
		return failure(o->cmd, "out of memory");
	status = run_create(o, trace, targets, run);
	if (!status) {
		stop_on_signals();
		status = run_measure(*run, result);
	}
	if (run_end(*run) && !status)
		status = EXIT_FAILED;
	if (!status)
		status = report(o, result);
	free(result);
	return status;
}

static int visit(struct perf_options *o, const struct page_trace *trace)
{
	struct perf_target *targets;
	struct perf_run *run = NULL;
	int status = targets_open(o, &targets);

	if (!status)
		status = measure(o, trace, targets, &run);
	targets_close(o, targets);
	run_destroy(run);
	free(targets);
	return status;
}

/* Takes number of threads, depth and region size from the trace. */
static int follow_trace(struct perf_options *o, struct page_trace *trace)
{
	int status = trace_read(o->cmd, o->trace_path, trace);

	if (status)
		return status;
	o->threads = trace->threads;
	o->region_bytes = trace->pages * TRACE_PAGE;
	if (!o->depth)
		o->depth = trace->depth < TRACE_DEPTH_MAX ? trace->depth : TRACE_DEPTH_MAX;
	return perf_options_check_buffers(o, trace->count_max * (uint64_t)TRACE_PAGE);
}

static int perf_donors(int argc, char **argv)
{
	struct page_trace trace = { 0 };
	struct perf_options o;
	int status = perf_options_parse(argc, argv, &o);

	if (status != CMDLINE_PARSED)
		return status;
	status = device_choose(o.cmd, o.device, &o.session.device);
	if (!status && o.pattern == PATTERN_TRACE)
		status = follow_trace(&o, &trace);
	if (!status)
		status = visit(&o, o.pattern == PATTERN_TRACE ? &trace : NULL);
	trace_free(&trace);
	return status;
}

int cmd_perf(int argc, char **argv)
{
	static char exchange[] = "weir perf exchange", volume[] = "weir perf volume";

	if (argc > 1 && !strcmp(argv[1], "exchange")) {
		argv[1] = exchange;
		return perf_exchange(argc - 1, argv + 1);
	}
	if (argc > 1 && !strcmp(argv[1], "volume")) {
		argv[1] = volume;
		return perf_volume(argc - 1, argv + 1);
	}
	return perf_donors(argc, argv);
}
