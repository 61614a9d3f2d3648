/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir perf volume: rates and latencies of a pool's volume. Each request that ends is replaced by
 * its callback. The callbacks of a volume run one at a time.
 */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/perf/pattern.h"
#include "apps/perf/perf.h"
#include "core/base/histogram.h"
#include "lib/base/clock.h"

#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/volume.h>

#define SIZE_MAX_BYTES (64u << 20)
#define DEPTH_MAX 1024u

enum volume_op { VOLUME_READ, VOLUME_WRITE, VOLUME_MIX };

static const char *const op_names[] = { "read", "write", "mix", NULL };
static const char *const pattern_names[] = { "sequential", "random", NULL };

struct volume_perf_options {
	const char *key, *device;
	enum volume_op op;
	int pattern;
	uint64_t size, seed;
	unsigned int depth;
	double seconds;
	bool json;
};

static const struct cmdline_option volume_options[] = {
	{ "op", 'o', "read|write|mix", "mix alternates at random; default write",
	  CMDLINE_CHOICE(struct volume_perf_options, op, op_names) },
	{ "size", 's', "BYTES", "of a request; default 4K",
	  CMDLINE_SIZE(struct volume_perf_options, size, 1, SIZE_MAX_BYTES) },
	{ "depth", 'n', "N", "requests in flight; default 1",
	  CMDLINE_UINT(struct volume_perf_options, depth, 1, DEPTH_MAX) },
	{ "pattern", 'p', "PATTERN", "sequential (the default) or random",
	  CMDLINE_CHOICE(struct volume_perf_options, pattern, pattern_names) },
	{ "seconds", 'S', "S", "duration; default 5",
	  CMDLINE_SECONDS(struct volume_perf_options, seconds, DBL_MIN, 86400),
	  .expected = "more than 0, to 86400" },
	{ "seed", 0, "N", "of the random order; default 1",
	  CMDLINE_U64(struct volume_perf_options, seed, 0, UINT64_MAX) },
	CLIENT_WINDOW_OPTIONS('w'),
	CMDLINE_JSON(struct volume_perf_options, json),
	CLIENT_KEY_OPTION(struct volume_perf_options, key),
	DEVICE_OPTION(struct volume_perf_options, device),
	{ NULL },
};

static const struct cmdline volume_line = {
	.usage = "Usage: weir perf volume [OPTION...] POOL/VOLUME\n"
		 "Reads and writes a pool's volume. Shows rate, latency, and the longest time in\n"
		 "which no request ended. A write overwrites what the volume holds.\n",
	.options = volume_options,
	.arguments = "POOL/VOLUME",
	.arguments_min = 1,
	.arguments_max = 1,
};

struct volume_slot {
	struct volume_run *run;
	char *buf;
	uint64_t begin_ns;
};

/**
 * struct volume_run - a measurement
 * @lock: guards @walk, @busy and @status
 * @walk: where the next request goes
 * @busy: requests in flight; @idle: the last has ended
 * @status: of a request that failed: none follows in its place
 * @end_ns: no request begins afterwards
 * @ops, @gap_ns, @last_ns, @latency: of callbacks
 */
struct volume_run {
	const char *cmd;
	struct volume_perf_options o;
	struct weir_volume *volume;
	struct weir_volume_info info;
	struct walk_plan plan;
	struct perf_walk walk;
	unsigned int busy;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	uint64_t begin_ns, end_ns;
	uint64_t ops, gap_ns, last_ns;
	struct weir_histogram latency;
	int status;
	struct volume_slot slots[DEPTH_MAX];
};

static void begin_request(struct volume_slot *slot);

/* No request follows. */
static void request_ended(struct volume_run *run, int status)
{
	pthread_mutex_lock(&run->lock);
	if (!run->status)
		run->status = status;
	if (!--run->busy)
		pthread_cond_signal(&run->idle);
	pthread_mutex_unlock(&run->lock);
}

