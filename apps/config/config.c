/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir config: checks the configuration file, and shows what a service would use. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/config/settings.h"
#include "apps/config/toml_file.h"
#include "apps/services.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: weir config check [FILE]\n"
	"       weir config show [OPTION...] [SECTION...]\n"
	"Checks the configuration file of weir's services, or shows the options that a service\n"
	"takes from it and from the environment. The file is $WEIR_CONFIG, or else\n" SETTINGS_FILE
	".\n\n"
	"  -h, --help         this help; see also 'weir config COMMAND --help'\n";

/* In the order of settings_sections. */
static const struct cmdline *const services[] = { &serve_line, &mount_line, &share_line,
						  &metrics_line };

#define NR_SERVICES (sizeof(services) / sizeof(services[0]))

/* systemd puts a service's credentials there, for as long as the service runs. */
#define CREDENTIALS "/run/credentials/"

static const struct cmdline *find_service(const char *section)
{
	for (size_t i = 0; i < NR_SERVICES; i++)
		if (!strcmp(services[i]->section, section))
			return services[i];
	return NULL;
}

/*
 * Loads the settings of a service. On success the caller owes a free() of *@options, the service's
 * struct with the settings in it.
 */
static int load(const char *cmd, const struct cmdline *line, const char *path,
		struct settings *settings, void **options)
{
	int status;

	*options = calloc(1, line->size);
	if (!*options)
		return failure(cmd, "out of memory");
	status = settings_load(settings, cmd, line, path);
	if (status == CMDLINE_PARSED)
		status = cmdline_apply(line, cmd, settings, *options);
	if (status != CMDLINE_PARSED)
		free(*options);
	return status;
}

/* Whether the service can use the file or address of a value. */
static int check_value(const char *cmd, const struct cmdline *line,
		       const struct settings *settings, const struct setting *setting,
		       const void *options)
{
	const struct cmdline_option *option = setting->option;
	struct weir_error error;
	char where[512];

	if (!option->is_usable)
		return EXIT_OK;
	settings_where(settings, line, setting, where, sizeof(where));
	if (!strncmp(setting->text, CREDENTIALS, strlen(CREDENTIALS))) {
		printf("%s: systemd hands %s over; not checked\n", where, setting->text);
		return EXIT_OK;
	}
	if (option->is_usable(option, setting->text, options, &error))
		return EXIT_OK;
	return failure(cmd, "%s: %s", where, error.text);
}

/* Names each value that cannot be used, but stops at the first mistake in the text itself. */
static int check_service(const char *cmd, const struct cmdline *line, const char *path)
{
	int checked = EXIT_OK, status;
	struct settings settings;
	void *options;

	status = load(cmd, line, path, &settings, &options);
	if (status != CMDLINE_PARSED)
		return status;
	for (size_t i = 0; i < settings.count; i++)
		if (check_value(cmd, line, &settings, &settings.values[i], options))
			checked = EXIT_FAILED;
	if (checked == EXIT_OK && settings.count && line->check)
		checked = line->check(cmd, options);
	free(options);
	return checked;
}

int config_check_text(const char *cmd, const char *path)
{
	int status = CMDLINE_PARSED;

	for (size_t i = 0; i < NR_SERVICES && status == CMDLINE_PARSED; i++) {
		struct settings settings;
		void *options;

		status = load(cmd, services[i], path, &settings, &options);
		if (status == CMDLINE_PARSED)
			free(options);
	}
	return status == CMDLINE_PARSED ? EXIT_OK : status;
}

static int say_valid(const char *cmd, const char *path)
{
	char error[512];
	struct toml_file file;
	size_t count = 0;

	if (toml_file_read(path, &file, error, sizeof(error)))
		return usage_error(cmd, "%s", error);
	for (size_t i = 0; i < file.count; i++)
		count += *file.entries[i].name != '\0';
	printf("%s: %zu %s valid\n", path, count, count == 1 ? "value is" : "values are");
	toml_file_free(&file);
	return EXIT_OK;
}

static const struct cmdline check_line = {
	.usage = "Usage: weir config check [FILE]\n"
		 "Checks names and values, and the files and addresses that they name: keys,\n"
		 "certificates, lists and pools. Status 2: services refuse the file itself;\n"
		 "1: something that the file names is missing, or not private.\n",
	.arguments = "at most one FILE",
	.arguments_max = 1,
};

static int config_check(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&check_line, argc, argv, NULL), worst = EXIT_OK;
	const char *path = argc > optind ? argv[optind] : settings_path();

	if (status != CMDLINE_PARSED)
		return status;
	for (size_t i = 0; i < NR_SERVICES && worst != EXIT_USAGE; i++) {
		status = check_service(cmd, services[i], path);
		worst = status > worst ? status : worst;
	}
	return worst ? worst : say_valid(cmd, path);
}

