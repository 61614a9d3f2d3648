/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/json.h"

static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void new_line(struct json *json)
{
	if (!json->line)
		fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

static void begin_member(struct json *json, const char *key)
{
	if (json->filled)
		fputs(json->line ? ", " : ",", json->out);
	json->filled = true;
	new_line(json);
	if (key) {
		put_quoted(json->out, key);
		fputs(": ", json->out);
	}
}

static void open_container(struct json *json, char bracket)
{
	fputc(bracket, json->out);
	json->depth++;
	json->filled = false;
}

static void close_container(struct json *json, char bracket)
{
	json->depth--;
	if (json->filled)
		new_line(json);
	fputc(bracket, json->out);
	json->filled = true;
}

void json_begin(struct json *json, FILE *out)
{
	*json = (struct json){ .out = out };
	open_container(json, '{');
}

void json_begin_line(struct json *json, FILE *out)
{
	*json = (struct json){ .out = out, .line = true };
	open_container(json, '{');
}

void json_end(struct json *json)
{
	close_container(json, '}');
	fputc('\n', json->out);
	fflush(json->out);
}

void json_open_object(struct json *json, const char *key)
{
	begin_member(json, key);
	open_container(json, '{');
}

void json_close_object(struct json *json)
{
	close_container(json, '}');
}

void json_open_array(struct json *json, const char *key)
{
	begin_member(json, key);
	open_container(json, '[');
}

void json_close_array(struct json *json)
{
	close_container(json, ']');
}

void json_string(struct json *json, const char *key, const char *value)
{
	begin_member(json, key);
	put_quoted(json->out, value);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
	begin_member(json, key);
	fprintf(json->out, "%llu", (unsigned long long)value);
}

void json_int(struct json *json, const char *key, int64_t value)
{
	begin_member(json, key);
	fprintf(json->out, "%lld", (long long)value);
}

void json_double(struct json *json, const char *key, double value)
{
	begin_member(json, key);
	fprintf(json->out, "%.3f", value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_member(json, key);
	fputs(value ? "true" : "false", json->out);
}
