/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/log/log_fields.h"

#include "apps/common/json.h"

#include <ctype.h>
#include <string.h>
#include <syslog.h>

/* Length of the event's name, which ends before the first word with a '=' or before the reason. */
static size_t event_length(const char *line)
{
	size_t end = strcspn(line, "=");
	const char *reason = strstr(line, ": ");

	while (line[end] && end && line[end] != ' ')
		end--;
	return reason && (size_t)(reason - line) < end ? (size_t)(reason - line) : end;
}

static char printable(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
}

/* Writes a quoted string. Replaces control characters. */
static void put_quoted(FILE *out, const char *text, size_t length)
{
	fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '"' || text[i] == '\\')
			fputc('\\', out);
		fputc(printable(text[i]), out);
	}
	fputc('"', out);
}

void log_fields_text(const char *line, char *out, size_t size)
{
	size_t event = event_length(line);
	const char *pairs = line + event;
	const char *reason = strstr(pairs, ": ");
	size_t pairs_length = reason ? (size_t)(reason - pairs) : strlen(pairs);
	FILE *file = fmemopen(out, size, "w");

	if (!file)
		return;
	fputs("msg=", file);
	if (memchr(line, ' ', event))
		put_quoted(file, line, event);
	else
		fwrite(line, 1, event, file);
	for (size_t i = 0; i < pairs_length; i++)
		fputc(printable(pairs[i]), file);
	if (reason) {
		fputs(" reason=", file);
		put_quoted(file, reason + 2, strlen(reason + 2));
	}
	fputc(0, file);
	fclose(file);
	out[size - 1] = 0;
}

/* Cuts "KEY=VALUE KEY=VALUE". A space ends a value if a word with '=' follows. */
static void parse_pairs(struct log_fields *fields, char *at)
{
	while (*at == ' ' && fields->nr_pairs < LOG_PAIRS_MAX) {
		char *equals = strchr(at, '='), *next;

		if (!equals)
			return;
		*at = '\0';
		*equals = '\0';
		fields->pair[fields->nr_pairs].key = at + 1;
		fields->pair[fields->nr_pairs++].value = equals + 1;
		next = strchr(equals + 1, '=');
		if (!next)
			return;
		while (next > equals && *next != ' ')
			next--;
		at = next;
	}
}

void log_fields_parse(struct log_fields *fields, const char *line)
{
	size_t event = event_length(line), length;
	char *text = fields->text, *reason;

	*fields = (struct log_fields){ .event = fields->text };
	length = strnlen(line, sizeof(fields->text) - 1);
	for (size_t i = 0; i < length; i++)
		text[i] = printable(line[i]);
	text[length] = '\0';
	if (event >= length)
		return;
	reason = strstr(text + event, ": ");
	if (reason) {
		*reason = '\0';
		fields->reason = reason + 2;
	}
	parse_pairs(fields, text + event);
}

void log_fields_json(const struct log_entry *entry, const char *line, FILE *out)
{
	struct log_fields fields;
	struct json json;

	log_fields_parse(&fields, line);
	json_begin_line(&json, out);
	json_string(&json, "ts", entry->time);
	json_string(&json, "level", log_level_names[entry->level]);
	json_string(&json, "msg", fields.event);
	for (unsigned int i = 0; i < fields.nr_pairs; i++)
		json_string(&json, fields.pair[i].key, fields.pair[i].value);
	if (fields.reason)
		json_string(&json, "reason", fields.reason);
	json_end(&json);
}

/* A name of the journal's: capitals, digits and underscores. */
static void put_name(FILE *out, const char *key)
{
	fputs("WEIR_", out);
	for (; *key; key++)
		fputc(isalnum((unsigned char)*key) ? toupper((unsigned char)*key) : '_', out);
}

void log_fields_journal(const struct log_entry *entry, const char *line, const char *identifier,
			FILE *out)
{
	static const int priorities[] = {
		[WEIR_LOG_ERROR] = LOG_ERR,
		[WEIR_LOG_WARNING] = LOG_WARNING,
		[WEIR_LOG_INFO] = LOG_INFO,
		[WEIR_LOG_DEBUG] = LOG_DEBUG,
	};
	struct log_fields fields;

	log_fields_parse(&fields, line);
	fprintf(out, "MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nWEIR_EVENT=%s\n", entry->text,
		priorities[entry->level], identifier, fields.event);
	for (unsigned int i = 0; i < fields.nr_pairs; i++) {
		put_name(out, fields.pair[i].key);
		fprintf(out, "=%s\n", fields.pair[i].value);
	}
	if (fields.reason)
		fprintf(out, "WEIR_REASON=%s\n", fields.reason);
}
