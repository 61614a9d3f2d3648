/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/options.h"
#include "apps/common/client.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/size.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 4096u
#define GAP_US_MAX 10000000u
#define SIZE_MAX_BYTES (64u << 20)
#define SPAN_MAX_BYTES (1ull << 50) /* of a region or a stride */
#define LENGTH_MAX_BYTES (1u << 30) /* of a fragment or a registration */

static const char usage[] =
	"Usage: weir perf [OPTION...] DONOR...\n"
	"       weir perf exchange [OPTION...]\n"
	"Measures reads and writes of donors' memory: rates, latencies, and their cost in work\n"
	"requests, doorbells, completions, events, context switches and CPU time. For messages\n"
	"between processes, see 'weir perf exchange --help'.\n";

const char *const perf_op_names[] = { "read", "write", "mix", NULL };
const char *const perf_pattern_names[] = { "sequential", "random", "strided", "zipf",
					   "clusters",	 "trace",  NULL };

/* The first name, "", stands for the default and is not accepted from users. */
const char *const perf_preset_names[] = { "", "rdmabox", "single", "accelio", NULL };
const char *const perf_batching_names[] = { "", "single", "doorbell", "merge", "hybrid", NULL };
const char *const perf_mr_names[] = { "", "auto", "pre", "dyn", "user", NULL };
const char *const perf_polling_names[] = { "",	     "adaptive", "busy", "event", "event-batch",
					   "hybrid", "scq",	 NULL };
const char *const perf_unload_names[] = { "",	       "off",	   "always", "hints",
					  "frequency", "measured", NULL };
#define MR_USER (WEIR_MR_DYN + 1)

static bool parse_beside(const char *text, void *options)
{
	struct perf_options *o = options;

	o->has_beside = true;
	return client_class_of(text, &o->beside);
}

