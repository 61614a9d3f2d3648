/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/options.h"
#include "apps/common/cmd.h"
#include "apps/common/client.h"
#include "apps/common/device.h"
#include "apps/perf/trace.h"
#include "apps/common/size.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4096u
#define CLUSTER_MAX DEPTH_MAX
#define GAP_US_MAX 10000000u
#define SIZE_MAX_BYTES (64u << 20)
#define WINDOW_MIN_BYTES 65536 /* the library's */

static const char help[] =
	"Usage: weir perf [OPTION...] DONOR...\n"
	"       weir perf exchange [OPTION...]\n"
	"Measures reads and writes of donors' memory: rates, latencies, and what they cost in work\n"
	"requests, doorbells, completions, events, context switches and CPU time. 'weir perf exchange'\n"
	"measures messages between processes: see its --help.\n\n"
	"  -o, --op OP            read, write or mix (half of each); default write\n"
	"  -t, --threads N        that submit, default one a donor; they take turns over the donors\n"
	"  -n, --depth N          requests in flight of each thread, default 1; trace: as recorded\n"
	"      --batch N          submit so many of them with one call, if they are due; default --depth\n"
	"  -s, --size BYTES       of a request, default 4K\n"
	"  -r, --region BYTES     of the donor's memory that are walked, default 64M\n"
	"  -S, --seconds S        how long, default 5; 0: no limit\n"
	"  -N, --ops N            end after so many requests\n"
	"  -p, --pattern PATTERN  sequential: the threads together walk one range (the default);\n"
	"                         random; strided; zipf; clusters; trace\n"
	"      --stride BYTES     strided: from one request to the next, default twice --size\n"
	"      --cluster N        clusters: requests of a burst, default --depth\n"
	"      --gap US           clusters: microseconds between bursts, default 100\n"
	"      --trace FILE       trace: requests to repeat, 4K a page; -: standard input\n"
	"      --seed N           of what is random, default 1\n"
	"  -P, --preset NAME      rdmabox (the default), single or accelio; the next three\n"
	"                         override its parts\n"
	"  -b, --batching HOW     single, doorbell, merge or hybrid\n"
	"  -m, --mr HOW           pre, dyn or auto; user: registered once, beforehand\n"
	"      --mr-dyn BYTES     auto: from this length on it is registered; default: as measured\n"
	"  -l, --polling HOW      busy, event, event-batch, hybrid or adaptive; scq: one thread polls\n"
	"                         completion queues that all sessions share\n"
	"  -w, --window HOW       off, BYTES in flight, delay or knee; default 8M\n"
	"      --unload HOW       small writes by the donor's CPU: off (the default), always, hints,\n"
	"                         frequency or measured\n"
	"      --hot-pages N      pages that the donor's NIC has room for, default 4096: writes to\n"
	"                         those written most are not unloaded\n"
	"  -c, --channels N       queue pairs, default 2\n"
	"      --cqs N            completion queues that they share, default one each; scq: one\n"
	"      --fragment BYTES   a work request is at most this long, default 1M\n"
	"      --verify           compare what was read with what was written\n"
	"      --plot FILE        draw the latencies, as SVG\n"
	"  -j, --json             for programs\n" CLIENT_HELP DEVICE_HELP "  -h, --help\n";

const char *const perf_op_names[] = { "read", "write", "mix", NULL };
const char *const perf_pattern_names[] = { "sequential", "random", "strided", "zipf",
					   "clusters",	 "trace",  NULL };

/* The first of these is never written by users: it stands for the default. */
const char *const perf_preset_names[] = { "", "rdmabox", "single", "accelio", NULL };
const char *const perf_batching_names[] = { "", "single", "doorbell", "merge", "hybrid", NULL };
const char *const perf_mr_names[] = { "", "auto", "pre", "dyn", "user", NULL };
const char *const perf_polling_names[] = { "",	     "adaptive", "busy", "event", "event-batch",
					   "hybrid", "scq",	 NULL };
const char *const perf_unload_names[] = { "",	       "off",	   "always", "hints",
					  "frequency", "measured", NULL };
#define MR_USER (WEIR_MR_DYN + 1)

/* What getopt_long() gives for options without a letter. */
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

/* "a, b or c" */
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
	return usage_error(o->cmd, "--%s %s: %s", option_name(opt), optarg, text);
}

static int number(const struct perf_options *o, int opt, uint64_t min, uint64_t max,
		  uint64_t *value)
{
	uint64_t parsed;
	char *end;

	errno = 0;
	parsed = strtoull(optarg, &end, 10);
	if (errno || *optarg < '0' || *optarg > '9' || *end || parsed < min || parsed > max)
		return usage_error(o->cmd, "--%s %s: %" PRIu64 " to %" PRIu64, option_name(opt),
				   optarg, min, max);
	*value = parsed;
	return 0;
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
		return usage_error(o->cmd, "--%s %s: %s to %s", option_name(opt), optarg,
				   size_format(min).text, size_format(max).text);
	*value = parsed;
	return 0;
}

static int parse_seconds(struct perf_options *o)
{
	char *end;

	o->seconds = strtod(optarg, &end);
	o->has_seconds = true;
	if (end == optarg || *end || !(o->seconds >= 0 && o->seconds <= 86400))
		return usage_error(o->cmd, "--seconds %s: 0 to 86400", optarg);
	return 0;
}

static int parse_window(struct perf_options *o)
{
	struct weir_session_options *s = &o->session;

	o->window = optarg;
	s->admission = WEIR_ADMISSION_STATIC;
	s->window_bytes = 0;
	if (!strcmp(optarg, "delay"))
		s->admission = WEIR_ADMISSION_DELAY;
	else if (!strcmp(optarg, "knee"))
		s->admission = WEIR_ADMISSION_KNEE;
	else if (!strcmp(optarg, "off"))
		s->window_bytes = UINT64_MAX;
	else if (size_parse(optarg, &s->window_bytes) || s->window_bytes < WINDOW_MIN_BYTES)
		return usage_error(o->cmd, "--window %s: off, delay, knee or at least 64K", optarg);
	return 0;
}

/* What becomes a part of the session's options. */
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
		o->session.batching = choice;
		return status;
	case 'm':
		status = choose(o, opt, perf_mr_names, &choice);
		o->user_mr = choice == MR_USER;
		o->session.mr = o->user_mr ? WEIR_MR_DEFAULT : choice;
		/* As much as --threads and --depth make of it. */
		o->session.pool_bytes_max = choice == WEIR_MR_PRE ? SIZE_MAX : 0;
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
		return count(o, opt, 16, &o->session.cqs);
	case OPT_UNLOAD:
		status = choose(o, opt, perf_unload_names, &choice);
		o->session.unload = choice;
		return status;
	case OPT_HOT_PAGES:
		return count(o, opt, UINT32_MAX, &o->session.unload_hot_pages);
	case OPT_MR_DYN:
		status = bytes(o, opt, 1, 1u << 30, &length);
		o->session.mr_dyn_bytes = length;
		return status;
	default: /* OPT_FRAGMENT */
		status = bytes(o, opt, 4096, 1u << 30, &length);
		o->session.fragment_bytes = length;
		return status;
	}
}

/* What says which requests there are. */
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
	case OPT_STRIDE: /* in bytes until it is known how many a block has */
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
