/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Page traces: the requests to a block device, in order.
 *
 * A text file; lines that begin with '#' are comments. The first other line is
 *
 *	weir-trace 1 PAGES THREADS
 *
 * with the device's size in 4 KiB pages, and the number of threads. Then a line per request:
 *
 *	OP PAGE COUNT THREAD DONE US
 *
 * OP is R or W, PAGE the first page, COUNT the number of pages, THREAD the submitting thread from
 * 0. DONE is the number of the trace's requests completed at submission, and US the time in
 * microseconds since the start. The line's number (from 0) less DONE is the queue depth at that
 * moment.
 */
#ifndef WEIR_APPS_PERF_TRACE_H
#define WEIR_APPS_PERF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_PAGE 4096u
#define TRACE_THREADS_MAX 256u
#define TRACE_COUNT_MAX 256u /* pages per request */
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
	unsigned int depth; /* maximum of outstanding requests */
	size_t nr_records;
	struct trace_record *records;
};

/**
 * trace_read() - read a whole trace
 * @cmd: for messages
 * @path: a file; "-": standard input
 * @trace: receives the trace; the caller owes a trace_free()
 *
 * Return: 0, or an exit status after a message with the line's number.
 */
int trace_read(const char *cmd, const char *path, struct page_trace *trace);
void trace_free(struct page_trace *trace);

#endif