struct show {
	bool json;
};

/* Prints text as in a string of TOML, where a control character stands as \uXXXX. */
static void put_escaped(const char *text)
{
	for (; *text; text++) {
		unsigned char letter = (unsigned char)*text;

		if (letter < ' ' || letter == 0x7f)
			printf("\\u%04X", letter);
		else if (letter == '"' || letter == '\\')
			printf("\\%c", letter);
		else
			putchar(letter);
	}
}

static bool is_repeated(const struct setting *setting)
{
	return setting->option->is_repeatable && setting->line;
}

static void put_value(const struct setting *setting)
{
	bool is_on;

	if (setting->option->kind == CMDLINE_KIND_FLAG &&
	    cmdline_parse_flag(setting->text, &is_on)) {
		printf("%s", is_on ? "true" : "false");
		return;
	}
	putchar('"');
	put_escaped(setting->text);
	putchar('"');
}

/* A list has a line for each element. @is_first, @is_last: of an option's values */
static void show_value(const struct setting *setting, const char *where, bool is_first,
		       bool is_last)
{
	if (is_first)
		printf("%s = %s", setting->option->name, is_repeated(setting) ? "[\n" : "");
	if (is_repeated(setting))
		fputs("  ", stdout);
	put_value(setting);
	fputs(is_repeated(setting) ? ",  # " : "  # ", stdout);
	put_escaped(where);
	puts(is_repeated(setting) && is_last ? "\n]" : "");
}

/* Whether the setting at @i has the option of the one at @other, if there is one. */
static bool has_same_option(const struct settings *settings, size_t i, size_t other)
{
	return other < settings->count &&
	       settings->values[i].option == settings->values[other].option;
}

static void show_value_json(struct json *json, const struct setting *setting, const char *where)
{
	json_open_object(json, NULL);
	json_string(json, "option", setting->option->name);
	json_string(json, "value", setting->text);
	json_string(json, "from", where);
	json_close(json);
}

/* @json: NULL: as text */
static int show(const char *cmd, const struct cmdline *line, struct json *json)
{
	struct settings settings;
	char where[512];
	void *options;
	int status = load(cmd, line, settings_path(), &settings, &options);

	if (status != CMDLINE_PARSED)
		return status;
	free(options);
	if (json)
		json_open_array(json, line->section);
	else
		printf("[%s]\n", line->section);
	for (size_t i = 0; i < settings.count; i++) {
		settings_where(&settings, line, &settings.values[i], where, sizeof(where));
		if (json)
			show_value_json(json, &settings.values[i], where);
		else
			show_value(&settings.values[i], where,
				   !has_same_option(&settings, i, i - 1),
				   !has_same_option(&settings, i, i + 1));
	}
	if (json)
		json_close(json);
	return EXIT_OK;
}

/* @sections: names, or none: all */
static int show_all(const char *cmd, char **sections, int count, struct json *json)
{
	int status = EXIT_OK;

	for (size_t i = 0; !count && i < NR_SERVICES && !status; i++)
		status = show(cmd, services[i], json);
	for (int i = 0; i < count && !status; i++) {
		const struct cmdline *line = find_service(sections[i]);

		status = line ? show(cmd, line, json) : settings_no_section(cmd, "", sections[i]);
	}
	return status;
}

static const struct cmdline_option show_options[] = {
	CMDLINE_JSON(struct show, json),
	{ NULL },
};

static const struct cmdline show_line = {
	.usage = "Usage: weir config show [OPTION...] [SECTION...]\n"
		 "Shows what services take from the configuration file and the environment, and\n"
		 "where each value stands. Without a SECTION, shows all of them.\n",
	.options = show_options,
	.arguments = "at most one of each SECTION",
	.arguments_max = NR_SERVICES,
};

static int config_show(const char *cmd, int argc, char **argv)
{
	struct show how = { 0 };
	int status = cmdline_parse(&show_line, argc, argv, &how);
	struct json json;

	if (status != CMDLINE_PARSED)
		return status;
	if (!how.json)
		return show_all(cmd, argv + optind, argc - optind, NULL);
	json_begin(&json, stdout);
	status = show_all(cmd, argv + optind, argc - optind, &json);
	json_end(&json);
	return status;
}

static const struct subcommand commands[] = {
	{ "check", NULL, config_check },
	{ "show", NULL, config_show },
	{ NULL },
};

int cmd_config(int argc, char **argv)
{
	return run_subcommand(commands, help, argc, argv);
}
