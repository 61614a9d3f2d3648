/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests sorted by deadline. Insertion searches from the end: with one common timeout, the usual
 * case, it takes one step. With several timeouts it passes each later deadline, which is noticeable
 * with thousands of requests.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_DEADLINE_H
#define WEIR_CORE_ENGINE_DEADLINE_H

#include "core/engine/request.h"

/* Inserts a request that has a deadline, before all later deadlines. */
void weir_deadline_insert(struct weir_list *deadlines, struct weir_req *req);

/**
 * weir_deadline_add() - add a request, if it has a deadline
 * @deadlines: the list
 * @req: *kept until* weir_deadline_remove()
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
 * weir_deadline_remove() - remove a request, if it is in the list
 * @req: the request
 */
static inline void weir_deadline_remove(struct weir_req *req)
{
	weir_list_del(&req->deadline_link);
}

/**
 * weir_deadline_next_ns() - the earliest deadline
 * @deadlines: the list
 *
 * Return: the deadline, or WEIR_NEVER if the list is empty.
 */
uint64_t weir_deadline_next_ns(const struct weir_list *deadlines);

/**
 * weir_deadline_pop() - remove a request whose deadline has passed
 * @deadlines: the list
 * @now_ns: the time
 *
 * Return: the request, or NULL if no deadline has passed.
 */
struct weir_req *weir_deadline_pop(struct weir_list *deadlines, uint64_t now_ns);

#endif
