/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What weir perf is asked for. */
#ifndef WEIR_APPS_PERF_OPTIONS_H
#define WEIR_APPS_PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/session.h>
#include "apps/perf/pattern.h"

enum perf_op { PERF_READ, PERF_WRITE, PERF_MIX };

/**
 * struct perf_options - the command line
 * @session: the session's part of it
 * @window: the argument of --window, for people
 * @user_mr: the buffers are registered by the user, once
 * @seconds: 0: no limit; @ops: in all; 0: no limit
 * @size: bytes of a request; with a trace, a page
 * @region_bytes: of the donor's memory
 * @stride: in blocks
 * @cluster: requests of a burst; @gap_us: between one that is done and the next
 * @depth: 0 with a trace: as deep as that was
 * @batch: requests submitted together, at most @depth
 * @donors: @nr_donors of them, each with a session and a region of its own
 * @has_seconds, @has_region, @has_gap: they were asked for
 */
struct perf_options {
	const char *cmd, *device, *key;
	char **donors;
	unsigned int nr_donors;
	const char *trace_path, *plot_path, *window;
	struct weir_session_options session;
	bool user_mr, json, verify, has_seconds, has_region, has_gap;
	enum perf_op op;
	enum pattern pattern;
	unsigned int threads, depth, batch, cluster, gap_us;
	uint64_t size, region_bytes, stride, ops, seed;
	double seconds;
};

/**
 * perf_options_parse() - read the command line
 * @go_on: receives false when there is nothing left to do (--help)
 *
 * Return: 0, or an exit status; it has explained itself then.
 */
int perf_options_parse(int argc, char **argv, struct perf_options *options, bool *go_on);

#define THREADS_MAX 256u

/*
 * Part of it: whether they go together; fills in what is left open. Return: 0, or an exit status.
 */
int perf_options_check(struct perf_options *options);

/**
 * perf_options_check_buffers() - whether there is to be so much memory for requests
 * @slot_bytes: of the longest, at most 64 MiB; how many there are is in @options
 *
 * Return: 0, or an exit status; it has explained itself then.
 */
int perf_options_check_buffers(const struct perf_options *options, uint64_t slot_bytes);

/* The names of choices, as on the command line, by their numbers. */
extern const char *const perf_op_names[], *const perf_pattern_names[];
extern const char *const perf_preset_names[], *const perf_batching_names[];
extern const char *const perf_mr_names[], *const perf_polling_names[];
extern const char *const perf_unload_names[];

#endif
