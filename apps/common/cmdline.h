/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Command lines as tables. A table declares each option once. Parsing, --help, the messages about
 * bad values, and the names in the environment and in the configuration file come from it.
 */
#ifndef WEIR_APPS_COMMON_CMDLINE_H
#define WEIR_APPS_COMMON_CMDLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>

/* cmdline_parse() has stored all options, and the command goes on. */
#define CMDLINE_PARSED (-1)

enum cmdline_kind {
	CMDLINE_KIND_FLAG,
	CMDLINE_KIND_TEXT,
	CMDLINE_KIND_UINT,
	CMDLINE_KIND_U64,
	CMDLINE_KIND_SIZE,
	CMDLINE_KIND_SECONDS,
	CMDLINE_KIND_CHOICE,
	CMDLINE_KIND_PARSE,
};

/**
 * struct cmdline_option - an option of a command
 * @name: long name, without dashes
 * @letter: short name; 0: none
 * @argument: the argument's name in --help; NULL: a flag; "[=NAME]": an optional argument
 * @help: text in --help; its lines end with '\n', except the last
 * @kind: how to parse the argument. This and the next fields come from CMDLINE_FLAG() and so on
 * @at: offset of the value in the command's struct
 * @min: least number or size
 * @max: greatest number or size
 * @least: shortest duration
 * @most: longest duration
 * @names: for a choice, the names by value; NULL and "" stand for values that users cannot choose.
 *	For other kinds, values for shells' completion
 * @nr_names: entries of @names
 * @print_names: prints more values for completion, a line for each; NULL: none
 * @is_good: whether a text may be stored; NULL: any may
 * @parse: stores an argument of another kind in the command's struct; false: the value is bad
 * @expected: the good values, for messages; NULL: derived from the limits or names
 * @is_usable: for 'weir config check': whether the file or address in the text can be used; see
 *	usable.h. NULL: the text is none
 * @is_repeatable: each argument counts, not just the last; a list in the file
 * @fallback: argument that an optional argument stands for if it is not given
 */
struct cmdline_option {
	const char *name;
	char letter;
	const char *argument;
	const char *help;
	enum cmdline_kind kind;
	size_t at;
	uint64_t min, max;
	double least, most;
	const char *const *names;
	size_t nr_names;
	void (*print_names)(void);
	bool (*is_good)(const char *text);
	bool (*parse)(const char *text, void *options);
	const char *expected;
	bool (*is_usable)(const struct cmdline_option *option, const char *text,
			  const void *options, struct weir_error *error);
	bool is_repeatable;
	const char *fallback;
};

/* The offset of @member, which must be of the type @stored. */
#define CMDLINE_AT(type, member, stored) \
	(offsetof(type, member) + \
	 0 * sizeof(char[CMDLINE_IS(((type *)0)->member, stored) ? 1 : -1]))
#define CMDLINE_IS(value, type) __builtin_types_compatible_p(__typeof__(value), type)

#define CMDLINE_FLAG(type, member) \
	.kind = CMDLINE_KIND_FLAG, .at = CMDLINE_AT(type, member, bool)
#define CMDLINE_TEXT(type, member) \
	.kind = CMDLINE_KIND_TEXT, .at = CMDLINE_AT(type, member, const char *)
#define CMDLINE_UINT(type, member, low, high) \
	.kind = CMDLINE_KIND_UINT, .at = CMDLINE_AT(type, member, unsigned int), \
	.min = (low), .max = (high)
#define CMDLINE_U64(type, member, low, high) \
	.kind = CMDLINE_KIND_U64, .at = CMDLINE_AT(type, member, uint64_t), \
	.min = (low), .max = (high)
/* A number of bytes, such as 64M. */
#define CMDLINE_SIZE(type, member, low, high) \
	.kind = CMDLINE_KIND_SIZE, .at = CMDLINE_AT(type, member, uint64_t), \
	.min = (low), .max = (high)
/* A duration in seconds, such as 0.5. */
#define CMDLINE_SECONDS(type, member, low, high) \
	.kind = CMDLINE_KIND_SECONDS, .at = CMDLINE_AT(type, member, double), \
	.least = (low), .most = (high)
/* A value of an enum or an unsigned int, by its name in the array @list. */
#define CMDLINE_CHOICE(type, member, list) \
	.kind = CMDLINE_KIND_CHOICE, .at = offsetof(type, member) + \
	0 * sizeof(char[sizeof(((type *)0)->member) == sizeof(unsigned int) ? 1 : -1]), \
	.names = (list), .nr_names = sizeof(list) / sizeof((list)[0])
/* A text for which @check returns true; @good says which these are. */
#define CMDLINE_CHECKED(type, member, check, good) \
	CMDLINE_TEXT(type, member), .is_good = (check), .expected = (good)
/* Another kind: @function stores it, and @good says which values it takes. */
#define CMDLINE_PARSE(function, good) \
	.kind = CMDLINE_KIND_PARSE, .parse = (function), .expected = (good)

/* Values for completion, of an option that is no choice. */
#define CMDLINE_OFFERS(list) .names = (list), .nr_names = sizeof(list) / sizeof((list)[0])

#define CMDLINE_JSON(type, member) \
	{ "json", 'j', NULL, "for programs", CMDLINE_FLAG(type, member) }

/**
 * struct cmdline - the command line of a command; --help is added to each
 * @usage: text of --help above the options
 * @print_more: prints more text there, or NULL
 * @options: ends with an empty entry; NULL: none besides --help
 * @notes: text of --help below the options, or NULL
 * @arguments: the arguments, for the message if there are too few or too many
 * @arguments_min: least number of arguments
 * @arguments_max: greatest number of arguments
 * @is_prefix: options end at the first argument
 * @section: of the configuration file, for services: see settings.h; NULL: options come from the
 *	command line alone
 * @size: with a section: bytes of the command's struct
 * @check: whether the command can start with these options together. Prints why it cannot. The
 *	command calls it itself, and so does 'weir config check'. NULL: it can
 */
struct cmdline {
	const char *usage;
	void (*print_more)(void);
	const struct cmdline_option *options;
	const char *notes;
	const char *arguments;
	int arguments_min, arguments_max;
	bool is_prefix;
	const char *section;
	size_t size;
	int (*check)(const char *cmd, const void *options);
};

struct settings;

/**
 * cmdline_parse() - parse a command line, or print --help
 * @line: the table
 * @argc: as main() gets it
 * @argv: the same; argv[0] is the command's name for messages
 * @options: the command's struct, with defaults; options that are given replace these
 *
 * On success argv[optind] is the first argument.
 *
 * For shells' completion, '--complete' alone prints each option, and '--complete OPTION' the names
 * of a choice, or else the argument's name in --help, if any.
 *
 * Return: CMDLINE_PARSED, or an exit status after --help, --complete or a message.
 */
int cmdline_parse(const struct cmdline *line, int argc, char **argv, void *options);

/**
 * cmdline_apply() - store settings as if they were given on the command line
 * @line: the table
 * @cmd: argv[0] of the command, for messages
 * @settings: from settings_load()
 * @options: the command's struct
 *
 * Return: CMDLINE_PARSED, or an exit status after a message.
 */
int cmdline_apply(const struct cmdline *line, const char *cmd, const struct settings *settings,
		  void *options);

/* Reads the value of a flag from elsewhere than a command line. Return: false if it is none. */
bool cmdline_parse_flag(const char *text, bool *flag);

/* Whether two of the command's structs differ in an option. False if a function stores it. */
bool cmdline_differs(const struct cmdline_option *option, const void *one, const void *other);

#endif
