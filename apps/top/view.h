/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How the parts of weir top are sorted, filtered, and made lines. */
#ifndef WEIR_APPS_TOP_VIEW_H
#define WEIR_APPS_TOP_VIEW_H

#include "apps/top/sample.h"

#define TOP_FILTER_MAX 48
#define TOP_LINE_MAX 512

/**
 * struct top_view - what the user wants to see
 * @order: the column by which each part is sorted; @is_reversed: the other way round
 * @filter: a row must contain it; "": all rows
 * @chosen: the part whose order the keys change
 */
struct top_view {
	unsigned int order[TOP_PARTS];
	bool is_reversed[TOP_PARTS];
	char filter[TOP_FILTER_MAX];
	enum top_part chosen;
};

/*
 * The sections of two samples, sorted and filtered. @pool_error: why the pool's map cannot be read,
 * or the empty string.
 */
struct top_page {
	double seconds; /* between the samples */
	struct top_section section[TOP_PARTS];
	char pool_error[TOP_LINE_MAX + 8];
};

enum top_line { TOP_LINE_TITLE, TOP_LINE_HEAD, TOP_LINE_ROW };

/* Each part by its usual column. */
void top_view_init(struct top_view *view);

/* Sorts each part that has a column with this head by it. Return: false: no part has. */
bool top_view_sort(struct top_view *view, const char *head);
/* Prints the columns that a part has, for completion. */
void top_view_print_columns(void);

/* The next column of the chosen part that has a head. */
void top_view_next_order(struct top_view *view);

/* Return: 0 or -ENOMEM. The caller owes a top_page_fini(). */
int top_page_make(struct top_page *page, const struct top_view *view, const struct top_sample *old,
		  const struct top_sample *new);
void top_page_fini(struct top_page *page);

/**
 * top_page_lines() - make the lines of a part
 * @part: it has rows
 * @width: columns of the terminal: what does not fit is left out, whole columns first
 * @rows_max: rows at most; the last line says how many are left out
 * @put: called for each line; @text: without a newline
 */
void top_page_lines(const struct top_page *page, const struct top_view *view, enum top_part part,
		    size_t width, size_t rows_max,
		    void (*put)(void *arg, enum top_line line, const char *text), void *arg);

/* screen.c: shows pages until the user quits. Return: false: the terminal cannot do that. */
struct top_screen;
bool top_screen_open(struct top_screen **screen);
void top_screen_show(struct top_screen *screen, const struct top_page *page,
		     const struct top_view *view, bool is_paused);
void top_screen_close(struct top_screen *screen);

enum top_key { TOP_KEY_NONE, TOP_KEY_REDRAW, TOP_KEY_PAUSE, TOP_KEY_QUIT };

/* Waits for a key, @wait_ms at most, and changes the view as it says. */
enum top_key top_screen_key(struct top_screen *screen, struct top_view *view, int wait_ms);

#endif
