/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reports a measurement as text, JSON or SVG. */
#ifndef WEIR_APPS_PERF_REPORT_H
#define WEIR_APPS_PERF_REPORT_H

#include "apps/perf/options.h"
#include "apps/perf/run.h"

void report_text(const struct perf_options *options, const struct perf_result *result);
void report_json(const struct perf_options *options, const struct perf_result *result);

/* Writes options->plot_path. Return: 0, or an exit status after a message. */
int plot_write(const struct perf_options *options, const struct perf_result *result);

/* Formats as "write, 4.0 KiB, sequential, 8 threads of depth 32". */
void report_title(const struct perf_options *options, char *text, size_t room);

#endif
