/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sizes that users type, such as "4G", and those that they read. Powers of 1024. */
#ifndef WEIR_APPS_COMMON_SIZE_H
#define WEIR_APPS_COMMON_SIZE_H

#include "lib/base/size.h"

#include <stdint.h>

/**
 * size_parse() - parse a size such as "4G", "512MiB", "1.5g" or "4096"
 * @text: the size
 * @bytes: written on success only
 *
 * Return: 0; -EINVAL not a size; -ERANGE more than 2^63 - 1 bytes.
 */
int size_parse(const char *text, uint64_t *bytes);

/* Formats for people: "0 B", "4.0 KiB", "1.5 GiB". */
#define size_format(bytes) weir_size_format(bytes)

#endif
