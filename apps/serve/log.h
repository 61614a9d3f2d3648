/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor's log: lines of key=value on standard error (logfmt), such as
 * ts=2026-01-31T12:00:00.000Z level=info msg=joined peer=1 client=10.0.0.2:4711
 */
#ifndef WEIR_APPS_SERVE_LOG_H
#define WEIR_APPS_SERVE_LOG_H

#include <weir/donor.h>

#define LOG_LEVELS (WEIR_LOG_DEBUG + 1)

/* "error", "warning", "info" and "debug", by level. */
extern const char *const log_level_names[LOG_LEVELS];

void log_set_level(enum weir_log_level level);

/**
 * log_line() - write a line
 * @level: dropped if above the level set
 * @line: "EVENT[ KEY=VALUE...][: REASON]"; EVENT is one or more words without '='
 *
 * Context: any thread.
 */
void log_line(enum weir_log_level level, const char *line);
void log_event(enum weir_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Formats like log_line(), without time and level. For tests. */
void log_format(const char *line, char *out, size_t size);

#endif
