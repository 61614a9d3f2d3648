/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/top/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GAP 2 /* blanks between columns */

/* A part's declaration, without rows. */
static struct top_section declared(enum top_part part)
{
	static const struct top_sample nothing;
	struct top_section section;

	(void)top_sample_rows(&nothing, &nothing, part, &section);
	return section;
}

bool top_view_sort(struct top_view *view, const char *head)
{
	bool is_known = false;

	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		struct top_section section = declared(part);
		unsigned int column = top_section_find(&section, head);

		if (column == TOP_COLUMNS_MAX)
			continue;
		view->order[part] = column;
		is_known = true;
	}
	return is_known;
}

void top_view_print_columns(void)
{
	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		struct top_section section = declared(part);

		for (unsigned int i = 0; section.columns[i].json; i++)
			if (section.columns[i].head)
				puts(section.columns[i].head);
	}
}

void top_view_init(struct top_view *view)
{
	*view = (struct top_view){ .chosen = TOP_SESSIONS };
	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		struct top_section section = declared(part);

		view->order[part] = top_section_find(&section, top_sample_order(part));
	}
}

void top_view_next_order(struct top_view *view)
{
	struct top_section section = declared(view->chosen);
	unsigned int *order = &view->order[view->chosen];

	do
		*order = (*order + 1) % top_section_columns(&section);
	while (!section.columns[*order].head);
}

int top_page_make(struct top_page *page, const struct top_view *view, const struct top_sample *old,
		  const struct top_sample *new)
{
	int rc = 0;

	*page = (struct top_page){ .seconds = (double)(new->at_ns - old->at_ns) / 1e9 };
	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		struct top_section *section = &page->section[part];
		int failed = top_sample_rows(old, new, part, section);

		rc = rc ? rc : failed;
		if (*view->filter)
			top_section_filter(section, view->filter);
		top_section_sort(section, view->order[part], view->is_reversed[part]);
	}
	if (*new->pool_error.text)
		snprintf(page->pool_error, sizeof(page->pool_error), "pool: %s",
			 new->pool_error.text);
	if (rc)
		top_page_fini(page);
	return rc;
}

void top_page_fini(struct top_page *page)
{
	for (enum top_part part = 0; part < TOP_PARTS; part++)
		top_section_fini(&page->section[part]);
}

/* The widths of columns; 0: not shown. */
struct widths {
	size_t of[TOP_COLUMNS_MAX];
};

static struct widths fit(const struct top_section *section, size_t width)
{
	struct widths widths = { { 0 } };
	size_t used = 0;

	for (unsigned int i = 0; section->columns[i].json; i++) {
		size_t most;

		if (!section->columns[i].head)
			continue;
		most = strlen(section->columns[i].head);
		for (size_t k = 0; k < section->nr_rows; k++) {
			struct top_text text = top_section_text(section, &section->rows[k], i);

			most = strlen(text.text) > most ? strlen(text.text) : most;
		}
		if (used && used + GAP + most > width)
			break;
		widths.of[i] = most;
		used += (used ? GAP : 0) + most;
	}
	return widths;
}

struct line {
	char text[TOP_LINE_MAX];
	size_t used;
};

/* Texts stand at the left of their column, numbers at the right. */
static void add_cell(struct line *line, size_t width, bool is_text, const char *text)
{
	int pad = (int)(is_text ? width : 0), lead = (int)(is_text ? 0 : width);
	size_t left = sizeof(line->text) - line->used;
	int added = snprintf(line->text + line->used, left, "%*s%-*s", line->used ? GAP : 0, "",
			     pad, is_text ? text : "");

	line->used += (size_t)added < left ? (size_t)added : left - 1;
	if (is_text)
		return;
	left = sizeof(line->text) - line->used;
	added = snprintf(line->text + line->used, left, "%*s", lead, text);
	line->used += (size_t)added < left ? (size_t)added : left - 1;
}

static void cut(struct line *line, size_t width)
{
	while (line->used && line->text[line->used - 1] == ' ')
		line->used--;
	if (line->used > width)
		line->used = width;
	line->text[line->used] = '\0';
}

static void make_head(const struct top_section *section, const struct widths *widths,
		      struct line *line)
{
	for (unsigned int i = 0; section->columns[i].json; i++)
		if (widths->of[i])
			add_cell(line, widths->of[i], section->columns[i].kind == TOP_TEXT,
				 section->columns[i].head);
}

static void make_row(const struct top_section *section, const struct widths *widths,
		     const struct top_row *row, struct line *line)
{
	for (unsigned int i = 0; section->columns[i].json; i++)
		if (widths->of[i])
			add_cell(line, widths->of[i], section->columns[i].kind == TOP_TEXT,
				 top_section_text(section, row, i).text);
}

void top_page_lines(const struct top_page *page, const struct top_view *view, enum top_part part,
		    size_t width, size_t rows_max,
		    void (*put)(void *arg, enum top_line line, const char *text), void *arg)
{
	const struct top_section *section = &page->section[part];
	struct widths widths = fit(section, width);
	size_t shown = section->nr_rows;
	struct line line = { .used = 0 };

	if (shown > rows_max)
		shown = rows_max ? rows_max - 1 : 0;
	line.used = (size_t)snprintf(line.text, sizeof(line.text), "%s, by %s%s", section->title,
				     view->is_reversed[part] ? "least " : "",
				     section->columns[view->order[part]].head);
	cut(&line, width);
	put(arg, TOP_LINE_TITLE, line.text);
	line.used = 0;
	make_head(section, &widths, &line);
	cut(&line, width);
	put(arg, TOP_LINE_HEAD, line.text);
	for (size_t i = 0; i < shown; i++) {
		line.used = 0;
		make_row(section, &widths, &section->rows[i], &line);
		cut(&line, width);
		put(arg, TOP_LINE_ROW, line.text);
	}
	if (shown == section->nr_rows)
		return;
	line.used = (size_t)snprintf(line.text, sizeof(line.text), "and %zu more",
				     section->nr_rows - shown);
	cut(&line, width);
	put(arg, TOP_LINE_ROW, line.text);
}
