/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Spans of OpenTelemetry: an operation, from when until when, and the operations that it consists
 * of. They are off unless the environment names a collector: settings.h.
 *
 * A request waits for no collector. A span is one of a fixed number of records, which a thread of
 * its own sends when it has ended. If none is free, the span is dropped, and counted.
 *
 * A span that is off, not sampled or dropped is NULL, and so are its children. All functions take
 * NULL.
 */
#ifndef WEIR_LIB_SPAN_SPAN_H
#define WEIR_LIB_SPAN_SPAN_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/error.h>

#include "core/base/inbox.h"

#define WEIR_SPAN_RECORDS 2048u /* spans under way, or waiting to be sent */
#define WEIR_SPAN_NUMBERS_MAX 4u
#define WEIR_SPAN_TEXT_MAX 96u /* bytes, NUL included */

/* The numbers are OTLP's. */
enum weir_span_kind {
	WEIR_SPAN_INTERNAL = 1,
	WEIR_SPAN_SERVER, /* an operation that another program has asked for */
	WEIR_SPAN_CLIENT, /* this program asks another for it */
};

struct weir_span_number {
	const char *key;
	uint64_t value;
};

/**
 * struct weir_span - a record
 * @node: in the free records, or in those that have ended
 * @trace, @id, @parent: @parent is 0 if the span has none
 * @name: a constant, as are all keys
 * @begun_ns, @ended_ns: of weir_now_ns()
 * @status: how the operation ended: 0 or a negative errno
 * @numbers, @text: attributes; @text_key: NULL: no text
 */
struct weir_span {
	struct weir_inbox_node node;
	uint64_t trace[2], id, parent;
	const char *name;
	enum weir_span_kind kind;
	int status;
	uint64_t begun_ns, ended_ns;
	unsigned int nr_numbers;
	struct weir_span_number numbers[WEIR_SPAN_NUMBERS_MAX];
	const char *text_key;
	char text[WEIR_SPAN_TEXT_MAX];
};

/* Set while spans are recorded; atomic. For the functions below. */
extern bool weir_span_is_on;

/**
 * weir_span_open() - begin to record spans, if the environment says so
 * @warning: receives a setting that is ignored, or "". May be NULL
 *
 * The caller owes a weir_span_close(), whatever the result. Between the two, the caller may begin
 * spans, and ends them. Several users may have spans open.
 *
 * Context: any thread outside callbacks.
 * Return: 0; -ENOMEM: no spans.
 */
int weir_span_open(struct weir_error *warning);

/* The last user's call sends what is left. Context: sleeps, up to 4 s if nobody answers. */
void weir_span_close(void);

/* For the functions below. */
struct weir_span *weir_span_begin_root(const char *name, enum weir_span_kind kind);
struct weir_span *weir_span_begin_child(const struct weir_span *parent, const char *name,
					enum weir_span_kind kind);
void weir_span_finish(struct weir_span *span, int status);
void weir_span_set_text(struct weir_span *span, const char *key, const char *text);

/* Begins an operation. The caller owes a weir_span_end(). Context: any thread; never sleeps. */
static inline struct weir_span *weir_span_begin(const char *name, enum weir_span_kind kind)
{
	if (!__atomic_load_n(&weir_span_is_on, __ATOMIC_RELAXED))
		return NULL;
	return weir_span_begin_root(name, kind);
}

/* Begins a part of an operation that has not ended. The part may outlast it. */
static inline struct weir_span *weir_span_part(const struct weir_span *parent, const char *name,
					       enum weir_span_kind kind)
{
	return parent ? weir_span_begin_child(parent, name, kind) : NULL;
}

/* Adds an attribute. More than WEIR_SPAN_NUMBERS_MAX are left out. */
static inline void weir_span_number(struct weir_span *span, const char *key, uint64_t value)
{
	if (span && span->nr_numbers < WEIR_SPAN_NUMBERS_MAX)
		span->numbers[span->nr_numbers++] = (struct weir_span_number){ key, value };
}

/* Sets the attribute that is a text. */
static inline void weir_span_text(struct weir_span *span, const char *key, const char *text)
{
	if (span)
		weir_span_set_text(span, key, text);
}

/* The operation has ended; the caller must not touch the span again. Context: as the begin. */
static inline void weir_span_end(struct weir_span *span, int status)
{
	if (span)
		weir_span_finish(span, status);
}

/* Spans since the process began. */
struct weir_span_counts {
	uint64_t exported; /* taken by the collector */
	uint64_t dropped; /* no record was free */
	uint64_t refused; /* not taken: the collector refuses, or does not answer */
};

/* Context: any thread. Return: whether spans are or were on. */
bool weir_span_counts(struct weir_span_counts *counts);

#endif
