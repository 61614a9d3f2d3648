/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/cmdline.h"
#include "apps/common/cmd.h"
#include "apps/common/nearest.h"
#include "apps/common/number.h"
#include "apps/config/settings.h"
#include "apps/common/size.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 40
#define HELP_COLUMN 25

static const struct cmdline_option help_option = { .name = "help", .letter = 'h' };

/* getopt_long()'s value for an option: its letter, or its number beyond all letters. */
static int option_value(const struct cmdline *line, const struct cmdline_option *option)
{
	return option->letter ? option->letter : UCHAR_MAX + 1 + (int)(option - line->options);
}

static bool is_optional(const struct cmdline_option *option)
{
	return option->argument && option->argument[0] == '[';
}

static void getopt_add(int value, const struct cmdline_option *option, struct option *name,
		       char *letters)
{
	*name = (struct option){
		.name = option->name,
		.has_arg = is_optional(option) ? optional_argument :
			   option->argument    ? required_argument :
						 no_argument,
		.val = value,
	};
	if (!option->letter)
		return;
	letters += strlen(letters);
	*letters++ = option->letter;
	strcpy(letters, is_optional(option) ? "::" : option->argument ? ":" : "");
}

static void getopt_tables(const struct cmdline *line, struct option *names, char *letters)
{
	const struct cmdline_option *option = line->options;

	strcpy(letters, line->is_prefix ? "+" : "");
	for (; option && option->name; option++) {
		assert(option - line->options < OPTIONS_MAX);
		getopt_add(option_value(line, option), option, names++, letters);
	}
	getopt_add('h', &help_option, names++, letters);
	*names = (struct option){ NULL };
}

/* Prints the names in a column, then the lines of the help text beside it. */
static void print_option(const struct cmdline_option *option)
{
	const char *text = option->help;
	int used = option->letter ? printf("  -%c, --%s", option->letter, option->name) :
				    printf("      --%s", option->name);

	if (option->argument)
		used += printf("%s%s", is_optional(option) ? "" : " ", option->argument);
	if (text)
		printf("%*s", used + 2 > HELP_COLUMN ? 2 : HELP_COLUMN - used, "");
	for (; text && *text; text++) {
		putchar(*text);
		if (*text == '\n')
			printf("%*s", HELP_COLUMN, "");
	}
	putchar('\n');
}

static int print_help(const struct cmdline *line)
{
	fputs(line->usage, stdout);
	if (line->print_more)
		line->print_more();
	putchar('\n');
	for (const struct cmdline_option *option = line->options; option && option->name; option++)
		print_option(option);
	print_option(&help_option);
	if (line->notes)
		printf("\n%s", line->notes);
	return EXIT_OK;
}

static bool is_choice(const struct cmdline_option *option, size_t i)
{
	return option->names[i] && *option->names[i];
}

static bool choose(const struct cmdline_option *option, const char *text, unsigned int *choice)
{
	for (size_t i = 0; i < option->nr_names; i++) {
		if (!is_choice(option, i) || strcmp(text, option->names[i]))
			continue;
		*choice = (unsigned int)i;
		return true;
	}
	return false;
}

/* A flag has no text on a command line. */
bool cmdline_parse_flag(const char *text, bool *flag)
{
	static const char *const yes[] = { "true", "yes", "1" };
	static const char *const no[] = { "false", "no", "0" };

	*flag = !text;
	for (size_t i = 0; text && i < sizeof(yes) / sizeof(yes[0]); i++) {
		*flag = !strcmp(text, yes[i]);
		if (*flag || !strcmp(text, no[i]))
			return true;
	}
	return !text;
}

/* Return: whether @text is a good value. */
static bool store(const struct cmdline_option *option, const char *text, void *options)
{
	void *at = (char *)options + option->at;
	uint64_t bytes;

	switch (option->kind) {
	case CMDLINE_KIND_FLAG:
		return cmdline_parse_flag(text, at);
	case CMDLINE_KIND_TEXT:
		*(const char **)at = text;
		return !option->is_good || option->is_good(text);
	case CMDLINE_KIND_UINT:
		return number_parse_uint(text, (unsigned int)option->min, (unsigned int)option->max,
					 at);
	case CMDLINE_KIND_U64:
		return number_parse(text, option->min, option->max, at);
	case CMDLINE_KIND_SIZE:
		if (size_parse(text, &bytes) || bytes < option->min || bytes > option->max)
			return false;
		*(uint64_t *)at = bytes;
		return true;
	case CMDLINE_KIND_SECONDS:
		return number_parse_double(text, option->least, option->most, at);
	case CMDLINE_KIND_CHOICE:
		return choose(option, text, at);
	default:
		return option->parse(text, options);
	}
}

