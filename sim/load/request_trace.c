/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads a whole trace into memory and checks each line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/load/request_trace.h"

#define LINE_BYTES 128
#define RECORDS_MAX 16777216u

struct request_trace_reader {
	FILE *file;
	const char *path;
	unsigned long line;
	uint64_t pages;
	uint32_t room;
	char *why;
	uint32_t why_bytes;
};

static int is_wrong(const struct request_trace_reader *r, const char *what)
{
	snprintf(r->why, r->why_bytes, "%s:%lu: %s", r->path, r->line, what);
	return -EINVAL;
}

static bool next_line(struct request_trace_reader *r, char line[LINE_BYTES])
{
	do {
		if (!fgets(line, LINE_BYTES, r->file))
			return false;
		r->line++;
	} while (*line == '#');
	return true;
}

static int grow_records(struct sim_request_trace *trace, struct request_trace_reader *r)
{
	struct sim_request_record *records;

	if (trace->count < r->room)
		return 0;
	r->room = r->room ? 2 * r->room : 1024;
	records = r->room <= RECORDS_MAX ? realloc(trace->records, r->room * sizeof(*records)) :
					   NULL;
	if (!records)
		return is_wrong(r, "the trace is too long");
	trace->records = records;
	return 0;
}

static int parse_request(struct sim_request_trace *trace, struct request_trace_reader *r,
			 const char *line)
{
	struct sim_request_record record;
	char op;
	int rc;

	if (sscanf(line, "%c %" SCNu64 " %" SCNu32, &op, &record.page, &record.pages) != 3 ||
	    (op != 'R' && op != 'W'))
		return is_wrong(r, "expected \"OP PAGE COUNT ...\", OP being R or W");
	if (!record.pages || record.pages > SIM_TRACE_PAGES_MAX || record.page >= r->pages ||
	    record.pages > r->pages - record.page)
		return is_wrong(r,
				"PAGE and COUNT lie outside of the device, or COUNT is above 256");
	record.is_write = op == 'W';
	rc = grow_records(trace, r);
	if (trace->most < record.pages)
		trace->most = record.pages;
	if (!rc)
		trace->records[trace->count++] = record;
	return rc;
}

static int read_all(struct sim_request_trace *trace, struct request_trace_reader *r)
{
	char line[LINE_BYTES];
	int rc = 0;

	if (!next_line(r, line) || sscanf(line, "weir-trace 1 %" SCNu64, &r->pages) != 1 ||
	    !r->pages || r->pages > 1ull << 40)
		return is_wrong(r, "expected \"weir-trace 1 PAGES THREADS\"");
	while (!rc && next_line(r, line))
		rc = parse_request(trace, r, line);
	return rc || trace->count ? rc : is_wrong(r, "there is no request in it");
}

int sim_trace_load(struct sim_request_trace *trace, const char *path, char *why, uint32_t why_bytes)
{
	struct request_trace_reader r = {
		.file = fopen(path, "r"), .path = path, .why = why, .why_bytes = why_bytes
	};
	int rc;

	*trace = (struct sim_request_trace){ .count = 0 };
	if (!r.file) {
		snprintf(why, why_bytes, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	rc = read_all(trace, &r);
	fclose(r.file);
	if (rc)
		sim_trace_fini(trace);
	return rc;
}

void sim_trace_fini(struct sim_request_trace *trace)
{
	free(trace->records);
	*trace = (struct sim_request_trace){ .count = 0 };
}

const struct sim_request_record *sim_trace_next(struct sim_request_trace *trace)
{
	const struct sim_request_record *record = &trace->records[trace->next];

	trace->next = (trace->next + 1) % trace->count;
	return record;
}
