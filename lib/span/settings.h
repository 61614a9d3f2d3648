/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The environment variables of OpenTelemetry that weir knows:
 *
 *	OTEL_EXPORTER_OTLP_ENDPOINT	the collector; /v1/traces is added
 *	OTEL_EXPORTER_OTLP_TRACES_ENDPOINT	the same, as it is; first
 *	OTEL_EXPORTER_OTLP_HEADERS	headers for the collector: name=value,...
 *	OTEL_SERVICE_NAME		default: service.name of the next, or the program's name
 *	OTEL_RESOURCE_ATTRIBUTES	name=value,...
 *	OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG	which operations are recorded
 *	OTEL_TRACES_EXPORTER=none, OTEL_SDK_DISABLED=true	nothing is recorded
 *	TRACEPARENT	the span that operations are a part of
 *
 * As OpenTelemetry demands, a value that is not valid counts as none, with a warning.
 */
#ifndef WEIR_LIB_SPAN_SETTINGS_H
#define WEIR_LIB_SPAN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>

/**
 * struct weir_span_settings - read from the environment
 * @endpoint: URL that spans are posted to; empty: spans are off
 * @service: name of the service
 * @attributes, @headers: pairs for weir_span_settings_pair()
 * @skips: of 2^56 operations that begin a trace, so many are not recorded
 * @follows_parent: if the environment names a parent, its flag decides instead
 * @has_parent: @trace and @parent are set; @parent_is_sampled: its flag
 */
struct weir_span_settings {
	char endpoint[512], service[128], attributes[1024], headers[1024];
	uint64_t skips;
	bool follows_parent, has_parent, parent_is_sampled;
	uint64_t trace[2], parent;
};

/**
 * weir_span_settings_read() - read the environment
 * @settings: receives all
 * @get: as getenv()
 * @warning: receives the last setting that is ignored, or "". May be NULL
 */
void weir_span_settings_read(struct weir_span_settings *settings, char *(*get)(const char *name),
			     struct weir_error *warning);

/* Whether the operations of this trace are recorded. */
bool weir_span_settings_sample(const struct weir_span_settings *settings,
			       const uint64_t trace[2]);

/**
 * weir_span_settings_pair() - take the next pair of a list
 * @list: "name=value,name=value"; moves on
 * @name, @value: receive both, decoded (%20); @size: of each
 *
 * Return: false: there is none. Pairs that are malformed or too long are left out.
 */
bool weir_span_settings_pair(const char **list, char *name, char *value, size_t size);

#endif
