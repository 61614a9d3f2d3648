/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Page traces: what a block device was asked for, in the order in which it was.
 *
 * Text; lines that begin with '#' are comments. The first other line is
 *
 *	weir-trace 1 PAGES THREADS
 *
 * pages of 4 KiB that the device has, and threads that asked. Then a line a request:
 *
 *	OP PAGE COUNT THREAD DONE US
 *
 * R or W; the first page, and how many; who asked, from 0; how many requests of the trace were
 * done by then; and when, in microseconds since the beginning. DONE is what has to be known of the
 * queue: this line's number (from 0) less DONE is how many were outstanding together.
 */
#ifndef WEIR_APPS_PERF_TRACE_H
#define WEIR_APPS_PERF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_PAGE 4096u
#define TRACE_THREADS_MAX 256u
#define TRACE_COUNT_MAX 256u /* pages of a request */
#define TRACE_RECORDS_MAX 16777216u

struct trace_record {
	uint64_t page;
	uint32_t done;
	uint16_t count;
	uint8_t thread;
	bool is_write;
};

struct page_trace {
	uint64_t pages;
	unsigned int threads;
	unsigned int count_max; /* pages of the longest request */
	unsigned int depth; /* requests that were outstanding together, at most */
	size_t nr_records;
	struct trace_record *records;
};

/**
 * trace_read() - read a whole trace
 * @cmd: for messages
 * @path: a file; "-": standard input
 * @trace: receives it; free it with trace_free()
 *
 * Return: 0, or an exit status; it has explained itself then, with the line.
 */
int trace_read(const char *cmd, const char *path, struct page_trace *trace);
void trace_free(struct page_trace *trace);

#endif