static void request_done(void *arg, int status)
{
	struct volume_slot *slot = arg;
	struct volume_run *run = slot->run;
	uint64_t now_ns = weir_now_ns();

	weir_histogram_add(&run->latency, now_ns - slot->begin_ns);
	if (now_ns > run->last_ns + run->gap_ns)
		run->gap_ns = now_ns - run->last_ns;
	run->last_ns = now_ns;
	run->ops += !status;
	if (!status && now_ns < run->end_ns && !stop_requested())
		begin_request(slot);
	else
		request_ended(run, status);
}

/* Return: the next request's place. @is_read: receives whether it reads. */
static uint64_t next_place(struct volume_run *run, bool *is_read)
{
	uint64_t offset;

	pthread_mutex_lock(&run->lock);
	offset = walk_next(&run->walk) * run->o.size;
	*is_read = run->o.op == VOLUME_READ ||
		   (run->o.op == VOLUME_MIX && walk_random(&run->walk) & 1);
	pthread_mutex_unlock(&run->lock);
	return offset;
}

static void begin_request(struct volume_slot *slot)
{
	struct volume_run *run = slot->run;
	bool is_read;
	uint64_t offset = next_place(run, &is_read);
	int rc;

	slot->begin_ns = weir_now_ns();
	rc = is_read ? weir_volume_read_async(run->volume, offset, slot->buf, run->o.size,
					      request_done, slot) :
		       weir_volume_write_async(run->volume, offset, slot->buf, run->o.size,
					       request_done, slot);
	if (rc)
		request_ended(run, rc);
}

static int alloc_slots(struct volume_run *run)
{
	for (unsigned int i = 0; i < run->o.depth; i++) {
		run->slots[i] = (struct volume_slot){ .run = run, .buf = malloc(run->o.size) };
		if (!run->slots[i].buf)
			return failure(run->cmd, "out of memory");
		memset(run->slots[i].buf, (int)i, run->o.size);
	}
	return EXIT_OK;
}

static int run_requests(struct volume_run *run)
{
	run->begin_ns = run->last_ns = weir_now_ns();
	run->end_ns = run->begin_ns + (uint64_t)(run->o.seconds * 1e9);
	run->busy = run->o.depth;
	for (unsigned int i = 0; i < run->o.depth; i++)
		begin_request(&run->slots[i]);
	pthread_mutex_lock(&run->lock);
	while (run->busy)
		pthread_cond_wait(&run->idle, &run->lock);
	pthread_mutex_unlock(&run->lock);
	if (run->status)
		return failure(run->cmd, "after %llu requests: %s", (unsigned long long)run->ops,
			       weir_strerror(run->status));
	return EXIT_OK;
}

static int open_volume(struct volume_run *run, const char *device, const char *name,
		       struct weir_key **key)
{
	struct weir_session_tuning tuning = { .size = sizeof(tuning) };
	struct weir_volume_options wanted = {
		.size = sizeof(wanted),
		.device = device,
		.volume = name,
		.tuning = &tuning,
	};
	struct weir_error error;

	if (run->o.key && weir_key_load(run->o.key, key, &error))
		return failure(run->cmd, "%s", error.text);
	wanted.key = *key;
	wanted.encryption = client_encryption();
	client_window(&tuning);
	if (weir_volume_open(&wanted, &run->volume, &error))
		return failure(run->cmd, "%s", error.text);
	weir_volume_info(run->volume, &run->info, sizeof(run->info));
	if (run->info.bytes < run->o.size)
		return failure(run->cmd, "--size: the volume has only %s",
			       size_format(run->info.bytes).text);
	walk_plan_init(&run->plan, run->o.pattern ? PATTERN_RANDOM : PATTERN_SEQUENTIAL,
		       run->info.bytes / run->o.size, 1, 1, run->o.seed);
	walk_init(&run->walk, &run->plan, 0);
	return EXIT_OK;
}

static double us_at(const struct volume_run *run, uint32_t per_million)
{
	return (double)weir_histogram_at(&run->latency, per_million) / 1e3;
}

