/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir config: checks the configuration file, and shows what a service would use. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/config/settings.h"
#include "apps/config/toml_file.h"
#include "apps/services.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: weir config check [FILE]\n"
	"       weir config show SECTION...\n"
	"Checks the configuration file of weir's services, or shows the options that a service\n"
	"takes from it and from the environment. The file is $WEIR_CONFIG, or else\n" SETTINGS_FILE
	".\n";

static const struct cmdline *const services[] = { &serve_line, &mount_line, &share_line,
						  &metrics_line };

#define NR_SERVICES (sizeof(services) / sizeof(services[0]))

static const struct cmdline *find_service(const char *section)
{
	for (size_t i = 0; i < NR_SERVICES; i++)
		if (!strcmp(services[i]->section, section))
			return services[i];
	return NULL;
}

static int no_section(const char *cmd, const char *where, const char *section)
{
	return usage_error(cmd, "%s%sno section %s: there are serve, mount, share and metrics",
			   where, *where ? ": " : "", section);
}

/* A misspelt section would be ignored by all services. */
static int check_sections(const char *cmd, const char *path)
{
	char where[512];
	struct toml_file file;
	int status = EXIT_OK;

	if (toml_file_read(path, &file, where, sizeof(where)))
		return usage_error(cmd, "%s", where);
	for (size_t i = 0; i < file.count && !status; i++) {
		if (find_service(file.entries[i].section))
			continue;
		snprintf(where, sizeof(where), "%s:%u", path, file.entries[i].line);
		status = no_section(cmd, where, file.entries[i].section);
	}
	if (!status)
		printf("%s: %zu values are valid\n", path, file.count);
	toml_file_free(&file);
	return status;
}

static int check(const char *cmd, const char *path)
{
	int status = CMDLINE_PARSED;

	for (size_t i = 0; i < NR_SERVICES && status == CMDLINE_PARSED; i++) {
		void *scratch = calloc(1, services[i]->size);
		struct settings settings;

		if (!scratch)
			return failure(cmd, "out of memory");
		status = settings_load(&settings, cmd, services[i], path);
		if (status == CMDLINE_PARSED)
			status = cmdline_apply(services[i], cmd, &settings, scratch);
		free(scratch);
	}
	return status == CMDLINE_PARSED ? check_sections(cmd, path) : status;
}

static void show_value(const struct setting *setting, const char *where)
{
	bool is_plain = setting->is_boolean || !setting->option->argument;

	printf("%s = %s%s%s  # %s\n", setting->option->name, is_plain ? "" : "\"", setting->text,
	       is_plain ? "" : "\"", where);
}

static int show(const char *cmd, const struct cmdline *line)
{
	void *scratch = calloc(1, line->size);
	struct settings settings;
	char where[512];
	int status;

	if (!scratch)
		return failure(cmd, "out of memory");
	status = settings_load(&settings, cmd, line, settings_path());
	if (status == CMDLINE_PARSED)
		status = cmdline_apply(line, cmd, &settings, scratch);
	free(scratch);
	if (status != CMDLINE_PARSED)
		return status;
	printf("[%s]\n", line->section);
	for (size_t i = 0; i < settings.count; i++) {
		settings_where(&settings, line, &settings.values[i], where, sizeof(where));
		show_value(&settings.values[i], where);
	}
	return EXIT_OK;
}

static int show_all(int argc, char **argv)
{
	int status = EXIT_OK;

	if (argc < 3)
		return usage_error(argv[0], "name a section: serve, mount, share or metrics");
	for (int i = 2; i < argc && !status; i++) {
		const struct cmdline *line = find_service(argv[i]);

		status = line ? show(argv[0], line) : no_section(argv[0], "", argv[i]);
	}
	return status;
}

int cmd_config(int argc, char **argv)
{
	const struct cmdline line = {
		.usage = usage,
		.arguments = "check [FILE], or show SECTION...",
		.arguments_min = 1,
		.arguments_max = 1 + (int)NR_SERVICES,
	};
	int status = cmdline_parse(&line, argc, argv, NULL);

	if (status != CMDLINE_PARSED)
		return status;
	if (!strcmp(argv[1], "check") && argc <= 3)
		return check(argv[0], argc == 3 ? argv[2] : settings_path());
	if (!strcmp(argv[1], "show"))
		return show_all(argc, argv);
	return usage_error(argv[0], "expected: %s", line.arguments);
}
