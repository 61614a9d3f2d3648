/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/config/settings.h"

#include "apps/common/cmd.h"
#include "apps/common/nearest.h"
#include "apps/config/toml_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Loaded files stay: options point into them. */
struct kept {
	struct kept *next;
	struct toml_file file;
	struct settings settings;
};

static struct kept *all_kept;

const char *const settings_sections[] = { "serve", "mount", "share", "metrics", NULL };

int settings_no_section(const char *cmd, const char *where, const char *section)
{
	struct nearest nearest = nearest_begin(section);

	for (const char *const *known = settings_sections; *known; known++)
		nearest_consider(&nearest, *known);
	if (nearest.name)
		return usage_error(cmd, "%s%sno section %s: did you mean '%s'?", where,
				   *where ? ": " : "", section, nearest.name);
	return usage_error(cmd, "%s%sno section %s: there are serve, mount, share and metrics",
			   where, *where ? ": " : "", section);
}

const char *settings_path(void)
{
	const char *path = getenv("WEIR_CONFIG");

	return path && *path ? path : SETTINGS_FILE;
}

void settings_variable(const struct cmdline *line, const struct cmdline_option *option, char *text,
		       size_t size)
{
	snprintf(text, size, "WEIR_%s_%s", line->section, option->name);
	for (; *text; text++)
		*text = *text == '-' ? '_' : (char)toupper((unsigned char)*text);
}

static const char *variable_value(const struct cmdline *line, const struct cmdline_option *option)
{
	char name[64];

	settings_variable(line, option, name, sizeof(name));
	return getenv(name);
}

static const struct cmdline_option *find_option(const struct cmdline *line, const char *name)
{
	for (const struct cmdline_option *option = line->options; option->name; option++)
		if (!strcmp(option->name, name))
			return option;
	return NULL;
}

static int add(struct settings *settings, const char *cmd, const struct setting *setting)
{
	struct setting *values =
		reallocarray(settings->values, settings->count + 1, sizeof(*values));

	if (!values)
		return failure(cmd, "out of memory");
	settings->values = values;
	values[settings->count++] = *setting;
	return CMDLINE_PARSED;
}

static int add_variables(struct settings *settings, const char *cmd, const struct cmdline *line)
{
	int status = CMDLINE_PARSED;

	for (const struct cmdline_option *option = line->options;
	     status == CMDLINE_PARSED && option->name; option++) {
		const char *text = variable_value(line, option);

		if (text)
			status = add(settings, cmd,
				     &(struct setting){ .option = option, .text = text });
	}
	return status;
}

/* @name: of a variable, as settings_variable() formats those of the command's options */
static void warn_of_variable(const char *cmd, const struct cmdline *line, const char *name)
{
	char known[64], best[64] = "";
	struct nearest nearest = nearest_begin(name);

	for (const struct cmdline_option *option = line->options; option->name; option++) {
		settings_variable(line, option, known, sizeof(known));
		if (!strcmp(name, known))
			return;
		nearest_consider(&nearest, known);
		if (nearest.name)
			snprintf(best, sizeof(best), "%s", known);
		nearest.name = NULL;
	}
	cmd_say(cmd, "%s is ignored: weir %s has no such option%s%s%s", name, line->section,
		*best ? ": did you mean '" : "", best, *best ? "'?" : "");
}

/* A misspelt variable does not stop the command: variables may belong to other programs. */
static void warn_of_variables(const char *cmd, const struct cmdline *line)
{
	const size_t length = strlen("WEIR_") + strlen(line->section) + 1;
	char prefix[32], name[128];

	snprintf(prefix, sizeof(prefix), "WEIR_%s_", line->section);
	for (char *c = prefix; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	for (char **variable = environ; variable && *variable; variable++) {
		if (strncmp(*variable, prefix, length))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*variable, "="), *variable);
		warn_of_variable(cmd, line, name);
	}
}

static int no_option(const struct settings *settings, const char *cmd, const struct cmdline *line,
		     const struct toml_entry *entry)
{
	struct nearest nearest = nearest_begin(entry->name);

	for (const struct cmdline_option *option = line->options; option->name; option++)
		nearest_consider(&nearest, option->name);
	return usage_error(cmd, "%s:%u: weir %s has no option %s%s%s%s", settings->path,
			   entry->line, line->section, entry->name,
			   nearest.name ? ": did you mean '" : "",
			   nearest.name ? nearest.name : "", nearest.name ? "'?" : "");
}

static int add_entry(struct settings *settings, const char *cmd, const struct cmdline *line,
		     const struct toml_entry *entry)
{
	const struct cmdline_option *option = find_option(line, entry->name);

	if (!option)
		return no_option(settings, cmd, line, entry);
	if (entry->is_in_list && !option->is_repeatable)
		return usage_error(cmd, "%s:%u: %s takes one value, not a list", settings->path,
				   entry->line, entry->name);
	if (variable_value(line, option))
		return CMDLINE_PARSED;
	return add(settings, cmd,
		   &(struct setting){ option, entry->text, entry->line, entry->is_boolean });
}

static int check_section(const struct settings *settings, const char *cmd,
			 const struct toml_entry *entry)
{
	char where[512];

	for (const char *const *known = settings_sections; *known; known++)
		if (!strcmp(entry->section, *known))
			return CMDLINE_PARSED;
	snprintf(where, sizeof(where), "%s:%u", settings->path, entry->line);
	return settings_no_section(cmd, where, entry->section);
}

static int add_file(struct settings *settings, const char *cmd, const struct cmdline *line,
		    const struct toml_file *file)
{
	int status = CMDLINE_PARSED;

	for (size_t i = 0; status == CMDLINE_PARSED && i < file->count; i++) {
		const struct toml_entry *entry = &file->entries[i];

		if (!*entry->name)
			status = check_section(settings, cmd, entry);
		else if (!strcmp(entry->section, line->section))
			status = add_entry(settings, cmd, line, entry);
	}
	return status;
}

/* Only the usual file may be missing. */
static int read_file(struct kept *kept, const char *cmd, const char *path)
{
	char error[512];
	int rc;

	kept->settings.path = strdup(path);
	if (!kept->settings.path)
		return failure(cmd, "out of memory");
	rc = toml_file_read(path, &kept->file, error, sizeof(error));
	if (rc == -ENOENT && !strcmp(path, SETTINGS_FILE))
		return CMDLINE_PARSED;
	return rc ? usage_error(cmd, "%s", error) : CMDLINE_PARSED;
}

int settings_load(struct settings *settings, const char *cmd, const struct cmdline *line,
		  const char *path)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	int status;

	if (!kept)
		return failure(cmd, "out of memory");
	kept->next = all_kept;
	all_kept = kept;
	status = read_file(kept, cmd, path);
	if (status == CMDLINE_PARSED)
		status = add_file(&kept->settings, cmd, line, &kept->file);
	if (status == CMDLINE_PARSED)
		status = add_variables(&kept->settings, cmd, line);
	if (status == CMDLINE_PARSED)
		warn_of_variables(cmd, line);
	*settings = kept->settings;
	return status;
}

void settings_where(const struct settings *settings, const struct cmdline *line,
		    const struct setting *setting, char *text, size_t size)
{
	if (setting->line)
		snprintf(text, size, "%s:%u: %s", settings->path, setting->line,
			 setting->option->name);
	else
		settings_variable(line, setting->option, text, size);
}
