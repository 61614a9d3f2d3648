/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A list sorted by deadline, searched from the end: see deadline.h. */
#include "core/engine/deadline.h"

static struct weir_req *req_of(struct weir_list *link)
{
	return weir_list_entry(link, struct weir_req, deadline_link);
}

void weir_deadline_insert(struct weir_list *deadlines, struct weir_req *req)
{
	struct weir_list *before = deadlines->prev;

	while (before != deadlines && req_of(before)->deadline_ns > req->deadline_ns)
		before = before->prev;
	weir_list_add(before, &req->deadline_link);
}

uint64_t weir_deadline_next_ns(const struct weir_list *deadlines)
{
	if (weir_list_is_empty(deadlines))
		return WEIR_NEVER;
	return req_of(deadlines->next)->deadline_ns;
}

struct weir_req *weir_deadline_pop(struct weir_list *deadlines, uint64_t now_ns)
{
	struct weir_req *req;

	if (weir_deadline_next_ns(deadlines) > now_ns || weir_list_is_empty(deadlines))
		return NULL;
	req = req_of(deadlines->next);
	weir_deadline_remove(req);
	return req;
}
