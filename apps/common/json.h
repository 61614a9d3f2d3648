/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * JSON writer with two spaces of indent, or all on one line. Escapes strings. @key is NULL in
 * arrays.
 */
#ifndef WEIR_APPS_COMMON_JSON_H
#define WEIR_APPS_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	unsigned int depth;
	bool filled; /* the innermost container has a member */
	bool line; /* all on one line */
};

void json_begin(struct json *json, FILE *out); /* opens the outermost object */
void json_begin_line(struct json *json, FILE *out); /* the same, on one line */
void json_end(struct json *json); /* closes the outermost object and ends the line */

void json_open_object(struct json *json, const char *key);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *key);
void json_close_array(struct json *json);

void json_string(struct json *json, const char *key, const char *value);
void json_uint(struct json *json, const char *key, uint64_t value);
void json_int(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value); /* finite */
void json_bool(struct json *json, const char *key, bool value);

#endif
