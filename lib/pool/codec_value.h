/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Members of a key's JSON value, and the values that weir writes. For codec.c. */
#ifndef WEIR_LIB_POOL_CODEC_VALUE_H
#define WEIR_LIB_POOL_CODEC_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/pool/map.h"

#define WEIR_POOL_FORMAT 1

struct json_object;

/* Return: the number, or 0. */
uint64_t weir_pool_value_uint(struct json_object *value, const char *name);
/* Of a number in hexadecimal, in a string: JSON's numbers hold 53 bits. */
uint64_t weir_pool_value_hex(struct json_object *value, const char *name);
/* Return: whether a name, or any text, of fewer than WEIR_POOL_NAME_MAX bytes was there. */
bool weir_pool_value_name(struct json_object *value, const char *name,
			  char text[static WEIR_POOL_NAME_MAX]);
bool weir_pool_value_text(struct json_object *value, const char *name,
			  char text[static WEIR_POOL_NAME_MAX]);


/*
 * Of a key of WEIR_POOL_IDENTITY bytes in hexadecimal. Return: whether it is there, in @has, or is
 * absent; false: it is damaged.
 */
bool weir_pool_value_identity(struct json_object *value, const char *name,
			      uint8_t identity[static WEIR_POOL_IDENTITY], bool *has);

#endif
