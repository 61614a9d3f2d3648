/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A configuration file in TOML: sections, and values in them. Parsed by toml++. */
#ifndef WEIR_APPS_CONFIG_TOML_FILE_H
#define WEIR_APPS_CONFIG_TOML_FILE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct toml_entry - a value in a section; a list makes one entry for each element
 * @section: name of the section
 * @name: name of the value; empty: the entry stands for the section itself
 * @text: the value as a person would write it on a command line
 * @line: of the file, from 1
 * @is_boolean: written as true or false, not as a string or a number
 * @is_in_list: an element of a list
 */
struct toml_entry {
	char *section, *name, *text;
	unsigned int line;
	bool is_boolean, is_in_list;
};

/* All entries, by section and name; a section's own entry comes before its values. */
struct toml_file {
	struct toml_entry *entries;
	size_t count;
};

/**
 * toml_file_read() - read a file
 * @path: the file
 * @file: receives the entries; toml_file_free() frees them. Empty after a failure
 * @error: receives "PATH:LINE: REASON", or "PATH: REASON"
 * @size: bytes of @error
 *
 * Return: 0; -EINVAL malformed; -ENOMEM; errors of open(2).
 */
int toml_file_read(const char *path, struct toml_file *file, char *error, size_t size);
void toml_file_free(struct toml_file *file);

#ifdef __cplusplus
}
#endif
#endif
