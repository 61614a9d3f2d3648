/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log of a service: one line a fact, such as "joined peer=1 client=10.0.0.2:4711".
 *
 *	text	logfmt: ts=2026-01-31T12:00:00.000Z level=info msg=joined peer=1 client=...
 *	json	an object a line, with the same names
 *	journal	fields of systemd's journal: PRIORITY, WEIR_EVENT, WEIR_PEER, WEIR_CLIENT
 *
 * A warning or an error has an id, such as id=W101, which docs/reference/errors.md explains.
 */
#ifndef WEIR_APPS_LOG_LOG_H
#define WEIR_APPS_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/donor.h>

#include "lib/base/rate_limit.h"

#define LOG_LEVELS (WEIR_LOG_DEBUG + 1)
#define LOG_TEXT_MAX 1280 /* bytes of a line, NUL included */
#define LOG_TAIL_MAX 128 /* lines kept for log_tail() */

enum log_format { LOG_AUTO, LOG_TEXT, LOG_JSON, LOG_JOURNAL, LOG_FORMATS };

/* "error", "warning", "info" and "debug", by level. */
extern const char *const log_level_names[LOG_LEVELS];
/* "text", "json" and "journal"; "" for LOG_AUTO. */
extern const char *const log_format_names[LOG_FORMATS];

/* The option of a command that logs; @member is an enum log_format. */
#define LOG_OPTION(type, member)                                                          \
	{                                                                                 \
		"log", 0, "FORMAT",                                                       \
			"format of the log: text, json or journal; default: journal if\n" \
			"standard error is systemd's journal, else text",                 \
			CMDLINE_CHOICE(type, member, log_format_names)                    \
	}

/**
 * log_begin() - choose how to log
 * @cmd: argv[0] of the command, such as "weir serve"; kept
 * @format: LOG_AUTO: journal if standard error is the journal, else text
 *
 * Without it, the log is text. In other formats, failure() and cmd_say() of cmd.h log, too.
 */
void log_begin(const char *cmd, enum log_format format);

/* Text and JSON go to syslog(3) from now on: the process gives up standard error. */
void log_to_syslog(void);

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

/**
 * struct log_source - lines that have one limit, such as those of a pool's threads
 * @name: for the line about suppressed lines
 */
struct log_source {
	const char *name;
	struct weir_rate_limit limit;
};

/* log_line(), within the rate of a source; those of level debug do not count. */
void log_limited(struct log_source *source, enum weir_log_level level, const char *line);

/**
 * struct log_entry - a line that was written
 * @number: from 1 on
 * @time: as in the line
 * @text: the line from msg= on
 */
struct log_entry {
	uint64_t number;
	enum weir_log_level level;
	char time[32];
	char text[LOG_TEXT_MAX];
};

/* Copies the last lines, oldest first. Context: any thread. Return: their number. */
size_t log_tail(struct log_entry entries[LOG_TAIL_MAX]);

#endif
