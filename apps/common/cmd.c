/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void complain(const char *cmd, const char *format, va_list args)
{
	fprintf(stderr, "%s: ", cmd);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int run_subcommand(const struct subcommand *commands, const char *help, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	static char cmd[32];

	if (!strcmp(name, "-h") || !strcmp(name, "--help")) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	for (const struct subcommand *c = commands; c->name; c++) {
		if (strcmp(name, c->name))
			continue;
		snprintf(cmd, sizeof(cmd), "%s %s", argv[0], name);
		argv[1] = cmd;
		return c->run(cmd, argc - 1, argv + 1);
	}
	return *name ? usage_error(argv[0], "no command '%s'", name) :
		       usage_error(argv[0], "no COMMAND given");
}

int usage_error(const char *cmd, const char *format, ...)
{
	va_list args;

	if (format) {
		va_start(args, format);
		complain(cmd, format, args);
		va_end(args);
	}
	fprintf(stderr, "Try '%s --help'.\n", cmd);
	return EXIT_USAGE;
}

int failure(const char *cmd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(cmd, format, args);
	va_end(args);
	return EXIT_FAILED;
}