static void print_json(struct volume_run *run, double seconds)
{
	struct json json;

	json_begin(&json, stdout);
	json_uint(&json, "ops", run->ops);
	json_uint(&json, "bytes", run->ops * run->o.size);
	json_double(&json, "seconds", seconds);
	json_double(&json, "ops_per_second", (double)run->ops / seconds);
	json_double(&json, "bytes_per_second", (double)(run->ops * run->o.size) / seconds);
	json_double(&json, "gap_max_ms", (double)run->gap_ns / 1e6);
	json_open_object(&json, "latency_us");
	json_double(&json, "p50", us_at(run, 500000));
	json_double(&json, "p99", us_at(run, 990000));
	json_double(&json, "max", (double)run->latency.max / 1e3);
	json_close(&json);
	json_open_object(&json, "settings");
	json_string(&json, "op", op_names[run->o.op]);
	json_string(&json, "pattern", pattern_names[run->o.pattern]);
	json_uint(&json, "size_bytes", run->o.size);
	json_uint(&json, "depth", run->o.depth);
	json_uint(&json, "volume_bytes", run->info.bytes);
	json_uint(&json, "copies", run->info.copies);
	json_uint(&json, "data", run->info.data);
	json_uint(&json, "donors", run->info.donors);
	json_close(&json);
	json_uint(&json, "copied_bytes", run->info.copied_bytes);
	json_uint(&json, "failovers", run->info.failovers);
	json_uint(&json, "missed_writes", run->info.missed_writes);
	json_uint(&json, "mismatches", run->info.mismatches);
	json_uint(&json, "repaired_bytes", run->info.repaired_bytes);
	json_end(&json);
}

static void print_text(const struct volume_run *run, double seconds)
{
	const struct weir_volume_info *info = &run->info;

	printf("%s of %s, %s, depth %u; ", op_names[run->o.op], size_format(run->o.size).text,
	       pattern_names[run->o.pattern], run->o.depth);
	if (info->data > 1)
		printf("code %u+%u, ", info->data, info->copies - info->data);
	else
		printf("%u copies, ", info->copies);
	printf("%u donors\n", info->donors);
	printf("requests       %12.0f  a second, %s/s\n", (double)run->ops / seconds,
	       size_format((uint64_t)((double)(run->ops * run->o.size) / seconds)).text);
	printf("latency, us: p50 %.1f, p99 %.1f, max %.1f\n", us_at(run, 500000),
	       us_at(run, 990000), (double)run->latency.max / 1e3);
	printf("longest time in which no request ended: %.1f ms\n", (double)run->gap_ns / 1e6);
	if (run->info.copied_bytes)
		printf("rebuilt meanwhile: %s\n", size_format(run->info.copied_bytes).text);
}

static void report(struct volume_run *run)
{
	double seconds = (double)(run->last_ns - run->begin_ns) / 1e9;

	weir_volume_info(run->volume, &run->info, sizeof(run->info));
	if (run->o.json)
		print_json(run, seconds);
	else
		print_text(run, seconds);
}

static int measure(struct volume_run *run, const char *device, const char *name)
{
	struct weir_key *key = NULL;
	int status = alloc_slots(run);

	if (!status)
		status = open_volume(run, device, name, &key);
	if (!status)
		status = run_requests(run);
	if (!status)
		report(run);
	weir_volume_close(run->volume);
	weir_key_free(key);
	for (unsigned int i = 0; i < run->o.depth; i++)
		free(run->slots[i].buf);
	return status;
}

int perf_volume(int argc, char **argv)
{
	struct volume_run *run = calloc(1, sizeof(*run));
	const char *device;
	int status;

	if (!run)
		return failure(argv[0], "out of memory");
	run->cmd = argv[0];
	run->o = (struct volume_perf_options){
		.op = VOLUME_WRITE, .size = 4096, .depth = 1, .seconds = 5, .seed = 1
	};
	pthread_mutex_init(&run->lock, NULL);
	pthread_cond_init(&run->idle, NULL);
	status = cmdline_parse(&volume_line, argc, argv, &run->o);
	if (status == CMDLINE_PARSED) {
		status = device_choose(run->cmd, run->o.device, &device);
		stop_on_signals();
		if (!status)
			status = measure(run, device, argv[optind]);
	}
	free(run);
	return status;
}
