/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * JSON output of the commands, by json-c: with two spaces of indent, or all on one line. @key is
 * NULL in arrays. Nothing is printed before json_end().
 */
#ifndef WEIR_APPS_COMMON_JSON_H
#define WEIR_APPS_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 8

struct json_object;

struct json {
	FILE *out;
	int flags; /* JSON_C_TO_STRING_* */
	unsigned int depth;
	struct json_object *open[JSON_DEPTH_MAX]; /* containers, innermost last */
};

void json_begin(struct json *json, FILE *out); /* opens the outermost object */
void json_begin_line(struct json *json, FILE *out); /* the same, on one line */
void json_end(struct json *json); /* prints the outermost object, and ends the line */

void json_open_object(struct json *json, const char *key);
void json_open_array(struct json *json, const char *key);
void json_close(struct json *json); /* the innermost container */

void json_string(struct json *json, const char *key, const char *value);
void json_uint(struct json *json, const char *key, uint64_t value);
void json_int(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value); /* finite */
void json_boolean(struct json *json, const char *key, bool value);

#endif
