/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Command lines as tables: values, defaults, messages about bad values, --help. Needs no device. */
#include "apps/common/cmdline.h"
#include "apps/common/cmd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum colour { RED, GREEN, BLUE };
static const char *const colours[] = { [RED] = "", [GREEN] = "green", [BLUE] = "blue" };

struct paint {
	bool wet;
	const char *name;
	unsigned int coats;
	uint64_t number, bytes;
	double seconds, wait_s;
	enum colour colour;
	char first;
};

static bool parse_first(const char *text, void *options)
{
	((struct paint *)options)->first = *text;
	return *text != 'x';
}

static const struct cmdline_option options[] = {
	{ "wet", 'w', NULL, "not dry", CMDLINE_FLAG(struct paint, wet) },
	{ "name", 'n', "NAME", "one line\nanother line", CMDLINE_TEXT(struct paint, name) },
	{ "coats", 0, "N", "layers", CMDLINE_UINT(struct paint, coats, 1, 3) },
	{ "number", 0, "N", "of the colour", CMDLINE_U64(struct paint, number, 0, UINT64_MAX) },
	{ "bytes", 'b', "SIZE", "of its name", CMDLINE_SIZE(struct paint, bytes, 1024, 1 << 20) },
	{ "seconds", 's', "S", "to dry", CMDLINE_SECONDS(struct paint, seconds, 0.5, 60) },
	{ "wait", 0, "[=S]", "for it", CMDLINE_SECONDS(struct paint, wait_s, 0, 60),
	  .fallback = "7" },
	{ "colour", 'c', "NAME", "green or blue", CMDLINE_CHOICE(struct paint, colour, colours) },
	{ "first", 0, "TEXT", "a letter", CMDLINE_PARSE(parse_first, "anything but x") },
	{ NULL },
};

static const struct cmdline line = {
	.usage = "Usage: paint [OPTION...] WALL [WALL]\n",
	.options = options,
	.notes = "Paints.\n",
	.arguments = "WALL [WALL]",
	.arguments_min = 1,
	.arguments_max = 2,
};

/* Parses @text, split at blanks. @said: receives what was printed on @stream. */
static int parse_on(const struct cmdline *with, FILE *stream, const char *text, struct paint *paint,
		    char said[2048])
{
	static char words[256];
	char *argv[16] = { "paint" }, *rest = words;
	int argc = 1, status, saved = dup(fileno(stream));
	FILE *out = tmpfile();

	assert_non_null(out);
	snprintf(words, sizeof(words), "%s", text);
	while (rest && *rest)
		argv[argc++] = strsep(&rest, " ");
	dup2(fileno(out), fileno(stream));
	optind = 0;
	status = cmdline_parse(with, argc, argv, paint);
	fflush(stream);
	dup2(saved, fileno(stream));
	close(saved);
	rewind(out);
	said[fread(said, 1, 2047, out)] = '\0';
	fclose(out);
	return status;
}

static void each_kind_of_value_is_stored(void **state)
{
	struct paint paint = { 0 };
	char said[2048];

	(void)state;
	assert_int_equal(parse_on(&line, stderr,
				  "-w --name white --coats 3 wall --number=18446744073709551615 "
				  "-b 4K -s0.5 --wait -c blue --first yes",
				  &paint, said),
			 CMDLINE_PARSED);
	assert_string_equal(said, "");
	assert_true(paint.wet);
	assert_string_equal(paint.name, "white");
	assert_int_equal(paint.coats, 3);
	assert_true(paint.number == UINT64_MAX);
	assert_int_equal(paint.bytes, 4096);
	assert_true(paint.seconds == 0.5);
	assert_true(paint.wait_s == 7);
	assert_int_equal(paint.colour, BLUE);
	assert_int_equal(paint.first, 'y');
}

static void an_option_that_is_not_given_keeps_its_default(void **state)
{
	struct paint paint = { .coats = 2, .name = "grey" };
	char said[2048];

	(void)state;
	assert_int_equal(parse_on(&line, stderr, "wall", &paint, said), CMDLINE_PARSED);
	assert_int_equal(paint.coats, 2);
	assert_string_equal(paint.name, "grey");
}

