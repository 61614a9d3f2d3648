/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A trace: what was asked for, one request after the other, to be asked for again by simulated
 * threads. In the form of weir-perf(1): "weir-trace 1 PAGES THREADS", then a line a request,
 * "OP PAGE COUNT ...", of which the rest is not looked at; '#' begins a comment.
 *
 * A load's threads take its requests by turns, as many at a time as they have under way; after the
 * last comes the first again.
 */
#ifndef WEIR_SIM_LOAD_REQUEST_TRACE_H
#define WEIR_SIM_LOAD_REQUEST_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_TRACE_PAGE 4096u
#define SIM_TRACE_PAGES_MAX 256u /* of one request */

/* A request of so many pages. */
struct sim_request_record {
	uint64_t page;
	uint32_t pages;
	bool is_write;
};

/**
 * struct sim_request_trace - a trace, and how far it has been repeated
 * @records, @count: its requests
 * @most: pages of the longest
 * @next: the next one to be asked for
 */
struct sim_request_trace {
	struct sim_request_record *records;
	uint32_t count;
	uint32_t most;
	uint32_t next;
};

/**
 * sim_trace_load() - read a trace
 * @trace: receives it; sim_trace_fini() frees it
 * @path: the file
 * @why: receives what is wrong, and where; @why_bytes of room
 *
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int sim_trace_load(struct sim_request_trace *trace, const char *path, char *why,
		   uint32_t why_bytes);

void sim_trace_fini(struct sim_request_trace *trace);

/* The next request. */
const struct sim_request_record *sim_trace_next(struct sim_request_trace *trace);

#endif
