/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options from the configuration file and from the environment.
 *
 * A command with a section takes each option of its table from the command line, else from the
 * environment, else from the file, else its default. 'weir serve' has --memory, WEIR_SERVE_MEMORY,
 * and memory in the section [serve] of /etc/weir/weir.toml.
 */
#ifndef WEIR_APPS_CONFIG_SETTINGS_H
#define WEIR_APPS_CONFIG_SETTINGS_H

#include "apps/common/cmdline.h"

#define SETTINGS_FILE "/etc/weir/weir.toml"

/**
 * struct setting - a value for an option
 * @option: in the command's table
 * @text: the value
 * @line: of the file; 0: the value comes from the environment
 * @is_boolean: written as true or false, not as a string
 */
struct setting {
	const struct cmdline_option *option;
	const char *text;
	unsigned int line;
	bool is_boolean;
};

/**
 * struct settings - values for the options of a command
 * @path: the file; empty: there is none
 * @values: for an option, either from the environment or from the file
 */
struct settings {
	char *path;
	struct setting *values;
	size_t count;
};

/* The sections that the file may have; NULL ends them. */
extern const char *const settings_sections[];

/* Prints that @where names a section that does not exist. Return: EXIT_USAGE. */
int settings_no_section(const char *cmd, const char *where, const char *section);

/* Return: the file that commands read: $WEIR_CONFIG, else SETTINGS_FILE. */
const char *settings_path(void);

/**
 * settings_load() - read file and environment
 * @settings: receives the values, which stay valid until the process ends
 * @cmd: argv[0] of the command, for messages
 * @line: the command's table, with a section
 * @path: the file. Only SETTINGS_FILE may be missing
 *
 * Each command refuses wrong names in its own section. A section that no command has may be this
 * one, misspelt, with its keys and limits. So each command refuses such a section.
 *
 * Return: CMDLINE_PARSED, or an exit status after a message.
 */
int settings_load(struct settings *settings, const char *cmd, const struct cmdline *line,
		  const char *path);

/* Formats where the value stands: "WEIR_SERVE_MEMORY", or "/etc/weir/weir.toml:3: memory". */
void settings_where(const struct settings *settings, const struct cmdline *line,
		    const struct setting *setting, char *text, size_t size);

/* Formats the variable of an option: "WEIR_SERVE_MEMORY". */
void settings_variable(const struct cmdline *line, const struct cmdline_option *option, char *text,
		       size_t size);

#endif
