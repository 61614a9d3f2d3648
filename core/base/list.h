/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A doubly linked list with links inside the listed objects. A link outside any list points to
 * itself, so a second removal is harmless.
 *
 * Context of all: Any; serialised by the list's owner.
 */
#ifndef WEIR_CORE_BASE_LIST_H
#define WEIR_CORE_BASE_LIST_H

#include "core/base/platform.h"

/* The head of a list, or a link in a list. */
struct weir_list {
	struct weir_list *next;
	struct weir_list *prev;
};

/* The object of @type that has @link as its @member. */
#define weir_list_entry(link, type, member) container_of(link, type, member)

/* Initialises an empty list, or a link outside any list. */
static inline void weir_list_init(struct weir_list *list)
{
	list->next = list;
	list->prev = list;
}

/* Whether a list has no members, or a link is in no list. */
static inline bool weir_list_is_empty(const struct weir_list *list)
{
	return list->next == list;
}

/* Whether a non-empty list has exactly one member. */
static inline bool weir_list_has_one(const struct weir_list *list)
{
	return list->next == list->prev;
}

/* Inserts @link, which must be in no list, right behind @where. */
static inline void weir_list_add(struct weir_list *where, struct weir_list *link)
{
	link->prev = where;
	link->next = where->next;
	where->next->prev = link;
	where->next = link;
}

/* Inserts @link, which must be in no list, at the end of @list. */
static inline void weir_list_add_tail(struct weir_list *list, struct weir_list *link)
{
	weir_list_add(list->prev, link);
}

/* Removes @link from its list, if any. */
static inline void weir_list_del(struct weir_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	weir_list_init(link);
}

#endif