/* Formats as "a, b or c". */
static void list_names(const struct cmdline_option *option, char *text, size_t size)
{
	size_t used = 0, left = 0;

	for (size_t i = 0; i < option->nr_names; i++)
		left += is_choice(option, i);
	for (size_t i = 0; i < option->nr_names && used < size; i++) {
		if (!is_choice(option, i))
			continue;
		left--;
		used += (size_t)snprintf(text + used, size - used, "%s%s", option->names[i],
					 left > 1 ? ", " :
					 left	  ? " or " :
						    "");
	}
}

/* @where: the words before the value, such as "--memory" */
static int refuse(const char *cmd, const struct cmdline_option *option, const char *where,
		  const char *text)
{
	char good[128] = "";

	if (option->expected)
		snprintf(good, sizeof(good), "%s", option->expected);
	else if (option->kind == CMDLINE_KIND_FLAG)
		snprintf(good, sizeof(good), "true or false");
	else if (option->kind == CMDLINE_KIND_CHOICE)
		list_names(option, good, sizeof(good));
	else if (option->kind == CMDLINE_KIND_SECONDS)
		snprintf(good, sizeof(good), "%g to %g seconds", option->least, option->most);
	else if (option->kind == CMDLINE_KIND_SIZE && option->max == UINT64_MAX)
		snprintf(good, sizeof(good), "a size of at least %s",
			 size_format(option->min).text);
	else if (option->kind == CMDLINE_KIND_SIZE)
		snprintf(good, sizeof(good), "%s to %s", size_format(option->min).text,
			 size_format(option->max).text);
	else
		snprintf(good, sizeof(good), "%" PRIu64 " to %" PRIu64, option->min, option->max);
	return usage_error(cmd, "%s %s: expected %s", where, text, good);
}

static int check_arguments(const struct cmdline *line, int count, char **argv)
{
	if (count >= line->arguments_min && count <= line->arguments_max)
		return CMDLINE_PARSED;
	if (!line->arguments_max)
		return usage_error(argv[0], "unexpected argument '%s'", argv[optind]);
	return usage_error(argv[0], "expected: %s", line->arguments);
}

static bool is_called(const struct cmdline_option *option, const char *text)
{
	const char letter[] = { '-', option->letter, '\0' };

	return (option->letter && !strcmp(text, letter)) ||
	       (!strncmp(text, "--", 2) && !strcmp(text + 2, option->name));
}

static void print_values(const struct cmdline_option *option)
{
	if (!option->nr_names && !option->print_names && option->argument && !is_optional(option))
		puts(option->argument);
	if (option->print_names)
		option->print_names();
	for (size_t i = 0; i < option->nr_names; i++)
		if (is_choice(option, i))
			puts(option->names[i]);
}

/* @wanted: an option whose values are wanted, or NULL. */
static int print_completions(const struct cmdline *line, const char *wanted)
{
	for (const struct cmdline_option *option = line->options; option && option->name;
	     option++) {
		if (!wanted)
			printf("--%s\n", option->name);
		else if (is_called(option, wanted))
			print_values(option);
	}
	if (!wanted)
		puts("--help");
	return EXIT_OK;
}

/* An option of the command line, and its argument; NULL: none. */
struct given {
	const struct cmdline_option *option;
	const char *text;
};

static int store_given(const char *cmd, const struct given *given, void *options)
{
	char where[64];

	if (store(given->option, given->text, options))
		return CMDLINE_PARSED;
	snprintf(where, sizeof(where), "--%s", given->option->name);
	return refuse(cmd, given->option, where, given->text);
}

/* In the file, flags are true or false, and nothing else is. */
static bool store_setting(const struct setting *setting, void *options)
{
	if (setting->line && setting->is_boolean != (setting->option->kind == CMDLINE_KIND_FLAG))
		return false;
	return store(setting->option, setting->text, options);
}

static int apply(const struct cmdline *line, const char *cmd, const struct settings *settings,
		 const struct setting *setting, void *options)
{
	char where[512];

	if (store_setting(setting, options))
		return CMDLINE_PARSED;
	settings_where(settings, line, setting, where, sizeof(where));
	strncat(where, " =", sizeof(where) - strlen(where) - 1);
	return refuse(cmd, setting->option, where, setting->text);
}

