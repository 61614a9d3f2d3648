/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/trace_text.h"
#include "apps/common/size.h"

#include <infiniband/verbs.h>
#include <limits.h>
#include <weir/error.h>

/* Count with noun: "1 request", "2 requests". */
struct several {
	char text[48];
};

static struct several several(uint32_t count, const char *noun)
{
	struct several s;

	snprintf(s.text, sizeof(s.text), "%u %s%s", count, noun, count == 1 ? "" : "s");
	return s;
}

static const char *error_text(const struct weir_trace_record *record)
{
	return record->rc == INT_MIN ? "unknown error" : weir_strerror(record->rc);
}

static void print_post(FILE *out, const struct weir_trace_record *record)
{
	if (record->reqs > record->wrs)
		fprintf(out, "%s merged into ", several(record->reqs, "request").text);
	fprintf(out, "%s posted on channel %u%s, %s", several(record->wrs, "work request").text,
		record->channel, record->wrs > 1 ? " with one doorbell" : "",
		size_format(record->bytes).text);
}

static void print_wait(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "%s must wait, %s: the window is full", several(record->reqs, "request").text,
		size_format(record->bytes).text);
}

static void print_limit(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "the window's limits are now %s and %u work requests, adapted to completions",
		size_format(record->bytes).text, record->wrs);
}

const char *trace_text_verbs(const struct weir_trace_record *record)
{
	return ibv_wc_status_str((enum ibv_wc_status)record->verbs);
}

static void print_fail(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "a work request failed on channel %u, %s, %s: %s", record->channel,
		several(record->reqs, "request").text, size_format(record->bytes).text,
		error_text(record));
	if (record->verbs)
		fprintf(out, "; the device says: %s", trace_text_verbs(record));
}

static void print_repeat(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "a request will be posted again, %s: %s", size_format(record->bytes).text,
		error_text(record));
}

static void print_late(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "a request passed its deadline, %s, with %s in flight",
		size_format(record->bytes).text, several(record->wrs, "work request").text);
}

static void print_arm(FILE *out, const struct weir_trace_record *record)
{
	if (record->wrs)
		fprintf(out, "channel %u's completions raise an event: no thread polls for %s",
			record->channel, several(record->wrs, "work request").text);
	else
		fprintf(out, "messages raise an event: no thread polls for messages");
}

static void print_sleep(FILE *out, const struct weir_trace_record *record)
{
	fputs(record->reqs ? "a caller sleeps until its request completes" :
			     "the session's thread sleeps: polling no longer pays",
	      out);
}

static void print_wake(FILE *out, const struct weir_trace_record *record)
{
	if (record->reqs)
		fputs("a caller is awake", out);
	else if (record->wrs)
		fprintf(out, "the session's thread is awake: %s",
			several(record->wrs, "completion event").text);
	else
		fputs("the session's thread is awake: a timer, a connection, or another thread",
		      out);
}

static void print_copy(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "%s on unregistered memory, %s: copied", several(record->reqs, "request").text,
		size_format(record->bytes).text);
}

static void print_register(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "%s on unregistered memory, %s: registered for the request",
		several(record->reqs, "request").text, size_format(record->bytes).text);
}

static void print_stray(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out,
		"a failed request on channel %u may still arrive, %s: overlapping requests wait "
		"until that is ruled out",
		record->channel, size_format(record->bytes).text);
}

static void print_up(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "channel %u is up", record->channel);
}

static void print_break(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "channel %u is broken: its requests in flight have ended", record->channel);
}

static void print_down(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "channel %u is down permanently", record->channel);
}

static void print_vain(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out,
		"channel %u is reset, with %s: no answer, and other sessions wait for the window",
		record->channel, several(record->wrs, "work request").text);
}

static void print_unknown(FILE *out, const struct weir_trace_record *record)
{
	fprintf(out, "unknown kind %u, from a newer version", record->event);
}

static const struct trace_kind {
	const char *word;
	void (*print)(FILE *out, const struct weir_trace_record *record);
} kinds[] = {
	[0] = { "unknown", print_unknown },
	[WEIR_TRACE_POST] = { "post", print_post },
	[WEIR_TRACE_WAIT] = { "wait", print_wait },
	[WEIR_TRACE_LIMIT] = { "limit", print_limit },
	[WEIR_TRACE_FAIL] = { "fail", print_fail },
	[WEIR_TRACE_REPEAT] = { "repeat", print_repeat },
	[WEIR_TRACE_LATE] = { "late", print_late },
	[WEIR_TRACE_ARM] = { "arm", print_arm },
	[WEIR_TRACE_SLEEP] = { "sleep", print_sleep },
	[WEIR_TRACE_WAKE] = { "wake", print_wake },
	[WEIR_TRACE_COPY] = { "copy", print_copy },
	[WEIR_TRACE_REGISTER] = { "register", print_register },
	[WEIR_TRACE_IN_DOUBT] = { "stray", print_stray },
	[WEIR_TRACE_UP] = { "up", print_up },
	[WEIR_TRACE_BREAK] = { "break", print_break },
	[WEIR_TRACE_DOWN] = { "down", print_down },
	[WEIR_TRACE_STALL] = { "vain", print_vain },
};

static const struct trace_kind *kind_of(const struct weir_trace_record *record)
{
	return &kinds[record->event < sizeof(kinds) / sizeof(kinds[0]) ? record->event : 0];
}

const char *trace_text_kind(const struct weir_trace_record *record)
{
	return kind_of(record)->word;
}

void trace_text_print(FILE *out, const struct weir_trace_record *record)
{
	kind_of(record)->print(out, record);
}
