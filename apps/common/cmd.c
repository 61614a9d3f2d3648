/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/cmd.h"
#include "apps/common/nearest.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*report)(enum cmd_report kind, const char *text);

void cmd_report_by(void (*function)(enum cmd_report kind, const char *text))
{
	report = function;
}

/*
 * Prints a message that may quote arguments and files. A control character there could colour, move
 * or hide what the terminal shows; the same holds for the C1 controls, 0xC2 0x80 to 0xC2 0x9F.
 */
static void put_visible(const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		bool is_c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;

		if (is_c1)
			fprintf(stderr, "\\x%02x", *at++);
		if (is_c1 || (*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f)
			fprintf(stderr, "\\x%02x", *at);
		else
			fputc(*at, stderr);
	}
}

static void print(enum cmd_report kind, const char *cmd, const char *format, va_list args)
{
	char cut[1024], *whole = NULL;
	va_list again;

	va_copy(again, args);
	vsnprintf(cut, sizeof(cut), format, again);
	va_end(again);
	if (report) {
		report(kind, cut);
		return;
	}
	if (vasprintf(&whole, format, args) < 0)
		whole = NULL;
	flockfile(stderr); /* one line, whatever other threads log */
	if (cmd)
		fprintf(stderr, "%s: ", cmd);
	put_visible(whole ? whole : cut);
	fputc('\n', stderr);
	funlockfile(stderr);
	free(whole);
}

static void complain(const char *cmd, const char *format, va_list args)
{
	print(CMD_REPORT_FAILURE, cmd, format, args);
}

void cmd_say(const char *cmd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(CMD_REPORT_FACT, cmd, format, args);
	va_end(args);
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
	if (!report)
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
