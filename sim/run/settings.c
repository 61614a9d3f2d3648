/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables of settings with bounds and defaults, and checks across settings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/engine.h"
#include "core/poll/poll.h"
#include "core/sched/sched.h"
#include "sim/nic/nic.h"
#include "sim/run/settings.h"

#define EXCHANGE_BATCH_MAX 32

#define NAMES_MAX 6

/* A setting: a number between two bounds, or a name from a list. */
struct sim_setting {
	const char *name;
	size_t offset;
	uint64_t scale, least, most, usual;
	const char *names[NAMES_MAX + 1];
};

#define RUN(field) offsetof(struct sim_settings, field)
#define LOAD(field) offsetof(struct sim_load_settings, field)

static const struct sim_setting run_settings[] = {
	{ "seed", RUN(seed), 1, 0, UINT64_MAX, 1 },
	{ "clients", RUN(clients), 1, 1, SIM_CLIENTS_MAX, 1 },
	{ "servers", RUN(servers), 1, 1, 64, 1 },
	{ "both", RUN(both), 1, 0, 1, 0 },
	{ "warmup_us", RUN(warmup_ps), SIM_PS_PER_US, 0, 10000000, 100 },
	{ "run_us", RUN(run_ps), SIM_PS_PER_US, 1, 10000000, 1000 },
};

