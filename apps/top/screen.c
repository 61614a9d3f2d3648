/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir top on a terminal. The terminal is as before when it ends, also by Ctrl-C. */
#include "apps/top/view.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TITLE_PAIR 1
#define ESCAPE 27
#define PART_LINES 3 /* of a part besides its rows: title, head, blank */

struct top_screen {
	SCREEN *screen;
	bool has_colour;
	bool is_typing; /* the filter */
	int y; /* the next line */
};

/* https://no-color.org */
static bool wants_colour(void)
{
	const char *off = getenv("NO_COLOR");

	return (!off || !*off) && has_colors();
}

bool top_screen_open(struct top_screen **screen)
{
	const char *terminal = getenv("TERM");
	struct top_screen *s;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !terminal || !*terminal ||
	    !strcmp(terminal, "dumb"))
		return false;
	s = calloc(1, sizeof(*s));
	if (!s)
		return false;
	s->screen = newterm(NULL, stdout, stdin);
	if (!s->screen) {
		free(s);
		return false;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	s->has_colour = wants_colour() && start_color() == OK;
	if (s->has_colour) {
		use_default_colors();
		init_pair(TITLE_PAIR, COLOR_CYAN, -1);
	}
	*screen = s;
	return true;
}

void top_screen_close(struct top_screen *screen)
{
	endwin();
	delscreen(screen->screen);
	free(screen);
}

static void put_line(void *arg, enum top_line line, const char *text)
{
	struct top_screen *s = arg;
	attr_t look = line == TOP_LINE_TITLE ? A_BOLD : line == TOP_LINE_HEAD ? A_REVERSE : 0;

	if (s->y >= LINES - 1)
		return;
	if (line == TOP_LINE_TITLE && s->has_colour)
		look |= (attr_t)COLOR_PAIR(TITLE_PAIR);
	attrset(look);
	mvaddnstr(s->y++, 0, text, COLS);
	attrset(0);
}

/* Parts share the lines; a part that needs fewer leaves them to those after it. */
static void put_parts(struct top_screen *s, const struct top_page *page,
		      const struct top_view *view)
{
	int parts = 0, room;

	for (enum top_part part = 0; part < TOP_PARTS; part++)
		parts += page->section[part].nr_rows > 0;
	if (!parts)
		put_line(s, TOP_LINE_ROW,
			 *view->filter ? "nothing matches the filter" :
					 "no donor, session or tenant that you may see");
	if (*page->pool_error)
		put_line(s, TOP_LINE_ROW, page->pool_error);
	for (enum top_part part = 0; part < TOP_PARTS; part++) {
		if (!page->section[part].nr_rows)
			continue;
		room = (LINES - 1 - s->y) / parts-- - PART_LINES;
		top_page_lines(page, view, part, (size_t)COLS, room > 1 ? (size_t)room : 1,
			       put_line, s);
		s->y++;
	}
}

static void put_keys(const struct top_screen *s, const struct top_view *view, bool is_paused)
{
	char line[TOP_LINE_MAX];

	if (s->is_typing)
		snprintf(line, sizeof(line), "filter: %s_", view->filter);
	else
		snprintf(line, sizeof(line),
			 "q quit  Tab next part: %s  s sort  r reverse  / filter%s%s  p %s",
			 top_part_names[view->chosen], *view->filter ? ": " : "", view->filter,
			 is_paused ? "go on" : "pause");
	attrset(A_REVERSE);
	mvhline(LINES - 1, 0, ' ', COLS);
	mvaddnstr(LINES - 1, 0, line, COLS > 1 ? COLS - 1 : 1);
	attrset(0);
}

void top_screen_show(struct top_screen *screen, const struct top_page *page,
		     const struct top_view *view, bool is_paused)
{
	screen->y = 0;
	erase();
	put_parts(screen, page, view);
	put_keys(screen, view, is_paused);
	refresh();
}

/* A key while the filter is typed. Enter keeps it, Escape removes it. */
static enum top_key type_filter(struct top_screen *s, struct top_view *view, int key)
{
	size_t length = strlen(view->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER || key == ESCAPE)
		s->is_typing = false;
	if (key == ESCAPE)
		*view->filter = '\0';
	if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length)
		view->filter[length - 1] = '\0';
	if (key >= ' ' && key <= '~' && length + 1 < sizeof(view->filter)) {
		view->filter[length] = (char)key;
		view->filter[length + 1] = '\0';
	}
	return TOP_KEY_REDRAW;
}

enum top_key top_screen_key(struct top_screen *screen, struct top_view *view, int wait_ms)
{
	int key;

	timeout(wait_ms);
	key = getch();
	if (key == ERR)
		return TOP_KEY_NONE;
	if (screen->is_typing && key != KEY_RESIZE)
		return type_filter(screen, view, key);
	switch (key) {
	case 'q':
		return TOP_KEY_QUIT;
	case 'p':
	case ' ':
		return TOP_KEY_PAUSE;
	case '\t':
		view->chosen = (view->chosen + 1) % TOP_PARTS;
		break;
	case 's':
		top_view_next_order(view);
		break;
	case 'r':
		view->is_reversed[view->chosen] = !view->is_reversed[view->chosen];
		break;
	case '/':
		*view->filter = '\0';
		screen->is_typing = true;
		break;
	default:
		break;
	}
	return TOP_KEY_REDRAW;
}
