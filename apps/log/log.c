/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/log/log.h"

#include "apps/common/cmd.h"
#include "apps/log/log_fields.h"
#include "lib/base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL_PATH "/run/systemd/journal/socket"

const char *const log_level_names[LOG_LEVELS] = {
	[WEIR_LOG_ERROR] = "error",
	[WEIR_LOG_WARNING] = "warning",
	[WEIR_LOG_INFO] = "info",
	[WEIR_LOG_DEBUG] = "debug",
};

const char *const log_format_names[LOG_FORMATS] = {
	[LOG_AUTO] = "",
	[LOG_TEXT] = "text",
	[LOG_JSON] = "json",
	[LOG_JOURNAL] = "journal",
};

/* Changes when the configuration is read again, while other threads log. */
static atomic_int level_max = WEIR_LOG_INFO;

/* Set before the process has other threads. */
static enum log_format format = LOG_TEXT;
static bool is_to_syslog;
static int journal = -1;
static char identifier[32] = "weir"; /* "weir-serve" */

void log_set_level(enum weir_log_level level)
{
	atomic_store(&level_max, level);
}

/* The last lines; @tail_count: of all written so far. */
static pthread_mutex_t tail_lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_entry tail[LOG_TAIL_MAX];
static uint64_t tail_count;

static void tail_add(const struct log_entry *entry)
{
	pthread_mutex_lock(&tail_lock);
	tail[tail_count % LOG_TAIL_MAX] = *entry;
	tail[tail_count % LOG_TAIL_MAX].number = tail_count + 1;
	tail_count++;
	pthread_mutex_unlock(&tail_lock);
}

size_t log_tail(struct log_entry entries[LOG_TAIL_MAX])
{
	size_t count;

	pthread_mutex_lock(&tail_lock);
	count = tail_count < LOG_TAIL_MAX ? tail_count : LOG_TAIL_MAX;
	for (size_t i = 0; i < count; i++)
		entries[i] = tail[(tail_count - count + i) % LOG_TAIL_MAX];
	pthread_mutex_unlock(&tail_lock);
	return count;
}

/* Whether standard error is the stream that systemd has connected to its journal. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char own[48];

	if (!stream || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, own);
}

static bool open_journal(void)
{
	const struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = JOURNAL_PATH };

	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (journal < 0)
		return false;
	if (!connect(journal, (const struct sockaddr *)&at, sizeof(at)))
		return true;
	close(journal);
	journal = -1;
	return false;
}

static void on_report(enum cmd_report kind, const char *text)
{
	if (kind == CMD_REPORT_FAILURE)
		log_event(WEIR_LOG_ERROR, "failed id=W001: %s", text);
	else
		log_event(WEIR_LOG_INFO, "said: %s", text);
}

void log_begin(const char *cmd, enum log_format wanted)
{
	char *space;

	snprintf(identifier, sizeof(identifier), "%s", cmd);
	while ((space = strchr(identifier, ' ')))
		*space = '-';
	format = wanted != LOG_AUTO ? wanted : is_journal() ? LOG_JOURNAL : LOG_TEXT;
	if (format == LOG_JOURNAL && !open_journal()) {
		format = LOG_TEXT;
		log_event(WEIR_LOG_WARNING, "no journal id=W002: the log is text");
	}
	cmd_report_by(format == LOG_TEXT ? NULL : on_report);
}

void log_to_syslog(void)
{
	openlog(identifier, LOG_PID, LOG_DAEMON);
	is_to_syslog = true;
}

static void to_syslog(const struct log_entry *entry, const char *text)
{
	static const int priorities[] = {
		[WEIR_LOG_ERROR] = LOG_ERR,
		[WEIR_LOG_WARNING] = LOG_WARNING,
		[WEIR_LOG_INFO] = LOG_INFO,
		[WEIR_LOG_DEBUG] = LOG_DEBUG,
	};

	syslog(priorities[entry->level], "%s", text);
}

/* In one piece, because other threads log, too. */
static void write_json(const struct log_entry *entry, const char *line)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return;
	log_fields_json(entry, line, out);
	if (!fclose(out)) {
		if (is_to_syslog)
			to_syslog(entry, text);
		else
			fputs(text, stderr);
	}
	free(text);
}

/* Return: false if the journal does not take the line. */
static bool write_journal(const struct log_entry *entry, const char *line)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	bool is_taken = false;

	if (!out)
		return false;
	log_fields_journal(entry, line, identifier, out);
	if (!fclose(out))
		is_taken = send(journal, text, length, MSG_NOSIGNAL) == (ssize_t)length;
	free(text);
	return is_taken;
}

void log_line(enum weir_log_level level, const char *line)
{
	struct log_entry entry = { .level = level };
	struct timespec now;
	struct tm tm;
	size_t used;

	if ((int)level > atomic_load(&level_max))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	used = strftime(entry.time, sizeof(entry.time), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(entry.time + used, sizeof(entry.time) - used, ".%03ldZ", now.tv_nsec / 1000000);
	log_fields_text(line, entry.text, sizeof(entry.text));
	if (format == LOG_JSON)
		write_json(&entry, line);
	else if (format == LOG_JOURNAL && write_journal(&entry, line))
		; /* the journal has it */
	else if (is_to_syslog)
		to_syslog(&entry, entry.text);
	else
		fprintf(stderr, "ts=%s level=%s %s\n", entry.time, log_level_names[level],
			entry.text);
	tail_add(&entry);
}

void log_event(enum weir_log_level level, const char *text, ...)
{
	char line[LOG_TEXT_MAX];
	va_list args;

	va_start(args, text);
	vsnprintf(line, sizeof(line), text, args);
	va_end(args);
	log_line(level, line);
}

void log_limited(struct log_source *source, enum weir_log_level level, const char *line)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t dropped = 0;
	bool passes;

	pthread_mutex_lock(&lock);
	passes = level >= WEIR_LOG_DEBUG ||
		 weir_rate_limit_pass(&source->limit, weir_now_ns(), &dropped);
	pthread_mutex_unlock(&lock);
	if (dropped)
		log_event(WEIR_LOG_WARNING, "suppressed lines=%" PRIu32 " of=%s id=W107", dropped,
			  source->name);
	if (passes)
		log_line(level, line);
}