static const struct sim_setting load_settings[] = {
	{ "driver",
	  LOAD(driver),
	  1,
	  0,
	  0,
	  SIM_DRIVER_VERBS,
	  { "verbs", "weir", "trip", "mux", "exchange" } },
	{ "threads", LOAD(threads), 1, 0, 1024, 1 },
	{ "depth", LOAD(depth), 1, 1, 4096, 1 },
	{ "batch", LOAD(batch), 1, 1, 4096, 1 },
	{ "op",
	  LOAD(op),
	  1,
	  0,
	  0,
	  SIM_OP_WRITE,
	  { "write", "read", "send", "write_imm", "cas", "fadd" } },
	{ "size", LOAD(size), 1, 1, 1 << 24, 64 },
	{ "qps", LOAD(qps), 1, 1, 65536, 1 },
	{ "share", LOAD(share), 1, 0, 1024, 0 },
	{ "lock", LOAD(lock), 1, 0, 0, SIM_LOCK_SPIN, { "spin", "mutex" } },
	{ "hold", LOAD(hold), 1, 0, 0, SIM_HOLD_POST, { "post", "op" } },
	{ "poll",
	  LOAD(poll),
	  1,
	  0,
	  0,
	  WEIR_POLL_BUSY,
	  { "adaptive", "busy", "event", "batch", "hybrid" } },
	{ "poll_wcs", LOAD(poll_wcs), 1, 1, 256, 16 },
	{ "poll_retries", LOAD(poll_retries), 1, 0, 1000000, 0 },
	{ "pattern",
	  LOAD(pattern),
	  1,
	  0,
	  0,
	  SIM_PATTERN_SEQ,
	  { "seq", "random", "zipf", "trace" } },
	{ "skew", LOAD(skew), 1, 0, 400, 50 },
	{ "mrs", LOAD(mrs), 1, 1, 1 << 22, 1 },
	{ "region_bytes", LOAD(region_bytes), 1, 64, 1ull << 40, 1 << 20 },
	{ "class", LOAD(class), 1, 0, SIM_CLASSES - 1, 0 },
	{ "mr", LOAD(mr), 1, 0, 0, SIM_MR_USER, { "user", "pre", "dyn" } },
	{ "poller", LOAD(poller), 1, 0, 1, 0 },
	{ "cqs", LOAD(cqs), 1, 0, 64, 0 },
	{ "sq_depth", LOAD(sq_depth), 1, 2, 16384, 256 },
	{ "lanes", LOAD(lanes), 1, 0, 1, 0 },
	{ "lane_ns", LOAD(lane_ps), SIM_PS_PER_NS, 0, 1000000, 30 },
	{ "core_ns", LOAD(core_ps), SIM_PS_PER_NS, 0, 1000000, 50 },
	{ "think_ns", LOAD(think_ps), SIM_PS_PER_NS, 0, 1000000000, 0 },
	{ "handle_ns", LOAD(handle_ps), SIM_PS_PER_NS, 0, 1000000000, 0 },
	{ "chain", LOAD(chain), 1, 1, WEIR_BATCH_MAX, WEIR_BATCH_MAX },
	{ "merge", LOAD(merge), 1, 0, 1, 1 },
	{ "sge_max", LOAD(sge_max), 1, WEIR_SGE_MAX, WEIR_WR_SGE_MAX, WEIR_WR_SGE_MAX },
	{ "fragment", LOAD(fragment), 1, WEIR_FRAGMENT_BYTES_MIN, 1 << 24, 128 << 10 },
	{ "window", LOAD(window), 1, 4096, 1ull << 40, 8 << 20 },
	{ "window_wrs", LOAD(window_wrs), 1, 1, 65536, 65536 },
	{ "admission",
	  LOAD(admission),
	  1,
	  0,
	  0,
	  SIM_ADMISSION_STATIC,
	  { "static", "delay", "knee", "delay-wrs", "knee-wrs" } },
	{ "unload",
	  LOAD(unload),
	  1,
	  0,
	  0,
	  WEIR_PATH_POLICY_OFFLOAD,
	  { "off", "always", "hints", "frequency", "measured" } },
	{ "hot", LOAD(hot), 1, 1, UINT32_MAX, 4096 },
	{ "learn", LOAD(learn), 1, 0, 1ull << 32, 0 },
	{ "touched", LOAD(touched), 1, 0, 1ull << 32, 0 },
	{ "parity", LOAD(parity), 1, 0, 1, 0 },
	{ "until", LOAD(until), 1, 0, 0, SIM_UNTIL_ANSWER, { "answer", "complete" } },
	{ "conns", LOAD(conns), 1, 1, 1 << 20, 1024 },
	{ "segment", LOAD(segment), 1, 1, 1 << 24, WEIR_SCHED_SEGMENT_BYTES },
	{ "policy", LOAD(policy), 1, 0, 0, WEIR_SCHED_FAIR, { "fair", "turns" } },
	{ "flow_wrs", LOAD(flow_wrs), 1, 1, 64, 4 },
	{ "low_bytes", LOAD(low_bytes), 1, 0, 1ull << 40, 64 << 10 },
	{ "slots", LOAD(slots), 1, 1, 2048, 256 },
	{ "slot_bytes", LOAD(slot_bytes), 1, 1, 1 << 24, 64 << 10 },
	{ "imm", LOAD(imm), 1, 0, 1, 0 },
	{ "credit_batch", LOAD(credit_batch), 1, 1, 2048, 1 },
	{ "percent", LOAD(percent), 1, 1, 99, 40 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void set_usual(void *base, const struct sim_setting *settings, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		*(uint64_t *)((char *)base + settings[i].offset) =
			settings[i].usual * settings[i].scale;
}

static int refuse(const struct sim_setting *s, const char *value, char why[SIM_SETTINGS_WHY_BYTES])
{
	int at, i;

	if (!s->names[0]) {
		snprintf(why, SIM_SETTINGS_WHY_BYTES, "%s=%.64s: a whole number from %llu to %llu",
			 s->name, value, (unsigned long long)s->least, (unsigned long long)s->most);
		return -EINVAL;
	}
	at = snprintf(why, SIM_SETTINGS_WHY_BYTES, "%s=%.64s: one of", s->name, value);
	for (i = 0; s->names[i]; i++)
		at += snprintf(why + at, SIM_SETTINGS_WHY_BYTES - (size_t)at, " %s", s->names[i]);
	return -EINVAL;
}

static int set_value(void *base, const struct sim_setting *s, const char *value,
		     char why[SIM_SETTINGS_WHY_BYTES])
{
	uint64_t number = 0;
	char *end;

	if (s->names[0]) {
		while (s->names[number] && strcmp(s->names[number], value))
			number++;
		if (!s->names[number])
			return refuse(s, value, why);
	} else {
		errno = 0;
		number = strtoull(value, &end, 10);
		if (*value < '0' || *value > '9' || *end || errno || number < s->least ||
		    number > s->most)
			return refuse(s, value, why);
	}
	*(uint64_t *)((char *)base + s->offset) = number * s->scale;
	return 0;
}

static const struct sim_setting *find_setting(const struct sim_setting *settings, size_t count,
					      const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!strcmp(settings[i].name, name))
			return &settings[i];
	}
	return NULL;
}

