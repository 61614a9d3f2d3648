/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A trace: recorded requests that simulated threads repeat. The format is weir-perf(1)'s:
 * "weir-trace 1 PAGES THREADS", then "OP PAGE COUNT ..." for each request; further fields are
 * ignored, and '#' starts a comment.
 *
 * A load's threads share the trace and take the next request, each as many as it keeps in flight.
 * After the last request, the trace starts again.
 */
#ifndef WEIR_SIM_LOAD_REQUEST_TRACE_H
#define WEIR_SIM_LOAD_REQUEST_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_TRACE_PAGE 4096u
#define SIM_TRACE_PAGES_MAX 256u /* of a single request */

/* A request for a number of pages. */
struct sim_request_record {
	uint64_t page;
	uint32_t pages;
	bool is_write;
};

/**
 * struct sim_request_trace - a trace and a position
 * @records, @count: the requests
 * @most: pages of the longest request
 * @next: index of the next request
 */
struct sim_request_trace {
	struct sim_request_record *records;
	uint32_t count;
	uint32_t most;
	uint32_t next;
};

/**
 * sim_trace_load() - read a trace
 * @trace: receives the trace; sim_trace_fini() frees it
 * @path: the file
 * @why: receives the error and its place; @why_bytes of room
 *
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int sim_trace_load(struct sim_request_trace *trace, const char *path, char *why,
		   uint32_t why_bytes);

void sim_trace_fini(struct sim_request_trace *trace);

/* Returns the next request. */
const struct sim_request_record *sim_trace_next(struct sim_request_trace *trace);

#endif
