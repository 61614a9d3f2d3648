/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A page trace with arbitrary content. The parser refuses the trace with a line of text, or
 * each request is valid and follows the requests before.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/common/cmd.h"
#include "apps/perf/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Replaces the command's function: any text will do, as long as there is some. */
int failure(const char *cmd, const char *format, ...)
{
	char text[256];
	va_list ap;

	(void)cmd;
	va_start(ap, format);
	assert(vsnprintf(text, sizeof(text), format, ap) > 0);
	va_end(ap);
	return EXIT_FAILED;
}

/* Raw bytes, or lines with small errors. */
static void write_trace(FILE *file, const uint8_t *data, size_t size)
{
	size_t i, number = 0;

	if (!(*data & 1)) {
		fwrite(data + 1, 1, size - 1, file);
		return;
	}
	fprintf(file, "# made up\nweir-trace 1 %u %u\n", 1 + (*data >> 1) * 8u,
		1 + (*data >> 4) * 1u);
	for (i = 1; i + 4 <= size; i += 4, number++)
		fprintf(file, "%c %u %u %u %zu %zu\n", data[i] & 1 ? 'R' : 'W', data[i + 1] * 1u,
			(data[i + 2] & 15u) + (data[i] != 77), data[i + 2] >> 5u,
			number - data[i + 3] % (number + 1), i);
}

static void check(const struct page_trace *trace)
{
	unsigned int depth = 0, count = 0;
	size_t i;

	assert(trace->nr_records && trace->pages && trace->threads <= TRACE_THREADS_MAX);
	for (i = 0; i < trace->nr_records; i++) {
		const struct trace_record *r = &trace->records[i];

		assert(r->page < trace->pages && r->count && r->count <= trace->pages - r->page);
		assert(r->thread < trace->threads && r->done <= i);
		depth = i + 1 - r->done > depth ? (unsigned int)(i + 1 - r->done) : depth;
		count = r->count > count ? r->count : count;
	}
	assert(depth == trace->depth && count == trace->count_max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	FILE *file = fdopen(fd, "w");
	struct page_trace trace;
	char path[32];

	if (size)
		write_trace(file, data, size);
	fflush(file);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!trace_read("perf", path, &trace)) {
		check(&trace);
		trace_free(&trace);
	}
	assert(!trace.records);
	fclose(file);
	return 0;
}
