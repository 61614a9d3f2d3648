/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/doctor/report.h"
#include "apps/common/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const verdict_names[VERDICTS] = { "ok", "warn", "fail" };
static const char *const verdict_colours[VERDICTS] = {
	"\033[32m", /* green */
	"\033[33m", /* yellow */
	"\033[1;31m", /* bold red */
};

void report_add(struct report *report, const char *check, enum verdict verdict, const char *format,
		...)
{
	struct finding *finding;
	va_list args;

	if (report->count == FINDINGS_MAX)
		abort();
	finding = &report->findings[report->count++];
	finding->check = check;
	finding->verdict = verdict;
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
}

void report_remedy(struct report *report, const char *format, ...)
{
	struct finding *finding = &report->findings[report->count - 1];
	va_list args;

	va_start(args, format);
	vsnprintf(finding->remedy, sizeof(finding->remedy), format, args);
	va_end(args);
}

unsigned int report_count(const struct report *report, enum verdict verdict)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < report->count; i++)
		count += report->findings[i].verdict == verdict;
	return count;
}

/* https://no-color.org: a set NO_COLOR means no colours, whatever its value. */
static bool is_coloured(void)
{
	const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && (!off || !*off) && terminal && strcmp(terminal, "dumb");
}

void report_measure(struct report *report, const char *name, double value)
{
	if (report->nr_measures == MEASURES_MAX)
		abort();
	report->measures[report->nr_measures++] = (struct measure){ name, value };
}

void report_progress(struct report *report, const char *now)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s ...", now);
	report->shows_progress = true;
}

static void end_progress(struct report *report)
{
	if (report->shows_progress)
		fputs("\r\033[K", stderr);
	report->shows_progress = false;
}

static void print_finding(const struct finding *finding, bool coloured)
{
	printf("%s%-4s%s  %-14s  %s\n", coloured ? verdict_colours[finding->verdict] : "",
	       verdict_names[finding->verdict], coloured ? "\033[0m" : "", finding->check,
	       finding->text);
	if (*finding->remedy)
		printf("%22s%s\n", "-> ", finding->remedy);
}

void report_print_new(struct report *report)
{
	bool coloured = is_coloured();

	end_progress(report);
	while (report->printed < report->count)
		print_finding(&report->findings[report->printed++], coloured);
	fflush(stdout);
}

void report_print(struct report *report)
{
	report_print_new(report);
	printf("\n%u ok, %u warnings, %u broken\n", report_count(report, VERDICT_OK),
	       report_count(report, VERDICT_WARN), report_count(report, VERDICT_FAIL));
}

void report_print_json(struct report *report)
{
	struct json json;

	end_progress(report);
	json_begin(&json, stdout);
	json_boolean(&json, "ok", !report_count(report, VERDICT_FAIL));
	json_open_array(&json, "checks");
	for (unsigned int i = 0; i < report->count; i++) {
		const struct finding *finding = &report->findings[i];

		json_open_object(&json, NULL);
		json_string(&json, "check", finding->check);
		json_string(&json, "verdict", verdict_names[finding->verdict]);
		json_string(&json, "text", finding->text);
		if (*finding->remedy)
			json_string(&json, "remedy", finding->remedy);
		json_close(&json);
	}
	json_close(&json);
	if (report->nr_measures)
		json_open_object(&json, "measured");
	for (unsigned int i = 0; i < report->nr_measures; i++)
		json_double(&json, report->measures[i].name, report->measures[i].value);
	if (report->nr_measures)
		json_close(&json);
	json_end(&json);
}
