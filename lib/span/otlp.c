/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids are hexadecimal, numbers of 64 bits are strings, and values of an enum are numbers. */
#include "lib/span/otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 256
#define STATUS_ERROR 2 /* of enum StatusCode */

static void add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, json_object_new_string(text));
}

static void add_decimal(struct json_object *object, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	add_text(object, key, text);
}

static void add_id(struct json_object *object, const char *key, uint64_t id)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	add_text(object, key, text);
}

/* Adds a pair of a list of attributes. Return: the object of its value. */
static struct json_object *add_attribute(struct json_object *attributes, const char *key)
{
	struct json_object *pair = json_object_new_object(), *value = json_object_new_object();

	add_text(pair, "key", key);
	json_object_object_add(pair, "value", value);
	json_object_array_add(attributes, pair);
	return value;
}

static void add_text_attribute(struct json_object *attributes, const char *key, const char *text)
{
	add_text(add_attribute(attributes, key), "stringValue", text);
}

static void add_number_attribute(struct json_object *attributes, const char *key, uint64_t value)
{
	add_decimal(add_attribute(attributes, key), "intValue", value);
}

static struct json_object *resource_of(const struct weir_span_settings *settings)
{
	struct json_object *resource = json_object_new_object();
	struct json_object *attributes = json_object_new_array();
	char name[NAME_BYTES], value[NAME_BYTES];
	const char *list = settings->attributes;

	json_object_object_add(resource, "attributes", attributes);
	add_text_attribute(attributes, "service.name", settings->service);
	add_text_attribute(attributes, "process.executable.name", program_invocation_short_name);
	add_number_attribute(attributes, "process.pid", (uint64_t)getpid());
	if (!gethostname(name, sizeof(name) - 1))
		add_text_attribute(attributes, "host.name", name);
	while (weir_span_settings_pair(&list, name, value, sizeof(name)))
		if (strcmp(name, "service.name"))
			add_text_attribute(attributes, name, value);
	return resource;
}

struct json_object *weir_span_otlp_request(const struct weir_span_settings *settings,
					   struct json_object **spans)
{
	struct json_object *request = json_object_new_object();
	struct json_object *resources = json_object_new_array();
	struct json_object *resource = json_object_new_object();
	struct json_object *scopes = json_object_new_array(), *scope = json_object_new_object();
	struct json_object *scope_name = json_object_new_object();

	*spans = json_object_new_array();
	add_text(scope_name, "name", "weir");
	json_object_object_add(scope, "scope", scope_name);
	json_object_object_add(scope, "spans", *spans);
	json_object_array_add(scopes, scope);
	json_object_object_add(resource, "resource", resource_of(settings));
	json_object_object_add(resource, "scopeSpans", scopes);
	json_object_array_add(resources, resource);
	json_object_object_add(request, "resourceSpans", resources);
	return request;
}

/* The absence of a name or an attribute is an answer, not an error of the operation. */
static bool is_answer(int status)
{
	return status == -ENOENT || status == -ENODATA;
}

static void add_status(struct json_object *out, struct json_object *attributes, int status)
{
	const char *name = strerrorname_np(-status);
	struct json_object *object;

	if (!status)
		return;
	add_text_attribute(attributes, "error.type", name ? name : "EIO");
	if (is_answer(status))
		return;
	object = json_object_new_object();
	json_object_object_add(object, "code", json_object_new_int(STATUS_ERROR));
	add_text(object, "message", weir_strerror(status));
	json_object_object_add(out, "status", object);
}

void weir_span_otlp_add(struct json_object *spans, const struct weir_span *span,
			uint64_t epoch_ns)
{
	struct json_object *out = json_object_new_object(), *attributes = json_object_new_array();
	char trace[33];

	snprintf(trace, sizeof(trace), "%016" PRIx64 "%016" PRIx64, span->trace[0],
		 span->trace[1]);
	add_text(out, "traceId", trace);
	add_id(out, "spanId", span->id);
	if (span->parent)
		add_id(out, "parentSpanId", span->parent);
	add_text(out, "name", span->name);
	json_object_object_add(out, "kind", json_object_new_int((int)span->kind));
	add_decimal(out, "startTimeUnixNano", epoch_ns + span->begun_ns);
	add_decimal(out, "endTimeUnixNano", epoch_ns + span->ended_ns);
	for (unsigned int i = 0; i < span->nr_numbers; i++)
		add_number_attribute(attributes, span->numbers[i].key, span->numbers[i].value);
	if (span->text_key)
		add_text_attribute(attributes, span->text_key, span->text);
	add_status(out, attributes, span->status);
	json_object_object_add(out, "attributes", attributes);
	json_object_array_add(spans, out);
}

uint64_t weir_span_otlp_rejected(const char *text)
{
	struct json_object *reply = text ? json_tokener_parse(text) : NULL, *part, *rejected;
	int64_t count = 0;

	if (json_object_is_type(reply, json_type_object) &&
	    json_object_object_get_ex(reply, "partialSuccess", &part) &&
	    json_object_is_type(part, json_type_object) &&
	    json_object_object_get_ex(part, "rejectedSpans", &rejected))
		count = json_object_get_int64(rejected); /* a number, or a string of one */
	json_object_put(reply);
	return count > 0 ? (uint64_t)count : 0;
}