static void a_bad_value_is_refused_with_the_good_ones(void **state)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "--coats 4 wall", "paint: --coats 4: expected 1 to 3\n" },
		{ "--coats -1 wall", "paint: --coats -1: expected 1 to 3\n" },
		{ "--bytes 2M wall", "paint: --bytes 2M: expected 1.0 KiB to 1.0 MiB\n" },
		{ "-b 1Q wall", "paint: --bytes 1Q: expected 1.0 KiB to 1.0 MiB\n" },
		{ "-s soon wall", "paint: --seconds soon: expected 0.5 to 60 seconds\n" },
		{ "--wait=61 wall", "paint: --wait 61: expected 0 to 60 seconds\n" },
		{ "-c red wall", "paint: --colour red: expected green or blue\n" },
		{ "--colour= wall", "paint: --colour : expected green or blue\n" },
		{ "--first x wall", "paint: --first x: expected anything but x\n" },
		{ "--wett wall", "paint: unrecognized option '--wett'\n"
				"paint: did you mean '--wet'?\n" },
		{ "--dry wall", "paint: unrecognized option '--dry'\n" },
		{ "-W wall", "paint: invalid option -- 'W'\n" },
		{ "wall --name", "paint: option '--name' requires an argument\n" },
		{ "--wet", "paint: expected: WALL [WALL]\n" },
		{ "a b c", "paint: expected: WALL [WALL]\n" },
	};
	struct paint paint = { 0 };
	char said[2048], hint[] = "Try 'paint --help'.\n";
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse_on(&line, stderr, cases[i].text, &paint, said), EXIT_USAGE);
		length = strlen(cases[i].said);
		assert_memory_equal(said, cases[i].said, length);
		assert_string_equal(said + length, hint);
	}
}

static void a_prefix_of_options_ends_at_the_first_argument(void **state)
{
	struct cmdline prefix = line;
	struct paint paint = { 0 };
	char said[2048];

	(void)state;
	prefix.is_prefix = true;
	assert_int_equal(parse_on(&prefix, stderr, "-c green wall --wet", &paint, said),
			 CMDLINE_PARSED);
	assert_int_equal(paint.colour, GREEN);
	assert_false(paint.wet);
	assert_int_equal(optind, 3);
}

static void help_lists_the_options_in_a_column(void **state)
{
	struct paint paint = { 0 };
	char said[2048];

	(void)state;
	assert_int_equal(parse_on(&line, stdout, "--help", &paint, said), EXIT_OK);
	assert_string_equal(said, "Usage: paint [OPTION...] WALL [WALL]\n\n"
				  "  -w, --wet              not dry\n"
				  "  -n, --name NAME        one line\n"
				  "                         another line\n"
				  "      --coats N          layers\n"
				  "      --number N         of the colour\n"
				  "  -b, --bytes SIZE       of its name\n"
				  "  -s, --seconds S        to dry\n"
				  "      --wait[=S]         for it\n"
				  "  -c, --colour NAME      green or blue\n"
				  "      --first TEXT       a letter\n"
				  "  -h, --help\n\n"
				  "Paints.\n");
}

static void a_shell_is_given_options_and_their_values(void **state)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "--complete", "--wet\n--name\n--coats\n--number\n--bytes\n--seconds\n--wait\n"
				"--colour\n--first\n--help\n" },
		{ "--complete --colour", "green\nblue\n" },
		{ "--complete -c", "green\nblue\n" },
		{ "--complete --name", "NAME\n" },
		{ "--complete --wet", "" },
		{ "--complete --wait", "" },
		{ "--complete --nothing", "" },
	};
	struct paint paint = { 0 };
	char said[2048];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse_on(&line, stdout, cases[i].text, &paint, said), EXIT_OK);
		assert_string_equal(said, cases[i].said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_value_is_stored),
		cmocka_unit_test(an_option_that_is_not_given_keeps_its_default),
		cmocka_unit_test(a_bad_value_is_refused_with_the_good_ones),
		cmocka_unit_test(a_prefix_of_options_ends_at_the_first_argument),
		cmocka_unit_test(help_lists_the_options_in_a_column),
		cmocka_unit_test(a_shell_is_given_options_and_their_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
