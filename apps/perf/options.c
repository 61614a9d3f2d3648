/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/options.h"
#include "apps/common/cmd.h"
#include "apps/common/client.h"
#include "apps/common/device.h"
#include "apps/common/number.h"
#include "apps/perf/trace.h"
#include "apps/common/size.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 4096u
#define CLUSTER_MAX DEPTH_MAX
#define GAP_US_MAX 10000000u
#define SIZE_MAX_BYTES (64u << 20)
#define WINDOW_MIN_BYTES 65536 /* the library's minimum */

static const char help[] =
	"Usage: weir perf [OPTION...] DONOR...\n"
	"       weir perf exchange [OPTION...]\n"
	"Measures reads and writes of donors' memory: rates, latencies, and their cost in work\n"
	"requests, doorbells, completions, events, context switches and CPU time. For messages\n"
	"between processes, see 'weir perf exchange --help'.\n\n"
	"  -o, --op OP            read, write or mix (half of each); default write\n"
	"  -t, --threads N        submitting threads, default one per donor\n"
	"  -n, --depth N          requests in flight per thread, default 1; trace: as recorded\n"
	"      --batch N          requests submitted per call, if due; default --depth\n"
	"  -s, --size BYTES       request size, default 4K\n"
	"  -r, --region BYTES     size of the donor's memory to access, default 64M\n"
	"  -S, --seconds S        duration, default 5; 0: no limit\n"
	"  -N, --ops N            end after N requests\n"
	"  -p, --pattern PATTERN  sequential (the default): all threads share a single range;\n"
	"                         random; strided; zipf; clusters; trace\n"
	"      --stride BYTES     strided: distance between requests, default twice --size\n"
	"      --cluster N        clusters: requests per burst, default --depth\n"
	"      --gap US           clusters: microseconds between bursts, default 100\n"
	"      --trace FILE       trace: requests to replay, in 4K pages; -: standard input\n"
	"      --seed N           seed of the random generator, default 1\n"
	"  -P, --preset NAME      rdmabox (the default), single or accelio; the next three\n"
	"                         options override parts of the preset\n"
	"  -b, --batching HOW     single, doorbell, merge or hybrid\n"
	"  -m, --mr HOW           pre, dyn or auto; user: buffers registered once, at start\n"
	"      --mr-dyn BYTES     auto: register from this length on; default: as measured\n"
	"  -l, --polling HOW      busy, event, event-batch, hybrid or adaptive; scq: one thread\n"
	"                         polls completion queues shared by all sessions\n"
	"  -w, --window HOW       off, BYTES in flight, delay or knee; default 8M\n"
	"      --unload HOW       small writes by the donor's CPU: off (default), always, hints,\n"
	"                         frequency or measured\n"
	"      --hot-pages N      pages in the cache of the donor's NIC, default 4096: writes to\n"
	"                         the N hottest pages are not unloaded\n"
	"  -c, --channels N       queue pairs, default 2\n"
	"      --cqs N            completion queues, default one per channel; scq: one\n"
	"      --fragment BYTES   longest work request, default 1M\n"
	"      --verify           compare data read with data written\n"
	"      --plot FILE        draw the latencies, as SVG\n"
	"  -j, --json             for programs\n" CLIENT_HELP DEVICE_HELP "  -h, --help\n";

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

/* getopt_long()'s values for options without a letter. */
enum {
	OPT_BATCH = 256,
	OPT_STRIDE,
	OPT_CLUSTER,
	OPT_GAP,
	OPT_TRACE,
	OPT_SEED,
	OPT_CQS,
	OPT_FRAGMENT,
	OPT_MR_DYN,
	OPT_UNLOAD,
	OPT_HOT_PAGES,
	OPT_VERIFY,
	OPT_PLOT
};

