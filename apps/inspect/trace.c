/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir trace: prints the decisions of a running program's sessions, and the reasons.
 *
 * The traced program is not involved: this command maps the memory that contains its trace. To
 * follow a trace, the command polls it, often enough for usual rates, and reports records that it
 * missed.
 */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/inspect/session_list.h"
#include "apps/common/json.h"
#include "apps/common/pid.h"
#include "apps/common/stop.h"
#include "apps/inspect/trace_text.h"
#include "lib/base/clock.h"

#include <errno.h>

#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LOOK_MS = 10, /* between two polls of the traces */
	FIND_EVERY = 25, /* polls between two searches for new sessions */
};

static const char usage[] =
	"Usage: weir trace [OPTION...] PID\n"
	"Prints decisions of a running program's sessions, and why: posted, merged, waited,\n"
	"failed, slept. The last 2048 decisions of each session; weir stat lists the programs.\n";

/**
 * struct trace_run - state of a run
 * @cmd: argv[0]
 * @find: the sessions
 * @seen: per session, the number of the last record printed
 * @introduced: number of sessions already announced
 * @begin_ns: wall-clock time of CLOCK_MONOTONIC's zero
 * @last_read: the last read
 */
struct trace_run {
	const char *cmd;
	pid_t pid;
	bool follow, json;
	struct session_list find;
	uint64_t seen[SESSION_LIST_MAX];
	size_t introduced;
	uint64_t begin_ns;
	struct stats_view_trace last_read;
};

static uint64_t wall_begin_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec - weir_now_ns();
}

struct when {
	char text[48];
};

/* Formats a time; any value of @at_ns is valid. */
static struct when when(const struct trace_run *t, uint64_t at_ns, bool utc)
{
	uint64_t ns = t->begin_ns + at_ns;
	time_t seconds = (time_t)(ns / WEIR_NS_PER_S);
	unsigned int us = (unsigned int)(ns % WEIR_NS_PER_S / 1000);
	struct when w = { "?" };
	struct tm tm;
	size_t used;

