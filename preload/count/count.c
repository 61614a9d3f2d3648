/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replacements of libibverbs' functions that return a context, an extended queue pair, or an event.
 * All other calls go through pointers (wrap.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/next.h"
#include "wrap.h"

struct verbs_counters verbs_counters;
static pid_t opener; /* process that opened a device; a child counts nothing */

EXPORT void verbs_count_read(struct verbs_counters *out)
{
#define READ(name, help) out->name = __atomic_load_n(&verbs_counters.name, __ATOMIC_RELAXED);
	VERBS_COUNTERS(READ)
#undef READ
}

static struct ibv_context *context_opened(struct ibv_context *context)
{
	if (context) {
		wrap_context(context);
		opener = getpid();
	}
	return context;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return context_opened(NEXT(ibv_open_device)(device));
}

EXPORT struct ibv_context *ibv_import_device(int fd)
{
	return context_opened(NEXT(ibv_import_device)(fd));
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *extended = NEXT(ibv_qp_to_qp_ex)(qp);

	if (extended)
		wrap_qp(extended);
	return extended;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	int rc = NEXT(ibv_get_cq_event)(channel, cq, context);

	if (!rc)
		count(cq_events, 1);
	return rc;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int rc = NEXT(ibv_get_async_event)(context, event);

	if (!rc)
		count(async_events, 1);
	return rc;
}

/* Prints @text as a JSON string. */
static void print_string(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		/* A byte beyond ASCII may be no UTF-8, which JSON must be. */
		if (c < ' ' || c > '~' || c == '"' || c == '\\')
			fprintf(file, "\\u%04x", c);
		else
			fputc(c, file);
	}
	fputc('"', file);
}

/* One line in one write, because many processes may append to the file. */
__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("WEIR_COUNT");
	struct verbs_counters now;
	FILE *file;

	if (!path || !path[0] || opener != getpid())
		return;
	file = fopen(path, "ae");
	if (!file) {
		fprintf(stderr, "libweir-count: cannot append to WEIR_COUNT=%s: %m\n", path);
		return;
	}
	verbs_count_read(&now);
	fprintf(file, "{\"pid\": %d, \"program\": ", (int)getpid());
	print_string(file, program_invocation_short_name);
#define PRINT(name, help) fprintf(file, ", \"" #name "\": %llu", (unsigned long long)now.name);
	VERBS_COUNTERS(PRINT)
#undef PRINT
	fputs("}\n", file);
	if (fclose(file))
		fprintf(stderr, "libweir-count: cannot write WEIR_COUNT=%s: %m\n", path);
}