static const struct option long_options[] = {
	{ "op", required_argument, NULL, 'o' },
	{ "threads", required_argument, NULL, 't' },
	{ "depth", required_argument, NULL, 'n' },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "size", required_argument, NULL, 's' },
	{ "region", required_argument, NULL, 'r' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "ops", required_argument, NULL, 'N' },
	{ "pattern", required_argument, NULL, 'p' },
	{ "stride", required_argument, NULL, OPT_STRIDE },
	{ "cluster", required_argument, NULL, OPT_CLUSTER },
	{ "gap", required_argument, NULL, OPT_GAP },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "preset", required_argument, NULL, 'P' },
	{ "batching", required_argument, NULL, 'b' },
	{ "mr", required_argument, NULL, 'm' },
	{ "mr-dyn", required_argument, NULL, OPT_MR_DYN },
	{ "polling", required_argument, NULL, 'l' },
	{ "window", required_argument, NULL, 'w' },
	{ "unload", required_argument, NULL, OPT_UNLOAD },
	{ "hot-pages", required_argument, NULL, OPT_HOT_PAGES },
	{ "channels", required_argument, NULL, 'c' },
	{ "cqs", required_argument, NULL, OPT_CQS },
	{ "fragment", required_argument, NULL, OPT_FRAGMENT },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "json", no_argument, NULL, 'j' },
	{ "key", required_argument, NULL, 'k' },
	{ "device", required_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL },
};

static const char *option_name(int opt)
{
	const struct option *o = long_options;

	while (o->val != opt)
		o++;
	return o->name;
}

/* Formats as "a, b or c". */
static void list_names(const char *const *names, char *text, size_t room)
{
	size_t used = 0;

	names += !**names;
	for (; *names && used < room; names++)
		used += (size_t)snprintf(text + used, room - used, "%s%s", *names,
					 !names[1] ? "" :
					 names[2]  ? ", " :
						     " or ");
}

static int choose(const struct perf_options *o, int opt, const char *const *names,
		  unsigned int *choice)
{
	char text[128];

	for (unsigned int i = !**names; names[i]; i++) {
		if (!strcmp(optarg, names[i])) {
			*choice = i;
			return 0;
		}
	}
	list_names(names, text, sizeof(text));
	return usage_error(o->cmd, "--%s %s: expected %s", option_name(opt), optarg, text);
}

static int number(const struct perf_options *o, int opt, uint64_t min, uint64_t max,
		  uint64_t *value)
{
	if (number_parse(optarg, min, max, value))
		return 0;
	return usage_error(o->cmd, "--%s %s: expected %" PRIu64 " to %" PRIu64, option_name(opt),
			   optarg, min, max);
}

static int count(const struct perf_options *o, int opt, unsigned int max, unsigned int *value)
{
	uint64_t parsed;
	int status = number(o, opt, opt != OPT_GAP, max, &parsed);

	if (!status)
		*value = (unsigned int)parsed;
	return status;
}

static int bytes(const struct perf_options *o, int opt, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t parsed;

	if (size_parse(optarg, &parsed) || parsed < min || parsed > max)
		return usage_error(o->cmd, "--%s %s: expected %s to %s", option_name(opt), optarg,
				   size_format(min).text, size_format(max).text);
	*value = parsed;
	return 0;
}

static int parse_seconds(struct perf_options *o)
{
	o->has_seconds = true;
	if (!number_parse_double(optarg, 0, 86400, &o->seconds))
		return usage_error(o->cmd, "--seconds %s: expected 0 to 86400", optarg);
	return 0;
}

static int parse_window(struct perf_options *o)
{
	struct weir_session_tuning *t = &o->tuning;

	o->window = optarg;
	t->admission = WEIR_ADMISSION_STATIC;
	t->window_bytes = 0;
	if (!strcmp(optarg, "delay"))
		t->admission = WEIR_ADMISSION_DELAY;
	else if (!strcmp(optarg, "knee"))
		t->admission = WEIR_ADMISSION_KNEE;
	else if (!strcmp(optarg, "off"))
		t->window_bytes = UINT64_MAX;
	else if (size_parse(optarg, &t->window_bytes) || t->window_bytes < WINDOW_MIN_BYTES)
		return usage_error(o->cmd, "--window %s: expected off, delay, knee or at least 64K",
				   optarg);
	return 0;
}

