/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A doubly linked list whose links live inside the listed objects. A link that is in no
 * list points to itself, so that taking it out once more does no harm.
 *
 * Context of all: any; serialised by whoever owns the list.
 */
#ifndef WEIR_CORE_BASE_LIST_H
#define WEIR_CORE_BASE_LIST_H

#include "core/base/platform.h"

/* The head of a list, or a link in it. */
struct weir_list {
	struct weir_list *next;
	struct weir_list *prev;
};

/* The object of @type that has @link as its @member. */
#define weir_list_entry(link, type, member) container_of(link, type, member)

/* Makes an empty list, or a link that is in none. */
static inline void weir_list_init(struct weir_list *list)
{
	list->next = list;
	list->prev = list;
}

/* Whether the list has no members; of a link, whether it is in no list. */
static inline bool weir_list_is_empty(const struct weir_list *list)
{
	return list->next == list;
}

/* Whether the list has one member, of a list that is not empty. */
static inline bool weir_list_has_one(const struct weir_list *list)
{
	return list->next == list->prev;
}

/* Puts @link, which must be in no list, right behind @where. */
static inline void weir_list_add(struct weir_list *where, struct weir_list *link)
{
	link->prev = where;
	link->next = where->next;
	where->next->prev = link;
	where->next = link;
}

/* Puts @link, which must be in no list, at the end of @list. */
static inline void weir_list_add_tail(struct weir_list *list, struct weir_list *link)
{
	weir_list_add(list->prev, link);
}

/* Takes @link out of its list, if it is in one. */
static inline void weir_list_del(struct weir_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	weir_list_init(link);
}

#endif
