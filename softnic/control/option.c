// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* One table of options for the environment variable, the command and the manual. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"

enum option_kind { COUNT, PERCENT };

static const struct {
	const char *name, *help;
	enum option_kind kind;
	uint64_t min, max, otherwise;
} table[OPTIONS] = {
#define OPTION_ROW(NAME, name, kind, min, max, otherwise, help) \
	[OPTION_##NAME] = { name, help, kind, min, max, otherwise },
	SOFTNIC_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};

const char *option_name(enum softnic_option option)
{
	return table[option].name;
}

const char *option_help(enum softnic_option option)
{
	return table[option].help;
}

int option_is_valid(uint32_t option, uint64_t value)
{
	if (option >= OPTIONS)
		return 0;
	return (value >= table[option].min && value <= table[option].max) ||
	       (value == OPTION_NEVER && value == table[option].otherwise);
}

void option_defaults(struct softnic_options *o)
{
	unsigned int i;

	*o = (struct softnic_options){ 0 };
	for (i = 0; i < OPTIONS; i++)
		o->value[i] = table[i].otherwise;
}

static bool parse_count(const char *text, uint64_t *value)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	*value = OPTION_NEVER;
	if (!strcmp(text, "never"))
		return true;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno)
		return false;
	if (*end && (unit = strchr(units, *end))) {
		unsigned int shift = 10 * (unit - units + 1);

		if (*value > UINT64_MAX >> shift)
			return false;
		*value <<= shift;
		end++;
	}
	return !*end;
}

/* strtod() would depend on the decimal point of the program's locale. */
static bool parse_percent(const char *text, uint64_t *value)
{
	const uint32_t one = OPTION_PPM / 100;
	uint32_t digit = one;

	if (*text < '0' || *text > '9')
		return false;
	for (*value = 0; *text >= '0' && *text <= '9' && *value <= OPTION_PPM; text++)
		*value = *value * 10 + (*text - '0') * one;
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++) {
			digit /= 10;
			*value += (*text - '0') * digit;
		}
	}
	return !*text;
}

static int find_option(const char *name, size_t length)
{
	int i;

	for (i = 0; i < OPTIONS; i++)
		if (strlen(table[i].name) == length && !memcmp(table[i].name, name, length))
			return i;
	return -1;
}

static int explain_name(const char *name, enum softnic_option first, char *why, size_t size)
{
	size_t n =
		snprintf(why, size, "no option '%.*s'; there are", (int)strcspn(name, "="), name);
	int i;

	for (i = first; i < OPTIONS && n < size; i++)
		n += snprintf(why + n, size - n, "%s %s", i == (int)first ? "" : ",",
			      table[i].name);
	return -EINVAL;
}

static int explain_value(int i, const char *text, char *why, size_t size)
{
	if (table[i].kind == PERCENT)
		snprintf(why, size, "%s=%s: not a percentage; try a number from 0 to 100",
			 table[i].name, text);
	else
		snprintf(why, size, "%s=%s: not a number from %" PRIu64 " to %" PRIu64,
			 table[i].name, text, table[i].min, table[i].max);
	return -EINVAL;
}

static int parse_one(const char *text, enum softnic_option first, struct softnic_options *o,
		     char *why, size_t size)
{
	const char *equals = strchr(text, '=');
	int i = find_option(text, equals ? (size_t)(equals - text) : strlen(text));
	uint64_t value;
	bool ok;

	if (i < (int)first)
		return explain_name(text, first, why, size);
	if (!equals)
		return explain_value(i, "", why, size);
	ok = table[i].kind == PERCENT ? parse_percent(equals + 1, &value) :
					parse_count(equals + 1, &value);
	if (!ok || !option_is_valid(i, value))
		return explain_value(i, equals + 1, why, size);
	o->value[i] = value;
	o->given |= 1u << i;
	return 0;
}

int option_parse(const char *text, enum softnic_option first, struct softnic_options *o, char *why,
		 size_t why_size)
{
	char *copy = strdup(text), *next = copy, *one;
	int rc = 0;

	if (!copy) {
		snprintf(why, why_size, "out of memory");
		return -EINVAL;
	}
	while (!rc && *text && (one = strsep(&next, ",")))
		rc = parse_one(one, first, o, why, why_size);
	free(copy);
	return rc;
}