/* Options of the load, then those of the sessions. */
static const struct cmdline_option perf_options[] = {
	{ "op", 'o', "OP", "read, write or mix (half of each); default write",
	  CMDLINE_CHOICE(struct perf_options, op, perf_op_names) },
	{ "threads", 't', "N", "submitting threads, default one per donor",
	  CMDLINE_UINT(struct perf_options, threads, 1, THREADS_MAX) },
	{ "depth", 'n', "N", "requests in flight per thread, default 1; trace: as recorded",
	  CMDLINE_UINT(struct perf_options, depth, 1, DEPTH_MAX) },
	{ "batch", 0, "N", "requests submitted per call, if due; default --depth",
	  CMDLINE_UINT(struct perf_options, batch, 1, DEPTH_MAX) },
	{ "size", 's', "BYTES", "request size, default 4K",
	  CMDLINE_SIZE(struct perf_options, size, 1, SIZE_MAX_BYTES) },
	{ "region", 'r', "BYTES", "size of the donor's memory to access, default 64M",
	  CMDLINE_SIZE(struct perf_options, region_bytes, 1, SPAN_MAX_BYTES) },
	{ "seconds", 'S', "S", "duration, default 5; 0: no limit",
	  CMDLINE_SECONDS(struct perf_options, seconds, 0, 86400) },
	{ "ops", 'N', "N", "end after N requests",
	  CMDLINE_U64(struct perf_options, ops, 1, UINT64_MAX) },
	{ "pattern", 'p', "PATTERN",
	  "sequential (the default): all threads share a single range;\n"
	  "random; strided; zipf; clusters; trace",
	  CMDLINE_CHOICE(struct perf_options, pattern, perf_pattern_names) },
	{ "stride", 0, "BYTES", "strided: distance between requests, default twice --size",
	  CMDLINE_SIZE(struct perf_options, stride, 1, SPAN_MAX_BYTES) },
	{ "cluster", 0, "N", "clusters: requests per burst, default --depth",
	  CMDLINE_UINT(struct perf_options, cluster, 1, DEPTH_MAX) },
	{ "gap", 0, "US", "clusters: microseconds between bursts, default 100",
	  CMDLINE_UINT(struct perf_options, gap_us, 0, GAP_US_MAX) },
	{ "trace", 0, "FILE", "trace: requests to replay, in 4K pages; -: standard input",
	  CMDLINE_TEXT(struct perf_options, trace_path) },
	{ "seed", 0, "N", "seed of the random generator, default 1",
	  CMDLINE_U64(struct perf_options, seed, 0, UINT64_MAX) },
	{ "preset", 'P', "NAME",
	  "rdmabox (the default), single or accelio; the next three\n"
	  "options override parts of the preset",
	  CMDLINE_CHOICE(struct perf_options, session.preset, perf_preset_names) },
	{ "batching", 'b', "HOW", "single, doorbell, merge or hybrid",
	  CMDLINE_CHOICE(struct perf_options, tuning.batching, perf_batching_names) },
	{ "mr", 'm', "HOW", "pre, dyn or auto; user: buffers registered once, at start",
	  CMDLINE_CHOICE(struct perf_options, tuning.mr, perf_mr_names) },
	{ "mr-dyn", 0, "BYTES", "auto: register from this length on; default: as measured",
	  CMDLINE_SIZE(struct perf_options, tuning.mr_dyn_bytes, 1, LENGTH_MAX_BYTES) },
	{ "polling", 'l', "HOW",
	  "busy, event, event-batch, hybrid or adaptive; scq: one thread\n"
	  "polls completion queues shared by all sessions",
	  CMDLINE_CHOICE(struct perf_options, session.polling, perf_polling_names) },
	CLIENT_WINDOW_OPTIONS('w'),
	{ "beside", 0, "CLASS[:WEIGHT]",
	  "meanwhile, another session of this class writes to the first\n"
	  "DONOR: 16 requests of 1M at a time, which are not reported",
	  CMDLINE_PARSE(parse_beside, CLIENT_CLASS_EXPECTED) },
	{ "unload", 0, "HOW",
	  "small writes by the donor's CPU: off (default), always, hints,\n"
	  "frequency or measured",
	  CMDLINE_CHOICE(struct perf_options, session.unload, perf_unload_names) },
	{ "hot-pages", 0, "N",
	  "pages in the cache of the donor's NIC, default 4096: writes to\n"
	  "the N hottest pages are not unloaded",
	  CMDLINE_UINT(struct perf_options, tuning.unload_hot_pages, 1, UINT32_MAX) },
	{ "channels", 'c', "N", "queue pairs, default 2",
	  CMDLINE_UINT(struct perf_options, session.channels, 1, 16) },
	{ "cqs", 0, "N", "completion queues, default one per channel; scq: one",
	  CMDLINE_UINT(struct perf_options, tuning.cqs, 1, 16) },
	{ "fragment", 0, "BYTES", "longest work request, default 1M",
	  CMDLINE_SIZE(struct perf_options, tuning.fragment_bytes, 4096, LENGTH_MAX_BYTES) },
	{ "verify", 0, NULL, "compare data read with data written",
	  CMDLINE_FLAG(struct perf_options, verify) },
	{ "plot", 0, "FILE", "draw the latencies, as SVG",
	  CMDLINE_TEXT(struct perf_options, plot_path) },
	CMDLINE_JSON(struct perf_options, json),
	CLIENT_KEY_OPTION(struct perf_options, key),
	CLIENT_ENCRYPT_OPTION,
	DEVICE_OPTION(struct perf_options, device),
	{ NULL },
};

static const struct cmdline perf_line = {
	.usage = usage,
	.options = perf_options,
	.arguments = "DONOR...",
	.arguments_min = 1,
	.arguments_max = INT_MAX,
};

static void settle_mr(struct perf_options *o)
{
	struct weir_session_tuning *t = &o->tuning;

	o->user_mr = (int)t->mr == MR_USER;
	if (o->user_mr)
		t->mr = WEIR_MR_DEFAULT;
	/* as much as --threads and --depth need */
	t->pool_bytes_max = t->mr == WEIR_MR_PRE ? SIZE_MAX : 0;
}

int perf_options_parse(int argc, char **argv, struct perf_options *o)
{
	int status;

	*o = (struct perf_options){
		.cmd = argv[0],
		.session.tuning = &o->tuning,
		.tuning.size = sizeof(o->tuning),
		.op = PERF_WRITE,
		.size = 4096,
		.seconds = -1,
		.gap_us = GAP_NOT_GIVEN,
		.seed = 1,
	};
	status = cmdline_parse(&perf_line, argc, argv, o);
	if (status != CMDLINE_PARSED)
		return status;
	settle_mr(o);
	o->window = client_window(&o->tuning);
	o->donors = argv + optind;
	o->nr_donors = (unsigned int)(argc - optind);
	return perf_options_check(o);
}