/* Parses options of the session. */
static int parse_session(struct perf_options *o, int opt)
{
	unsigned int choice = 0;
	uint64_t length = 0;
	int status;

	switch (opt) {
	case 'P':
		status = choose(o, opt, perf_preset_names, &choice);
		o->session.preset = choice;
		return status;
	case 'b':
		status = choose(o, opt, perf_batching_names, &choice);
		o->tuning.batching = choice;
		return status;
	case 'm':
		status = choose(o, opt, perf_mr_names, &choice);
		o->user_mr = choice == MR_USER;
		o->tuning.mr = o->user_mr ? WEIR_MR_DEFAULT : choice;
		/* as much as --threads and --depth need */
		o->tuning.pool_bytes_max = choice == WEIR_MR_PRE ? SIZE_MAX : 0;
		return status;
	case 'l':
		status = choose(o, opt, perf_polling_names, &choice);
		o->session.polling = choice;
		return status;
	case 'w':
		return parse_window(o);
	case 'c':
		return count(o, opt, 16, &o->session.channels);
	case OPT_CQS:
		return count(o, opt, 16, &o->tuning.cqs);
	case OPT_UNLOAD:
		status = choose(o, opt, perf_unload_names, &choice);
		o->session.unload = choice;
		return status;
	case OPT_HOT_PAGES:
		return count(o, opt, UINT32_MAX, &o->tuning.unload_hot_pages);
	case OPT_MR_DYN:
		status = bytes(o, opt, 1, 1u << 30, &length);
		o->tuning.mr_dyn_bytes = length;
		return status;
	default: /* OPT_FRAGMENT */
		status = bytes(o, opt, 4096, 1u << 30, &length);
		o->tuning.fragment_bytes = length;
		return status;
	}
}

/* Parses options of the load. */
static int parse_load(struct perf_options *o, int opt)
{
	unsigned int choice = 0;
	int status;

	switch (opt) {
	case 'o':
		status = choose(o, opt, perf_op_names, &choice);
		o->op = choice;
		return status;
	case 'p':
		status = choose(o, opt, perf_pattern_names, &choice);
		o->pattern = choice;
		return status;
	case 't':
		return count(o, opt, THREADS_MAX, &o->threads);
	case 'n':
		return count(o, opt, DEPTH_MAX, &o->depth);
	case OPT_BATCH:
		return count(o, opt, DEPTH_MAX, &o->batch);
	case 's':
		return bytes(o, opt, 1, SIZE_MAX_BYTES, &o->size);
	case 'r':
		o->has_region = true;
		return bytes(o, opt, 1, 1ull << 50, &o->region_bytes);
	case OPT_STRIDE: /* in bytes until the block size is known */
		return bytes(o, opt, 1, 1ull << 50, &o->stride);
	case OPT_CLUSTER:
		return count(o, opt, CLUSTER_MAX, &o->cluster);
	case OPT_GAP:
		o->has_gap = true;
		return count(o, opt, GAP_US_MAX, &o->gap_us);
	case 'N':
		return number(o, opt, 1, UINT64_MAX, &o->ops);
	default: /* OPT_SEED */
		return number(o, opt, 0, UINT64_MAX, &o->seed);
	}
}

static int parse_option(struct perf_options *o, int opt)
{
	switch (opt) {
	case 'P':
	case 'b':
	case 'm':
	case 'l':
	case 'w':
	case 'c':
	case OPT_CQS:
	case OPT_UNLOAD:
	case OPT_HOT_PAGES:
	case OPT_FRAGMENT:
	case OPT_MR_DYN:
		return parse_session(o, opt);
	case 'S':
		return parse_seconds(o);
	case OPT_TRACE:
		o->trace_path = optarg;
		return 0;
	case OPT_PLOT:
		o->plot_path = optarg;
		return 0;
	case OPT_VERIFY:
		o->verify = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'k':
		o->key = optarg;
		return 0;
	case 'd':
		o->device = optarg;
		return 0;
	case '?':
		return usage_error(o->cmd, NULL);
	default:
		return parse_load(o, opt);
	}
}

int perf_options_parse(int argc, char **argv, struct perf_options *o, bool *go_on)
{
	int opt, status;

	*o = (struct perf_options){
		.cmd = argv[0],
		.session.tuning = &o->tuning,
		.tuning.size = sizeof(o->tuning),
		.op = PERF_WRITE,
		.size = 4096,
		.region_bytes = 64u << 20,
		.seconds = 5,
		.gap_us = 100,
		.seed = 1,
		.window = "8M",
	};
	*go_on = true;
	while ((opt = getopt_long(argc, argv, "o:t:n:s:r:S:N:p:P:b:m:l:w:c:jk:d:h", long_options,
				  NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			*go_on = false;
			return 0;
		}
		status = parse_option(o, opt);
		if (status)
			return status;
	}
	if (argc == optind)
		return usage_error(argv[0], "expected a DONOR");
	o->donors = argv + optind;
	o->nr_donors = (unsigned int)(argc - optind);
	return perf_options_check(o);
}
