/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/trace.h"
#include "apps/common/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 128
#define PAGES_MAX (1ull << 40) /* 4 PiB */

struct trace_reader {
	const char *cmd, *path;
	FILE *file;
	unsigned long line; /* number of the last line read */
	size_t room; /* records */
	struct page_trace *trace;
};

static int is_wrong(const struct trace_reader *r, const char *what)
{
	return failure(r->cmd, "%s:%lu: %s; see weir-perf(1) for the format", r->path,
		       r->line, what);
}

/* Reads the next line that is not a comment. Returns false at the end. */
static bool read_line(struct trace_reader *r, char *line)
{
	do {
		if (!fgets(line, LINE_BYTES, r->file))
			return false;
		r->line++;
	} while (*line == '#');
	return true;
}

static int read_head(struct trace_reader *r)
{
	struct page_trace *t = r->trace;
	char line[LINE_BYTES], end;

	if (!read_line(r, line))
		return is_wrong(r, "the trace is empty");
	if (sscanf(line, "weir-trace 1 %" SCNu64 " %u %c", &t->pages, &t->threads, &end) != 2)
		return is_wrong(r, "expected \"weir-trace 1 PAGES THREADS\"");
	if (!t->pages || t->pages > PAGES_MAX)
		return is_wrong(r, "PAGES is out of range");
	if (!t->threads || t->threads > TRACE_THREADS_MAX)
		return is_wrong(r, "THREADS is out of range: 1 to 256");
	return 0;
}

static int grow(struct trace_reader *r)
{
	size_t room = r->room ? 2 * r->room : 1024;
	struct trace_record *records;

	if (r->trace->nr_records < r->room)
		return 0;
	if (r->trace->nr_records == TRACE_RECORDS_MAX)
		return is_wrong(r, "the trace is too long: 16777216 requests at most");
	records = realloc(r->trace->records, room * sizeof(*records));
	if (!records)
		return failure(r->cmd, "out of memory for the trace");
	r->trace->records = records;
	r->room = room;
	return 0;
}

static int read_record(struct trace_reader *r, const char *line)
{
	struct page_trace *t = r->trace;
	unsigned int count, thread, done;
	uint64_t page, us;
	char op, end;

	if (sscanf(line, "%c %" SCNu64 " %u %u %u %" SCNu64 " %c", &op, &page, &count, &thread,
		   &done, &us, &end) != 6)
		return is_wrong(r, "expected \"OP PAGE COUNT THREAD DONE US\"");
	if (op != 'R' && op != 'W')
		return is_wrong(r, "OP is neither R nor W");
	if (!count || count > TRACE_COUNT_MAX)
		return is_wrong(r, "COUNT is out of range: 1 to 256");
	if (page >= t->pages || count > t->pages - page)
		return is_wrong(r, "PAGE lies outside of the device");
	if (thread >= t->threads)
		return is_wrong(r, "THREAD is out of range");
	if (done > t->nr_records)
		return is_wrong(r, "DONE exceeds the number of earlier requests");
	if (grow(r))
		return EXIT_FAILED;
	t->records[t->nr_records++] = (struct trace_record){
		page, done, (uint16_t)count, (uint8_t)thread, op == 'W',
	};
	if (count > t->count_max)
		t->count_max = count;
	if (t->nr_records - done > t->depth)
		t->depth = (unsigned int)(t->nr_records - done);
	return 0;
}

static int read_all(struct trace_reader *r)
{
	char line[LINE_BYTES];
	int status = read_head(r);

	while (!status && read_line(r, line))
		status = read_record(r, line);
	if (!status && ferror(r->file))
		status = failure(r->cmd, "%s: cannot read: %s", r->path, strerror(errno));
	if (!status && !r->trace->nr_records)
		status = is_wrong(r, "the trace has no requests");
	return status;
}

int trace_read(const char *cmd, const char *path, struct page_trace *trace)
{
	bool is_stdin = !strcmp(path, "-");
	struct trace_reader r = { .cmd = cmd, .path = path, .trace = trace };
	int status;

	*trace = (struct page_trace){ 0 };
	r.file = is_stdin ? stdin : fopen(path, "re");
	if (!r.file)
		return failure(cmd, "--trace %s: %s", path, strerror(errno));
	status = read_all(&r);
	if (!is_stdin)
		fclose(r.file);
	if (status)
		trace_free(trace);
	return status;
}

void trace_free(struct page_trace *trace)
{
	free(trace->records);
	*trace = (struct page_trace){ 0 };
}