static int set_of_profile(struct sim_settings *settings, const char *name, const char *value,
			  char why[SIM_SETTINGS_WHY_BYTES])
{
	int rc = sim_profile_set(&settings->profile, name, value);

	if (rc == -ENOENT)
		snprintf(why, SIM_SETTINGS_WHY_BYTES,
			 "there is no setting '%.64s': sim/README.md lists them", name);
	else if (rc)
		snprintf(why, SIM_SETTINGS_WHY_BYTES, "%s=%.64s: no such value", name, value);
	return rc ? -EINVAL : 0;
}

static int parse_one(struct sim_settings *settings, const char *arg,
		     char why[SIM_SETTINGS_WHY_BYTES])
{
	const char *value = strchr(arg, '=');
	const struct sim_setting *s;
	char name[64];

	if (!value || value - arg >= (int)sizeof(name)) {
		snprintf(why, SIM_SETTINGS_WHY_BYTES, "'%.64s' is not of the form name=value", arg);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(value++ - arg), arg);
	if (!strcmp(name, "profile"))
		return 0;
	if (!strcmp(name, "trace")) {
		sim_trace_fini(&settings->trace);
		return sim_trace_load(&settings->trace, value, why, SIM_SETTINGS_WHY_BYTES);
	}
	s = find_setting(run_settings, COUNT(run_settings), name);
	if (s)
		return set_value(settings, s, value, why);
	s = find_setting(load_settings, COUNT(load_settings), name);
	if (s)
		return set_value(&settings->load, s, value, why);
	s = strncmp(name, "bg_", 3) ? NULL :
				      find_setting(load_settings, COUNT(load_settings), name + 3);
	if (s)
		return set_value(&settings->background, s, value, why);
	if (!strcmp(name, "sizes")) {
		sim_sizes_fini(&settings->sizes);
		return sim_sizes_load(&settings->sizes, value, why, SIM_SETTINGS_WHY_BYTES);
	}
	return set_of_profile(settings, name, value, why);
}

static int load_profile(struct sim_settings *settings, const char *profiles, int argc,
			char *const argv[], char why[SIM_SETTINGS_WHY_BYTES])
{
	const char *name = "connectx-3";
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "profile=", 8))
			name = argv[i] + 8;
	}
	if (strchr(name, '/'))
		snprintf(settings->profile_path, sizeof(settings->profile_path), "%s", name);
	else
		snprintf(settings->profile_path, sizeof(settings->profile_path), "%s/%s", profiles,
			 name);
	return sim_profile_load(&settings->profile, settings->profile_path, why);
}

/* Refuses combinations of settings that make no sense. */
static int check_load(const struct sim_load_settings *load, char why[SIM_SETTINGS_WHY_BYTES])
{
	const char *wrong = NULL;

	if (load->size > load->region_bytes)
		wrong = "size is larger than region_bytes";
	else if (load->batch > load->depth && load->driver != SIM_DRIVER_EXCHANGE)
		wrong = "batch is larger than depth: it would never be full";
	else if (load->op > SIM_OP_WRITE_IMM && load->size != 8)
		wrong = "an atomic is of 8 bytes: say size=8";
	else if (load->share && load->poll != WEIR_POLL_BUSY)
		wrong = "shared QPs share a CQ, which only busy polling threads can share";
	else if (load->hold == SIM_HOLD_OP && (load->depth > 1 || !load->share))
		wrong = "hold=op is for shared QPs and depth=1";
	else if (load->driver == SIM_DRIVER_WEIR && load->op == SIM_OP_WRITE_IMM)
		wrong = "weir's core has no write_imm";
	else if (load->driver != SIM_DRIVER_WEIR && load->pattern == SIM_PATTERN_TRACE)
		wrong = "only weir's engine repeats traces: say driver=weir";
	else if (load->driver == SIM_DRIVER_PINGPONG &&
		 (load->op != SIM_OP_WRITE || load->depth > 1 || load->qps > 1 || load->share))
		wrong = "a round trip is one write: op=write depth=1 qps=1 share=0";
	else if (load->driver == SIM_DRIVER_EXCHANGE && load->size > load->slot_bytes)
		wrong = "size is larger than slot_bytes";
	else if (load->driver == SIM_DRIVER_EXCHANGE && load->batch > EXCHANGE_BATCH_MAX)
		wrong = "an exchange sends up to 32 messages at a time: say a lower batch";
	else if (load->driver == SIM_DRIVER_EXCHANGE && load->credit_batch > load->slots)
		wrong = "credit_batch is more than slots: none would be given back";
	else if (load->driver == SIM_DRIVER_MUX && load->op != SIM_OP_SEND)
		wrong = "a mux sends messages: say op=send";
	else if (load->driver == SIM_DRIVER_MUX && load->conns < load->threads)
		wrong = "each thread has a connection at least: say more conns";
	else if (load->lanes && (load->cqs || load->poller))
		wrong = "lanes have completion queues of their own: cqs=0 poller=0";
	else if (load->driver == SIM_DRIVER_WEIR && load->qps > WEIR_CHANNEL_MAX)
		wrong = "a session of weir has at most 16 channels: say a lower qps";
	else if (load->driver == SIM_DRIVER_WEIR && load->fragment > load->window)
		wrong = "fragment is larger than window: it would never fit";
	if (!wrong)
		return 0;
	snprintf(why, SIM_SETTINGS_WHY_BYTES, "%s", wrong);
	return -EINVAL;
}

