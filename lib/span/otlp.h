/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Spans as the JSON of OTLP 1.0, in which they are posted to a collector. */
#ifndef WEIR_LIB_SPAN_OTLP_H
#define WEIR_LIB_SPAN_OTLP_H

#include "lib/span/settings.h"
#include "lib/span/span.h"

struct json_object;

/**
 * weir_span_otlp_request() - write a request without spans
 * @settings: name and attributes of the process
 * @spans: receives the list for weir_span_otlp_add(); borrowed
 *
 * Return: the request; the caller owes a json_object_put().
 */
struct json_object *weir_span_otlp_request(const struct weir_span_settings *settings,
					   struct json_object **spans);

/* Adds a span. @epoch_ns: Unix time at which weir_now_ns() was 0. */
void weir_span_otlp_add(struct json_object *spans, const struct weir_span *span,
			uint64_t epoch_ns);

/*
 * The spans that a collector has not taken although it took the request, by its answer. @text: may
 * be NULL.
 */
uint64_t weir_span_otlp_rejected(const char *text);

#endif
