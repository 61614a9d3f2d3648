/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct text_table *table, unsigned int columns)
{
	*table = (struct text_table){ .columns = columns, .left = 1 };
}

void table_align_left(struct text_table *table, unsigned int column)
{
	table->left |= 1u << column;
}

void table_add(struct text_table *table, const char *format, ...)
{
	va_list args;

	if (table->cells == table->room) {
		table->room = table->room ? 2 * table->room : 64;
		table->cell = reallocarray(table->cell, table->room, sizeof(*table->cell));
		if (!table->cell)
			abort();
	}
	va_start(args, format);
	if (vasprintf(&table->cell[table->cells], format, args) < 0)
		abort();
	va_end(args);
	table->cells++;
}

void table_print(const struct text_table *table, FILE *out)
{
	int width[TABLE_COLUMNS_MAX] = { 0 };

	for (size_t i = 0; i < table->cells; i++) {
		int length = (int)strlen(table->cell[i]);
		int *column = &width[i % table->columns];

		*column = length > *column ? length : *column;
	}
	for (size_t i = 0; i < table->cells; i++) {
		unsigned int column = i % table->columns;
		bool is_left = table->left >> column & 1, is_last = column + 1 == table->columns;

		fputs(column ? "  " : "", out);
		fprintf(out, is_left ? "%-*s" : "%*s", is_left && is_last ? 0 : width[column],
			table->cell[i]);
		if (is_last)
			fputc('\n', out);
	}
}

void table_fini(struct text_table *table)
{
	for (size_t i = 0; i < table->cells; i++)
		free(table->cell[i]);
	free(table->cell);
}
