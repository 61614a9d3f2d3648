/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir top: donors, sessions and tenants of this host, and the donors of a pool, with rates. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/stop.h"
#include "apps/inspect/memfd_scan.h"
#include "apps/top/view.h"
#include "lib/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: weir top [OPTION...]\n"
	"Shows what weir does on this host, again and again: donors, sessions, and tenants of\n"
	"weir share. Rates and percentiles are of the last interval. Of a tenant: bytes sent and\n"
	"received, mean wait for a turn, and the share of all bytes sent, beside the share due\n"
	"by weight if all goes to one host. Root sees all processes, other users their own.\n";

static const char notes[] =
	"Keys: q quits, Tab chooses a part, s sorts it by its next column, r reverses, / filters\n"
	"(Enter keeps, Escape removes), p pauses.\n";

struct top {
	const char *cmd, *socket, *pool, *sort, *filter;
	bool flows, once, json, containers;
	double interval_s;
	struct top_sources sources;
	struct top_view view;
	struct top_screen *screen; /* NULL: print */
	struct top_sample old, new;
	bool is_paused;
};

static void print_line(void *arg, enum top_line line, const char *text)
{
	(void)arg;
	(void)line;
	puts(text);
}

static void print_page(const struct top *top, const struct top_page *page)
{
	bool is_first = true;

	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		if (!page->section[part].nr_rows)
			continue;
		if (!is_first)
			putchar('\n');
		is_first = false;
		top_page_lines(page, &top->view, part, TOP_LINE_MAX, SIZE_MAX, print_line, NULL);
	}
	if (*page->pool_error && !top->once)
		puts(page->pool_error);
	else if (is_first)
		puts("no donor, session or tenant that you may see");
}

static void print_json(const struct top *top, const struct top_page *page)
{
	struct json json;

	json_begin_line(&json, stdout);
	json_double(&json, "seconds", page->seconds);
	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		if ((part == TOP_FLOWS && !top->flows) || (part == TOP_POOL && !top->pool))
			continue;
		top_section_json(&page->section[part], &json);
	}
	if (*page->pool_error)
		json_string(&json, "pool_error", page->pool_error);
	json_end(&json);
}

/* Return: an exit status. */
static int show(struct top *top)
{
	int status = EXIT_OK;
	struct top_page page;

	if (top_page_make(&page, &top->view, &top->old, &top->new))
		return failure(top->cmd, "out of memory");
	if (top->screen)
		top_screen_show(top->screen, &page, &top->view, top->is_paused);
	else if (top->json)
		print_json(top, &page);
	else
		print_page(top, &page);
	fflush(stdout);
	if (top->once && *page.pool_error)
		status = failure(top->cmd, "%s", page.pool_error);
	top_page_fini(&page);
	return status;
}

/* Until the next sample is due, or the end. Return: whether to go on. */
static bool wait_for_keys(struct top *top)
{
	uint64_t due_ns = weir_after_ns(weir_now_ns(), (uint64_t)(top->interval_s * 1e9)), now_ns;

	while (!stop_requested() && ((now_ns = weir_now_ns()) < due_ns || top->is_paused)) {
		int wait_ms = now_ns < due_ns ? (int)((due_ns - now_ns) / 1000000 + 1) : 1000;
		enum top_key key = top_screen_key(top->screen, &top->view, wait_ms);

		if (key == TOP_KEY_QUIT)
			return false;
		if (key == TOP_KEY_PAUSE)
			top->is_paused = !top->is_paused;
		if (key != TOP_KEY_NONE && top->new.at_ns &&show(top))
			return false;
	}
	return !stop_requested();
}

static bool wait_for_interval(struct top *top)
{
	if (top->screen)
		return wait_for_keys(top);
	stop_or_sleep(top->interval_s);
	return !stop_requested() && !ferror(stdout);
}

/* @error: of a sample that cannot be taken. */
static int refresh_until_stopped(struct top *top, struct weir_error *error)
{
	struct top_sample next;
	int status = EXIT_OK;

	if (top_sample_take(&top->old, &top->sources, error))
		return EXIT_FAILED;
	while (!status && wait_for_interval(top)) {
		if (top_sample_take(&next, &top->sources, error))
			return EXIT_FAILED;
		if (top->new.at_ns) {
			top_sample_fini(&top->old);
			top->old = top->new;
		}
		top->new = next;
		status = show(top);
		if (top->once)
			break;
	}
	return status;
}

static int run(struct top *top)
{
	struct weir_error error = { "" };
	int status;

	stop_on_signals();
	if (!top->once && !top->json && !top_screen_open(&top->screen))
		top->screen = NULL;
	status = refresh_until_stopped(top, &error);
	/* The screen goes before a message comes. */
	if (top->screen)
		top_screen_close(top->screen);
	if (*error.text)
		failure(top->cmd, "%s", error.text);
	top_sample_fini(&top->old);
	top_sample_fini(&top->new);
	weir_pool_client_close(top->sources.pool);
	return status;
}

static const struct cmdline_option top_options[] = {
	{ "sort", 0, "COLUMN",
	  "sort by this column, such as p99, in each part that has it;\n"
	  "numbers greatest first",
	  CMDLINE_TEXT(struct top, sort), .print_names = top_view_print_columns },
	{ "filter", 0, "TEXT", "only rows that contain it, such as a process or an address",
	  CMDLINE_TEXT(struct top, filter) },
	{ "pool", 0, "POOL", "also show the donors of this pool; see 'weir pool --help'",
	  CMDLINE_TEXT(struct top, pool) },
	{ "socket", 's', "PATH",
	  "of weir share; default $WEIR_SHARE, or else\n" WEIR_MUX_IPC_SOCKET,
	  CMDLINE_TEXT(struct top, socket) },
	MEMFD_SCAN_OPTION(struct top, containers),
	{ "flows", 'f', NULL, "also show each tenant's connections",
	  CMDLINE_FLAG(struct top, flows) },
	{ "interval", 'i', "SECONDS", "between updates; default 1",
	  CMDLINE_SECONDS(struct top, interval_s, 0.01, 86400) },
	{ "once", '1', NULL, "show one interval and exit", CMDLINE_FLAG(struct top, once) },
	{ "json", 'j', NULL, "print a JSON line for each interval",
	  CMDLINE_FLAG(struct top, json) },
	{ NULL },
};

static const struct cmdline top_line = {
	.usage = usage,
	.options = top_options,
	.notes = notes,
};

int cmd_top(int argc, char **argv)
{
	const char *socket = getenv("WEIR_SHARE");
	struct top top = { .cmd = argv[0], .interval_s = 1 };
	int status = cmdline_parse(&top_line, argc, argv, &top);
	struct weir_error error;

	if (status != CMDLINE_PARSED)
		return status;
	memfd_scan_include_containers(top.containers);
	top_view_init(&top.view);
	if (top.sort && !top_view_sort(&top.view, top.sort))
		return usage_error(argv[0], "--sort %s: no part has this column", top.sort);
	snprintf(top.view.filter, sizeof(top.view.filter), "%s", top.filter ? top.filter : "");
	socket = top.socket ? top.socket : socket;
	top.sources.must_share = socket && *socket;
	top.sources.socket = top.sources.must_share ? socket : WEIR_MUX_IPC_SOCKET;
	top.sources.flows = top.flows;
	if (top.pool && weir_pool_client_open(top.pool, &top.sources.pool, &error))
		return failure(argv[0], "%s", error.text);
	return run(&top);
}
