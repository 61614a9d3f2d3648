/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A text table: first column left-aligned, others right-aligned unless asked. */
#ifndef WEIR_APPS_COMMON_TABLE_H
#define WEIR_APPS_COMMON_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16

struct text_table {
	unsigned int columns;
	unsigned int left; /* bit N: column N is left-aligned */
	size_t cells, room;
	char **cell;
};

/* @columns: 1 to TABLE_COLUMNS_MAX. */
void table_init(struct text_table *table, unsigned int columns);
/* Aligns a column of words. Numbers are easier to compare at the right. */
void table_align_left(struct text_table *table, unsigned int column);
/* Adds the next cell, row by row. */
void table_add(struct text_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(const struct text_table *table, FILE *out);
void table_fini(struct text_table *table);

#endif
