/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parsing and formatting of sizes: "4G", "1.5 GiB". Powers of 1024. */
#ifndef WEIR_APPS_COMMON_SIZE_H
#define WEIR_APPS_COMMON_SIZE_H

#include <stdint.h>

/**
 * size_parse() - parse a size such as "4G", "512MiB", "1.5g" or "4096"
 * @text: the size
 * @bytes: written on success only
 *
 * Return: 0; -EINVAL not a size; -ERANGE more than 2^63 - 1 bytes.
 */
int size_parse(const char *text, uint64_t *bytes);

struct size_text {
	char text[24];
};

/* Formats for people: "0 B", "4.0 KiB", "1.5 GiB". */
struct size_text size_format(uint64_t bytes);

#endif
