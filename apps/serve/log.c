/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *const log_level_names[LOG_LEVELS] = {
	[WEIR_LOG_ERROR] = "error",
	[WEIR_LOG_WARNING] = "warning",
	[WEIR_LOG_INFO] = "info",
	[WEIR_LOG_DEBUG] = "debug",
};

/* Changes when the configuration is read again, while other threads log. */
static atomic_int level_max = WEIR_LOG_INFO;

void log_set_level(enum weir_log_level level)
{
	atomic_store(&level_max, level);
}

/* Length of the event's name, which ends before the first word with a '=' or before the reason. */
static size_t event_length(const char *line)
{
	size_t end = strcspn(line, "=");
	const char *reason = strstr(line, ": ");

	while (line[end] && end && line[end] != ' ')
		end--;
	return reason && (size_t)(reason - line) < end ? (size_t)(reason - line) : end;
}

/* Writes a quoted string. Replaces control characters. */
static void put_quoted(FILE *out, const char *text, size_t length)
{
	fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = text[i];

		if (c == '"' || c == '\\')
			fputc('\\', out);
		fputc(c < ' ' || c == 0x7f ? '?' : c, out);
	}
	fputc('"', out);
}

void log_format(const char *line, char *out, size_t size)
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
	fwrite(pairs, 1, pairs_length, file);
	if (reason) {
		fputs(" reason=", file);
		put_quoted(file, reason + 2, strlen(reason + 2));
	}
	fputc(0, file);
	fclose(file);
	out[size - 1] = 0;
}

void log_line(enum weir_log_level level, const char *line)
{
	struct timespec now;
	struct tm tm;
	char ts[32], text[640];

	if ((int)level > atomic_load(&level_max))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(ts, sizeof(ts), "%Y-%m-%dT%H:%M:%S", &tm);
	log_format(line, text, sizeof(text));
	fprintf(stderr, "ts=%s.%03ldZ level=%s %s\n", ts, now.tv_nsec / 1000000,
		log_level_names[level], text);
}

void log_event(enum weir_log_level level, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_line(level, line);
}
