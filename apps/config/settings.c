/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/config/settings.h"

#include "apps/common/cmd.h"
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

static int add_entry(struct settings *settings, const char *cmd, const struct cmdline *line,
		     const struct toml_entry *entry)
{
	const struct cmdline_option *option = find_option(line, entry->name);

	if (!option)
		return usage_error(cmd, "%s:%u: weir %s has no option %s", settings->path,
				   entry->line, line->section, entry->name);
	if (variable_value(line, option))
		return CMDLINE_PARSED;
	return add(settings, cmd,
		   &(struct setting){ option, entry->text, entry->line, entry->is_boolean });
}

static int add_file(struct settings *settings, const char *cmd, const struct cmdline *line,
		    const struct toml_file *file)
{
	int status = CMDLINE_PARSED;

	for (size_t i = 0; status == CMDLINE_PARSED && i < file->count; i++)
		if (!strcmp(file->entries[i].section, line->section))
			status = add_entry(settings, cmd, line, &file->entries[i]);
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