	if (!(utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
		return w;
	used = strftime(w.text, sizeof(w.text) - 12, utc ? "%FT%T" : "%T", &tm);
	snprintf(w.text + used, sizeof(w.text) - used, ".%06u%s", us, utc ? "Z" : "");
	return w;
}

static void print_session(const struct trace_run *t, size_t i)
{
	const struct stats_view *view = &t->find.found[i].view;

	printf("session %zu: with %s over %s, since %s\n", i + 1, view->peer, view->device,
	       when(t, view->opened_ns, false).text);
}

static void print_record_text(const struct trace_run *t, size_t i,
			      const struct weir_trace_record *record)
{
	printf("%zu %s %-8s  ", i + 1, when(t, record->at_ns, false).text, trace_text_kind(record));
	trace_text_print(stdout, record);
	putchar('\n');
}

static void print_record_json(const struct trace_run *t, size_t i,
			      const struct weir_trace_record *record)
{
	struct json json;
	char *text = NULL;
	size_t length;
	FILE *words = open_memstream(&text, &length);

	if (!words)
		return;
	trace_text_print(words, record);
	fclose(words);
	json_begin_line(&json, stdout);
	json_uint(&json, "session", i + 1);
	json_string(&json, "donor", t->find.found[i].view.peer);
	json_string(&json, "time", when(t, record->at_ns, true).text);
	json_uint(&json, "at_ns", record->at_ns);
	json_string(&json, "what", trace_text_kind(record));
	json_uint(&json, "channel", record->channel);
	json_uint(&json, "work_requests", record->wrs);
	json_uint(&json, "requests", record->reqs);
	json_uint(&json, "bytes", record->bytes);
	json_int(&json, "status", record->rc);
	if (record->verbs)
		json_string(&json, "verbs_status", trace_text_verbs(record));
	json_string(&json, "text", text);
	json_end(&json);
	free(text);
}

static void print_lost(const struct trace_run *t, size_t i)
{
	struct json json;

	if (!t->json) {
		printf("%zu ... %" PRIu64 " more, lost: the program was faster than this trace\n",
		       i + 1, t->last_read.lost);
		return;
	}
	json_begin_line(&json, stdout);
	json_uint(&json, "session", i + 1);
	json_string(&json, "what", "lost");
	json_uint(&json, "records", t->last_read.lost);
	json_end(&json);
}

/* Prints all new records. */
static void print_new_records(struct trace_run *t)
{
	for (; t->introduced < t->find.count; t->introduced++)
		if (!t->json)
			print_session(t, t->introduced);
	for (size_t i = 0; i < t->find.count; i++) {
		stats_view_trace(&t->find.found[i].view, t->seen[i], &t->last_read);
		t->seen[i] = t->last_read.newest;
		if (t->last_read.lost)
			print_lost(t, i);
		for (uint32_t k = 0; k < t->last_read.count; k++)
			(t->json ? print_record_json : print_record_text)(t, i,
									  &t->last_read.record[k]);
	}
}

/*
 * Polls until the process ends, the user interrupts, or standard output fails. The traces outlive
 * the process, so the last decisions are printed, too.
 */
static int follow(struct trace_run *t, int process)
{
	struct pollfd end = { .fd = process, .events = POLLIN };
	unsigned int looks = 0;
	bool ended = false;

	while (!ended && !stop_requested() && !ferror(stdout)) {
		ended = poll(&end, 1, LOOK_MS) > 0;
		if (!ended && ++looks % FIND_EVERY == 0)
			session_list_add_process(&t->find, t->pid);
		print_new_records(t);
		fflush(stdout);
	}
	if (ended)
		fprintf(stderr, "%s: %d has ended\n", t->cmd, t->pid);
	return EXIT_OK;
}

static int begin(struct trace_run *t)
{
	int rc = session_list_add_process(&t->find, t->pid);

	if (rc)
		return session_list_failure(t->cmd, t->pid, rc);
	if (t->find.count)
		return EXIT_OK;
	if (t->find.others || !t->follow)
		return session_list_empty_failure(&t->find, t->cmd, t->pid);
	fprintf(stderr, "%s: %d has no session yet: waiting for one\n", t->cmd, t->pid);
	return EXIT_OK;
}

static int trace(struct trace_run *t)
{
	int process = (int)syscall(SYS_pidfd_open, t->pid, 0);
	int status;

	if (process < 0)
		return session_list_failure(t->cmd, t->pid, -errno);
	status = begin(t);
	if (!status) {
		print_new_records(t);
		fflush(stdout);
	}
	if (!status && t->follow)
		status = follow(t, process);
	session_list_free(&t->find);
	close(process);
	return status;
}

static const struct cmdline_option trace_options[] = {
	{ "follow", 'f', NULL, "continue with new decisions, until the program ends",
	  CMDLINE_FLAG(struct trace_run, follow) },
	{ "json", 'j', NULL, "for programs: an object per line",
	  CMDLINE_FLAG(struct trace_run, json) },
	{ NULL },
};

static const struct cmdline trace_line = {
	.usage = usage,
	.options = trace_options,
	.arguments = "a PID; weir stat lists processes with sessions",
	.arguments_min = 1,
	.arguments_max = 1,
};

int cmd_trace(int argc, char **argv)
{
	static struct trace_run t;
	int status = cmdline_parse(&trace_line, argc, argv, &t);

	if (status != CMDLINE_PARSED)
		return status;
	t.cmd = argv[0];
	t.begin_ns = wall_begin_ns();
	if (!pid_parse(argv[optind], &t.pid))
		return usage_error(argv[0], "'%s': not a process id", argv[optind]);
	if (t.follow)
		stop_on_signals();
	return trace(&t);
}
