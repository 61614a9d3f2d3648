/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/top/section.h"

#include "apps/common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct top_row *top_section_add(struct top_section *section)
{
	struct top_row *rows =
		reallocarray(section->rows, section->nr_rows + 1, sizeof(*section->rows));

	if (!rows)
		return NULL;
	section->rows = rows;
	rows += section->nr_rows++;
	memset(rows, 0, sizeof(*rows));
	return rows;
}

void top_row_text(struct top_row *row, unsigned int *at, const char *text)
{
	char *to = row->value[(*at)++].text;

	snprintf(to, TOP_TEXT_MAX, "%s", text);
	for (; *to; to++)
		if (*to < ' ' || *to > '~')
			*to = '?';
}

void top_row_number(struct top_row *row, unsigned int *at, double number)
{
	row->value[(*at)++].number = number;
}

unsigned int top_section_columns(const struct top_section *section)
{
	unsigned int count = 0;

	while (section->columns[count].json)
		count++;
	return count;
}

unsigned int top_section_find(const struct top_section *section, const char *head)
{
	for (unsigned int i = 0; section->columns[i].json; i++)
		if (section->columns[i].head && !strcmp(section->columns[i].head, head))
			return i;
	return TOP_COLUMNS_MAX;
}

struct order {
	unsigned int column;
	bool is_text, is_reversed;
};

/* The greatest number first, and texts by the alphabet. */
static int compare(const void *one, const void *other, void *arg)
{
	const struct order *order = arg;
	const struct top_value *a = &((const struct top_row *)one)->value[order->column];
	const struct top_value *b = &((const struct top_row *)other)->value[order->column];
	int sign = order->is_text ? strcmp(a->text, b->text) :
				    (a->number < b->number) - (a->number > b->number);

	return order->is_reversed ? -sign : sign;
}

void top_section_sort(struct top_section *section, unsigned int column, bool is_reversed)
{
	struct order order = { column, section->columns[column].kind == TOP_TEXT, is_reversed };

	if (section->nr_rows)
		qsort_r(section->rows, section->nr_rows, sizeof(*section->rows), compare, &order);
}

static bool row_contains(const struct top_section *section, const struct top_row *row,
			 const char *text)
{
	for (unsigned int i = 0; section->columns[i].json; i++)
		if (strcasestr(top_section_text(section, row, i).text, text))
			return true;
	return false;
}

void top_section_filter(struct top_section *section, const char *text)
{
	size_t kept = 0;

	for (size_t i = 0; i < section->nr_rows; i++)
		if (row_contains(section, &section->rows[i], text))
			section->rows[kept++] = section->rows[i];
	section->nr_rows = kept;
}

static struct top_text rate_text(double rate)
{
	struct top_text text;

	if (rate >= 1e6)
		snprintf(text.text, sizeof(text.text), "%.1f M/s", rate / 1e6);
	else if (rate >= 1e4)
		snprintf(text.text, sizeof(text.text), "%.1f k/s", rate / 1e3);
	else
		snprintf(text.text, sizeof(text.text), "%.0f/s", rate);
	return text;
}

struct top_text top_section_text(const struct top_section *section, const struct top_row *row,
				 unsigned int column)
{
	const struct top_value *value = &row->value[column];
	struct top_text text = { "-" };

	switch (section->columns[column].kind) {
	case TOP_TEXT:
		snprintf(text.text, sizeof(text.text), "%s", *value->text ? value->text : "-");
		break;
	case TOP_NUMBER:
		snprintf(text.text, sizeof(text.text), "%.0f", value->number);
		break;
	case TOP_BYTES:
		snprintf(text.text, sizeof(text.text), "%s",
			 size_format((uint64_t)value->number).text);
		break;
	case TOP_BYTES_S:
		snprintf(text.text, sizeof(text.text), "%s/s",
			 size_format((uint64_t)value->number).text);
		break;
	case TOP_RATE:
		return rate_text(value->number);
	case TOP_MICROSECONDS:
		if (value->number >= 0)
			snprintf(text.text, sizeof(text.text), "%.1f us", value->number);
		break;
	case TOP_PART:
		snprintf(text.text, sizeof(text.text), "%.1f %%", 100 * value->number);
		break;
	}
	return text;
}

static void put_value(const struct top_column *column, const struct top_value *value,
		      struct json *json)
{
	if (column->kind == TOP_TEXT)
		json_string(json, column->json, value->text);
	else if (column->kind == TOP_NUMBER || column->kind == TOP_BYTES)
		json_uint(json, column->json, (uint64_t)value->number);
	else if (column->kind != TOP_MICROSECONDS || value->number >= 0)
		json_double(json, column->json, value->number);
}

void top_section_json(const struct top_section *section, struct json *json)
{
	json_open_array(json, section->json);
	for (size_t i = 0; i < section->nr_rows; i++) {
		json_open_object(json, NULL);
		for (unsigned int k = 0; section->columns[k].json; k++)
			put_value(&section->columns[k], &section->rows[i].value[k], json);
		json_close(json);
	}
	json_close(json);
}

void top_section_fini(struct top_section *section)
{
	free(section->rows);
	section->rows = NULL;
	section->nr_rows = 0;
}
