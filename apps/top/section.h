/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A section of weir top: rows of one kind, such as donors. The columns are declared once. Tables,
 * the screen, JSON, sorting and filtering come from them.
 */
#ifndef WEIR_APPS_TOP_SECTION_H
#define WEIR_APPS_TOP_SECTION_H

#include "apps/common/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_COLUMNS_MAX 18
#define TOP_TEXT_MAX 64

enum top_kind {
	TOP_TEXT,
	TOP_NUMBER,
	TOP_BYTES,
	TOP_BYTES_S, /* bytes a second */
	TOP_RATE, /* a second */
	TOP_MICROSECONDS, /* less than 0: unknown */
	TOP_PART, /* a fraction of 1 */
};

/**
 * struct top_column - a column
 * @head: above the column, and its name for sorting; NULL: in JSON only
 * @json: its name in JSON
 * @kind: how to show it; numbers are sorted greatest first
 */
struct top_column {
	const char *head, *json;
	enum top_kind kind;
};

/* A number, or a text: printable. */
struct top_value {
	double number;
	char text[TOP_TEXT_MAX];
};

struct top_row {
	struct top_value value[TOP_COLUMNS_MAX];
};

/**
 * struct top_section - a section; without rows at first
 * @title: above the section
 * @json: its name in JSON
 * @columns: those wanted most come first; ends with an entry without @json
 * @rows: @nr_rows of them; top_section_fini() frees them
 */
struct top_section {
	const char *title, *json;
	const struct top_column *columns;
	struct top_row *rows;
	size_t nr_rows;
};

struct top_text {
	char text[TOP_TEXT_MAX];
};

/* Adds an empty row. NULL: no memory. */
struct top_row *top_section_add(struct top_section *section);

/* For the next value of a row: @at counts the columns. Unprintable characters become "?". */
void top_row_text(struct top_row *row, unsigned int *at, const char *text);
void top_row_number(struct top_row *row, unsigned int *at, double number);

unsigned int top_section_columns(const struct top_section *section);

/* Return: the column with this head, or TOP_COLUMNS_MAX. */
unsigned int top_section_find(const struct top_section *section, const char *head);

void top_section_sort(struct top_section *section, unsigned int column, bool is_reversed);

/* Removes the rows of which no text contains @text. */
void top_section_filter(struct top_section *section, const char *text);

struct top_text top_section_text(const struct top_section *section, const struct top_row *row,
				 unsigned int column);

void top_section_json(const struct top_section *section, struct json *json);

void top_section_fini(struct top_section *section);

#endif
