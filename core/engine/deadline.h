/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests by their deadline. A sorted list, filled from its end: with one timeout for
 * all, which is the rule, each new request belongs there, and none takes more than a step. With
 * several timeouts it takes a step for each that ends later, which shows where thousands wait.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_DEADLINE_H
#define WEIR_CORE_ENGINE_DEADLINE_H

#include "core/engine/request.h"

/* Puts one that has a deadline before those that are later. */
void weir_deadline_insert(struct weir_list *deadlines, struct weir_req *req);

/**
 * weir_deadline_add() - remember a request's deadline
 * @deadlines: the list
 * @req: *kept until* weir_deadline_remove(); one without a deadline is not remembered
 */
static inline void weir_deadline_add(struct weir_list *deadlines, struct weir_req *req)
{
	weir_list_init(&req->deadline_link);
	if (req->deadline_ns == WEIR_NEVER)
		return;
	if (weir_list_is_empty(deadlines) ||
	    weir_list_entry(deadlines->prev, struct weir_req, deadline_link)->deadline_ns <=
		    req->deadline_ns)
		weir_list_add_tail(deadlines, &req->deadline_link);
	else
		weir_deadline_insert(deadlines, req);
}

/**
 * weir_deadline_remove() - forget it, if it is remembered
 * @req: the request
 */
static inline void weir_deadline_remove(struct weir_req *req)
{
	weir_list_del(&req->deadline_link);
}

/**
 * weir_deadline_next_ns() - when to look again
 * @deadlines: the list
 *
 * Return: the first deadline, or WEIR_NEVER.
 */
uint64_t weir_deadline_next_ns(const struct weir_list *deadlines);

/**
 * weir_deadline_pop() - one whose time has come
 * @deadlines: the list
 * @now_ns: the time
 *
 * Return: the request, remembered no longer, or NULL when it is too early for any.
 */
struct weir_req *weir_deadline_pop(struct weir_list *deadlines, uint64_t now_ns);

#endif
