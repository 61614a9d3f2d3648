/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/json.h"

#include <assert.h>
#include <json-c/json.h>

static void add(struct json *json, const char *key, struct json_object *value)
{
	struct json_object *parent = json->open[json->depth - 1];

	if (key)
		json_object_object_add(parent, key, value);
	else
		json_object_array_add(parent, value);
}

static void open_container(struct json *json, const char *key, struct json_object *container)
{
	assert(json->depth < JSON_DEPTH_MAX);
	add(json, key, container);
	json->open[json->depth++] = container;
}

static void begin(struct json *json, FILE *out, int flags)
{
	*json = (struct json){ .out = out, .flags = flags | JSON_C_TO_STRING_NOSLASHESCAPE };
	json->open[json->depth++] = json_object_new_object();
}

void json_begin(struct json *json, FILE *out)
{
	begin(json, out, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_PRETTY);
}

void json_begin_line(struct json *json, FILE *out)
{
	begin(json, out, JSON_C_TO_STRING_SPACED);
}

void json_end(struct json *json)
{
	fputs(json_object_to_json_string_ext(json->open[0], json->flags), json->out);
	fputc('\n', json->out);
	fflush(json->out);
	json_object_put(json->open[0]);
}

void json_open_object(struct json *json, const char *key)
{
	open_container(json, key, json_object_new_object());
}

void json_open_array(struct json *json, const char *key)
{
	open_container(json, key, json_object_new_array());
}

void json_close(struct json *json)
{
	json->depth--;
}

void json_string(struct json *json, const char *key, const char *value)
{
	add(json, key, json_object_new_string(value));
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
	add(json, key, json_object_new_uint64(value));
}

void json_int(struct json *json, const char *key, int64_t value)
{
	add(json, key, json_object_new_int64(value));
}

void json_double(struct json *json, const char *key, double value)
{
	struct json_object *number = json_object_new_double(value);

	json_object_set_serializer(number, json_object_double_to_json_string, (void *)"%.3f", NULL);
	add(json, key, number);
}

void json_boolean(struct json *json, const char *key, bool value)
{
	add(json, key, json_object_new_boolean(value));
}
