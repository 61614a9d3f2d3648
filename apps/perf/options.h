/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The options of weir perf. */
#ifndef WEIR_APPS_PERF_OPTIONS_H
#define WEIR_APPS_PERF_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/session.h>
#include "apps/common/client.h"
#include "apps/perf/pattern.h"

enum perf_op { PERF_READ, PERF_WRITE, PERF_MIX };

/**
 * struct perf_options - the command line
 * @cmd: argv[0], for messages
 * @session, @tuning: options of the sessions
 * @window: the arguments of --window and --window-wrs, for the report
 * @has_beside, @beside: --beside, and its class
 * @user_mr: all buffers are registered once, at start
 * @seconds: 0: no limit; while parsing, -1: the default
 * @ops: requests in total; 0: no limit
 * @size: bytes per request; with a trace, a page
 * @region_bytes: size of the donor's memory to access; while parsing, 0: the default
 * @stride: in blocks
 * @cluster: requests per burst
 * @gap_us: from the end of a burst to the next; GAP_NOT_GIVEN while parsing, for the default
 * @depth: with a trace, 0 means as recorded
 * @batch: requests submitted together, at most @depth
 * @donors: @nr_donors names, each with its own session and region
 */
struct perf_options {
	const char *cmd, *device, *key;
	char **donors;
	unsigned int nr_donors;
	const char *trace_path, *plot_path;
	struct client_window_names window;
	struct weir_session_options session;
	struct weir_session_tuning tuning;
	struct client_class beside;
	bool user_mr, json, verify, has_beside;
	enum perf_op op;
	enum pattern pattern;
	unsigned int threads, depth, batch, cluster, gap_us;
	uint64_t size, region_bytes, stride, ops, seed;
	double seconds;
};

/* Parses the command line. Return: CMDLINE_PARSED, or an exit status after --help or a message. */
int perf_options_parse(int argc, char **argv, struct perf_options *options);

#define THREADS_MAX 256u
#define GAP_NOT_GIVEN UINT_MAX

/*
 * Second part of parsing: checks that the options are consistent, and fills in defaults. Return:
 * CMDLINE_PARSED, or an exit status after a message.
 */
int perf_options_check(struct perf_options *options);

/**
 * perf_options_check_buffers() - check the amount of memory for requests
 * @slot_bytes: longest request, 64 MiB at most; @options determine the number of slots
 *
 * Return: 0, or an exit status after a message.
 */
int perf_options_check_buffers(const struct perf_options *options, uint64_t slot_bytes);

/* The choices' names on the command line, indexed by value. */
extern const char *const perf_op_names[], *const perf_pattern_names[];
extern const char *const perf_preset_names[], *const perf_batching_names[];
extern const char *const perf_mr_names[], *const perf_polling_names[];
extern const char *const perf_unload_names[];

#endif