int cmdline_apply(const struct cmdline *line, const char *cmd, const struct settings *settings,
		  void *options)
{
	int status = CMDLINE_PARSED;

	for (size_t i = 0; i < settings->count && status == CMDLINE_PARSED; i++)
		status = apply(line, cmd, settings, &settings->values[i], options);
	return status;
}

static bool is_given(const struct given *given, size_t count, const struct cmdline_option *option)
{
	for (size_t i = 0; i < count; i++)
		if (given[i].option == option)
			return true;
	return false;
}

/* The options that the command line does not have, from elsewhere. */
static int apply_others(const struct cmdline *line, const char *cmd, const struct given *given,
			size_t count, void *options)
{
	struct settings settings;
	int status;

	if (!line->section)
		return CMDLINE_PARSED;
	status = settings_load(&settings, cmd, line, settings_path());
	for (size_t i = 0; i < settings.count && status == CMDLINE_PARSED; i++)
		if (!is_given(given, count, settings.values[i].option))
			status = apply(line, cmd, &settings, &settings.values[i], options);
	return status;
}

/* After getopt's message about @word. getopt sets optopt to 0 if no option is so called. */
static int unknown_option(const struct cmdline *line, const char *cmd, const char *word)
{
	struct nearest nearest;
	char typed[64];

	if (optopt || strncmp(word, "--", 2))
		return usage_error(cmd, NULL);
	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	nearest = nearest_begin(typed);
	for (const struct cmdline_option *option = line->options; option && option->name; option++)
		nearest_consider(&nearest, option->name);
	nearest_consider(&nearest, help_option.name);
	return nearest.name ? usage_error(cmd, "did you mean '--%s'?", nearest.name) :
			      usage_error(cmd, NULL);
}

/* Return: CMDLINE_PARSED, or an exit status after a message or --help. */
static int collect(const struct cmdline *line, int argc, char **argv, struct given *given,
		   size_t *count)
{
	char letters[3 * (OPTIONS_MAX + 2)];
	struct option names[OPTIONS_MAX + 2];
	const struct cmdline_option *option;
	int value;

	getopt_tables(line, names, letters);
	optind = 0; /* a command line may be parsed again */
	while ((value = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		if (value == 'h')
			return print_help(line);
		if (value == '?')
			return unknown_option(line, argv[0], argv[optind - 1]);
		option = line->options;
		while (option_value(line, option) != value)
			option++;
		given[(*count)++] = (struct given){ option, optarg ? optarg : option->fallback };
	}
	return check_arguments(line, argc - optind, argv);
}

/* -abc are three options in one word. */
static size_t options_max(int argc, char **argv)
{
	size_t most = 1;

	for (int i = 0; i < argc; i++)
		most += strlen(argv[i]) + 1;
	return most;
}

int cmdline_parse(const struct cmdline *line, int argc, char **argv, void *options)
{
	struct given *given;
	size_t count = 0;
	int status;

	if (argc > 1 && !strcmp(argv[1], "--complete"))
		return print_completions(line, argc > 2 ? argv[2] : NULL);
	given = calloc(options_max(argc, argv), sizeof(*given));
	if (!given)
		return failure(argv[0], "out of memory");
	status = collect(line, argc, argv, given, &count);
	if (status == CMDLINE_PARSED)
		status = apply_others(line, argv[0], given, count, options);
	for (size_t i = 0; i < count && status == CMDLINE_PARSED; i++)
		status = store_given(argv[0], &given[i], options);
	free(given);
	return status;
}

static bool text_differs(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) : one != other;
}

bool cmdline_differs(const struct cmdline_option *option, const void *one, const void *other)
{
	static const size_t sizes[] = {
		[CMDLINE_KIND_FLAG] = sizeof(bool),
		[CMDLINE_KIND_UINT] = sizeof(unsigned int),
		[CMDLINE_KIND_U64] = sizeof(uint64_t),
		[CMDLINE_KIND_SIZE] = sizeof(uint64_t),
		[CMDLINE_KIND_SECONDS] = sizeof(double),
		[CMDLINE_KIND_CHOICE] = sizeof(unsigned int),
		[CMDLINE_KIND_PARSE] = 0,
	};
	const char *first = (const char *)one + option->at;
	const char *second = (const char *)other + option->at;

	if (option->kind == CMDLINE_KIND_TEXT)
		return text_differs(*(const char *const *)first, *(const char *const *)second);
	return memcmp(first, second, sizes[option->kind]);
}