/* Requests that the queues of a load have room for; a measure of the memory needed. */
static uint64_t count_room(const struct sim_settings *s, const struct sim_load_settings *load)
{
	uint64_t under_way = s->clients * load->threads * load->depth;

	if (load->driver == SIM_DRIVER_WEIR)
		return under_way + s->clients * s->servers * load->qps * load->sq_depth;
	return under_way * (load->share ? load->share : load->qps);
}

static int check_room(const struct sim_settings *s, char why[SIM_SETTINGS_WHY_BYTES])
{
	if (count_room(s, &s->load) + count_room(s, &s->background) <= SIM_ROOM_MAX)
		return 0;
	snprintf(why, SIM_SETTINGS_WHY_BYTES,
		 "room for more than %d requests in the queues: reduce threads, qps or depth",
		 SIM_ROOM_MAX);
	return -EINVAL;
}

static int parse(struct sim_settings *settings, const char *profiles, int argc, char *const argv[],
		 char why[SIM_SETTINGS_WHY_BYTES])
{
	const char *bad;
	int i, rc;

	*settings = (struct sim_settings){ .seed = 1 };
	set_usual(settings, run_settings, COUNT(run_settings));
	set_usual(&settings->load, load_settings, COUNT(load_settings));
	set_usual(&settings->background, load_settings, COUNT(load_settings));
	settings->background.threads = 0;
	rc = load_profile(settings, profiles, argc, argv, why);
	for (i = 0; i < argc && !rc; i++)
		rc = parse_one(settings, argv[i], why);
	if (rc)
		return rc;
	bad = sim_profile_check(&settings->profile);
	if (bad) {
		snprintf(why, SIM_SETTINGS_WHY_BYTES, "%s is out of its range", bad);
		return -EINVAL;
	}
	if (settings->both && settings->clients < 2) {
		snprintf(why, SIM_SETTINGS_WHY_BYTES, "both=1 wants clients=2 at least");
		return -EINVAL;
	}
	if (!settings->trace.count && (settings->load.pattern == SIM_PATTERN_TRACE ||
				       settings->background.pattern == SIM_PATTERN_TRACE)) {
		snprintf(why, SIM_SETTINGS_WHY_BYTES, "pattern=trace wants trace=FILE");
		return -EINVAL;
	}
	if (settings->load.driver == SIM_DRIVER_EXCHANGE &&
	    settings->sizes.most > settings->load.slot_bytes) {
		snprintf(why, SIM_SETTINGS_WHY_BYTES,
			 "a length in sizes is larger than slot_bytes");
		return -EINVAL;
	}
	rc = check_load(&settings->load, why);
	if (!rc)
		rc = check_load(&settings->background, why);
	return rc ? rc : check_room(settings, why);
}

int sim_settings_parse(struct sim_settings *settings, const char *profiles, int argc,
		       char *const argv[], char why[SIM_SETTINGS_WHY_BYTES])
{
	int rc = parse(settings, profiles, argc, argv, why);

	if (rc)
		sim_settings_fini(settings);
	return rc;
}

void sim_settings_fini(struct sim_settings *settings)
{
	sim_trace_fini(&settings->trace);
	sim_sizes_fini(&settings->sizes);
}
