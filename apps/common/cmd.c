/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/cmd.h"
#include "apps/common/nearest.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void complain(const char *cmd, const char *format, va_list args)
{
	fprintf(stderr, "%s: ", cmd);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "-h") || !strcmp(word, "--help");
}

/* Return: whether a command of this name takes a second word. */
static bool has_parts(const struct subcommand *commands, const char *name)
{
	for (const struct subcommand *c = commands; c->name; c++)
		if (c->part && !strcmp(name, c->name))
			return true;
	return false;
}

/* Prints the first words, or with @name the second words after it: see cmdline_parse(). */
static int print_words(const struct subcommand *commands, const char *name)
{
	const char *last = "";

	for (const struct subcommand *c = commands; c->name; c++) {
		if (!name && strcmp(last, c->name))
			puts(c->name);
		else if (name && !strcmp(name, c->name))
			puts(c->part);
		last = c->name;
	}
	puts("--help");
	return EXIT_OK;
}

/* @name: the first word, or NULL if @typed is to be it. */
static int no_word(const struct subcommand *commands, const char *cmd, const char *name,
		   const char *typed)
{
	struct nearest nearest = nearest_begin(typed);
	char said[96];

	if (!*typed)
		return usage_error(cmd, "no COMMAND given%s%s", name ? " after " : "",
				   name ? name : "");
	for (const struct subcommand *c = commands; c->name; c++) {
		if (!name)
			nearest_consider(&nearest, c->name);
		else if (!strcmp(name, c->name))
			nearest_consider(&nearest, c->part);
	}
	snprintf(said, sizeof(said), "%s%s%.64s", name ? name : "", name ? " " : "", typed);
	return no_command(cmd, said, &nearest);
}

static int run_words(const struct subcommand *c, int argc, char **argv)
{
	static char cmd[48];
	int words = c->part ? 2 : 1;

	snprintf(cmd, sizeof(cmd), "%s %s%s%s", argv[0], c->name, c->part ? " " : "",
		 c->part ? c->part : "");
	argv[words] = cmd;
	return c->run(cmd, argc - words, argv + words);
}

int run_subcommand(const struct subcommand *commands, const char *help, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "", *part = argc > 2 ? argv[2] : "";
	const bool in_two = has_parts(commands, name);
	const char *last = in_two ? part : name;

	if (is_help(last)) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (!strcmp(last, "--complete"))
		return print_words(commands, in_two ? name : NULL);
	for (const struct subcommand *c = commands; c->name; c++)
		if (!strcmp(name, c->name) && (!c->part || !strcmp(part, c->part)))
			return run_words(c, argc, argv);
	return no_word(commands, argv[0], in_two ? name : NULL, last);
}

int no_command(const char *cmd, const char *typed, const struct nearest *nearest)
{
	if (nearest->name)
		return usage_error(cmd, "no command '%s': did you mean '%s'?", typed,
				   nearest->name);
	return usage_error(cmd, "no command '%s'", typed);
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
