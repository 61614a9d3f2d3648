/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a line of the log, and its forms. */
#ifndef WEIR_APPS_LOG_LOG_FIELDS_H
#define WEIR_APPS_LOG_LOG_FIELDS_H

#include "apps/log/log.h"

#include <stdio.h>

#define LOG_PAIRS_MAX 16

/**
 * struct log_fields - a line's parts, printable; they lie in @text
 * @reason: NULL: none
 */
struct log_fields {
	const char *event, *reason;
	struct {
		const char *key, *value;
	} pair[LOG_PAIRS_MAX];
	unsigned int nr_pairs;
	char text[LOG_TEXT_MAX];
};

/* Cuts a line as log_line() takes it. A word without '=' belongs to the value before it. */
void log_fields_parse(struct log_fields *fields, const char *line);

/* msg=EVENT KEY=VALUE... reason=REASON, in logfmt; @out: @size bytes. */
void log_fields_text(const char *line, char *out, size_t size);

/* An object on a line, with its newline. */
void log_fields_json(const struct log_entry *entry, const char *line, FILE *out);

/* A datagram for the journal. @identifier: such as "weir-serve". */
void log_fields_journal(const struct log_entry *entry, const char *line, const char *identifier,
			FILE *out);

#endif
