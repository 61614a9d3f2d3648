/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks that weir perf's options are consistent. */
#include "apps/perf/options.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/perf/trace.h"
#include "apps/common/size.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BUFFERS_MAX_BYTES (4ull << 30)

int perf_options_check_buffers(const struct perf_options *o, uint64_t slot_bytes)
{
	uint64_t bytes = slot_bytes * o->threads * o->depth;

	if (bytes <= BUFFERS_MAX_BYTES)
		return 0;
	return usage_error(o->cmd,
			   "%u threads of depth %u with %s each need %s of buffers: at most %s",
			   o->threads, o->depth, size_format(slot_bytes).text,
			   size_format(bytes).text, size_format(BUFFERS_MAX_BYTES).text);
}

/* Checks options of traces. A trace determines requests and memory by itself. */
static int check_trace(struct perf_options *o)
{
	bool has_trace = o->pattern == PATTERN_TRACE;

	if (has_trace != !!o->trace_path)
		return usage_error(o->cmd, "--pattern trace and --trace FILE require each other");
	if (!has_trace)
		return 0;
	if (o->region_bytes || o->ops || o->threads || o->batch)
		return usage_error(o->cmd, "--%s: the trace determines this",
				   o->ops     ? "ops" :
				   o->threads ? "threads" :
				   o->batch   ? "batch" :
						"region");
	o->size = TRACE_PAGE;
	return 0;
}

static void fill_in(struct perf_options *o)
{
	if (o->seconds < 0)
		o->seconds = o->pattern == PATTERN_TRACE ? 0 : 5;
	if (!o->region_bytes)
		o->region_bytes = 64u << 20;
	if (o->gap_us == GAP_NOT_GIVEN)
		o->gap_us = 100;
}

/* Checks options that belong to a single pattern. */
static int check_pattern(const struct perf_options *o)
{
	const struct {
		bool given;
		enum pattern pattern;
		const char *option;
	} parts[] = {
		{ o->stride, PATTERN_STRIDED, "stride" },
		{ o->cluster, PATTERN_CLUSTERS, "cluster" },
		{ o->gap_us != GAP_NOT_GIVEN, PATTERN_CLUSTERS, "gap" },
	};

	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].given && o->pattern != parts[i].pattern)
			return usage_error(o->cmd, "--%s requires --pattern %s", parts[i].option,
					   perf_pattern_names[parts[i].pattern]);
	}
	return 0;
}

static int check_donors(const struct perf_options *o)
{
	if (o->nr_donors > 1 && (o->verify || o->pattern == PATTERN_TRACE))
		return usage_error(o->cmd, "%s requires a single DONOR",
				   o->verify ? "--verify" : "--pattern trace");
	if (o->threads && o->threads < o->nr_donors)
		return usage_error(o->cmd, "--threads %u: at least one per DONOR, %u",
				   o->threads, o->nr_donors);
	if (o->nr_donors > THREADS_MAX)
		return usage_error(o->cmd, "%u DONORs: at most %u", o->nr_donors, THREADS_MAX);
	return 0;
}

/* Checks the plot's file now: it is written only at the end. */
static int check_plot(const struct perf_options *o)
{
	int fd;

	if (!o->plot_path)
		return 0;
	fd = open(o->plot_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return failure(o->cmd, "--plot %s: %s", o->plot_path, strerror(errno));
	close(fd);
	return 0;
}

static int check_walk(struct perf_options *o)
{
	o->threads = o->threads ? o->threads : o->nr_donors;
	o->depth = o->depth ? o->depth : 1;
	if (!o->batch)
		o->batch = o->depth;
	if (o->batch > o->depth)
		return usage_error(o->cmd, "--batch %u: at most --depth, %u", o->batch, o->depth);
	if (!o->stride)
		o->stride = 2 * o->size;
	if (o->stride % o->size)
		return usage_error(o->cmd,
				   "--stride %" PRIu64 ": not a multiple of --size %" PRIu64,
				   o->stride, o->size);
	o->stride /= o->size;
	if (!o->cluster)
		o->cluster = o->depth;
	if (o->cluster > o->depth)
		return usage_error(o->cmd, "--cluster %u: at most --depth, %u", o->cluster,
				   o->depth);
	if (o->region_bytes / o->size < (uint64_t)o->threads)
		return usage_error(o->cmd, "--region %s: smaller than --size times --threads",
				   size_format(o->region_bytes).text);
	return perf_options_check_buffers(o, o->size);
}

/* Checks --mr-dyn, which has no effect in other modes. */
static int check_memory(const struct perf_options *o)
{
	enum weir_mr mr = o->tuning.mr;

	if (!mr && o->session.preset == WEIR_PRESET_ACCELIO)
		mr = WEIR_MR_DYN;
	if (o->tuning.mr_dyn_bytes && (o->user_mr || (mr && mr != WEIR_MR_AUTO)))
		return usage_error(o->cmd, "--mr-dyn requires --mr auto");
	return 0;
}

int perf_options_check(struct perf_options *o)
{
	int status = check_donors(o);

	if (!status)
		status = check_memory(o);
	if (!status)
		status = check_pattern(o);
	if (!status)
		status = check_trace(o);
	fill_in(o);
	if (!status && o->pattern != PATTERN_TRACE)
		status = check_walk(o);
	if (!status)
		status = check_plot(o);
	return status ? status : CMDLINE_PARSED;
}
