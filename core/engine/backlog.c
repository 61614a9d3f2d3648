/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Barriers divide requests into runs, and the order tree holds one run at a time. Each request has
 * the number of barriers before it, and no pointer to a barrier. A cancelled or expired barrier
 * therefore still separates the requests around it.
 */
#include "core/engine/backlog.h"
#include "core/engine/deadline.h"

void weir_backlog_init(struct weir_backlog *b, uint64_t seed)
{
	unsigned int i;

	weir_order_init(&b->order, seed);
	weir_list_init(&b->behind_barrier);
	b->class = WEIR_WINDOW_NORMAL;
	for (i = 0; i < WEIR_WINDOW_CLASSES; i++)
		weir_list_init(&b->ready[i]);
	weir_list_init(&b->messages);
	weir_list_init(&b->in_doubt);
	weir_list_init(&b->done);
	weir_list_init(&b->deadlines);
	b->barriers_passed = 0;
	b->barriers = 0;
	b->live = 0;
}

static struct weir_list *ready_list(struct weir_backlog *b, const struct weir_req *req)
{
	return &b->ready[weir_backlog_class_of(b, req)];
}

static void make_ready(struct weir_backlog *b, struct weir_req *req)
{
	req->state = WEIR_REQ_READY;
	weir_list_add_tail(req->op == WEIR_OP_SEND ? &b->messages : ready_list(b, req), &req->link);
}

static inline void admit(struct weir_backlog *b, struct weir_req *req)
{
	b->live++;
	if (req->op != WEIR_OP_SEND) {
		weir_order_add(&b->order, &req->order, req->remote, req->length,
			       weir_req_modifies(req));
		if (req->order.blockers) {
			req->state = WEIR_REQ_HELD;
			return;
		}
	}
	make_ready(b, req);
}

static void init_req(struct weir_backlog *b, struct weir_req *req)
{
	req->status = 0;
	req->posted = 0;
	req->wrs = 0;
	req->in_doubt = 0;
	req->sent = req->must_repeat = req->spends_retry = req->no_merge = false;
	req->path = WEIR_PATH_UNDECIDED;
	weir_list_init(&req->link);
	weir_deadline_add(&b->deadlines, req);
}

void weir_backlog_add(struct weir_backlog *b, struct weir_req *req)
{
	init_req(b, req);
	req->barriers = req->op == WEIR_OP_BARRIER ? b->barriers++ : b->barriers;

	if (req->op != WEIR_OP_BARRIER && req->barriers == b->barriers_passed) {
		admit(b, req);
		return;
	}
	req->state = WEIR_REQ_BEHIND_BARRIER;
	weir_list_add_tail(&b->behind_barrier, &req->link);
}

void weir_backlog_add_posted(struct weir_backlog *b, struct weir_req *req)
{
	init_req(b, req);
	/* No barrier is left to hold anything back. */
	req->barriers = b->barriers_passed = b->barriers;
	admit(b, req);
	weir_list_del(&req->link);
	req->state = WEIR_REQ_IN_FLIGHT;
	req->posted = req->length;
	req->wrs = 1;
	req->merge_next = NULL;
}

static void hand_back(struct weir_backlog *b, struct weir_req *req)
{
	req->state = WEIR_REQ_DONE;
	weir_list_add_tail(&b->done, &req->link);
}

void weir_backlog_add_done(struct weir_backlog *b, struct weir_req *req)
{
	req->status = 0;
	hand_back(b, req);
}

/* Removes @req from the order. Requests that only waited for @req become ready. */
static void leave_order(struct weir_backlog *b, struct weir_req *req)
{
	struct weir_order_node *node = weir_order_remove(&b->order, &req->order);

	for (; node; node = node->next_ready)
		make_ready(b, weir_list_entry(node, struct weir_req, order));
}

static void finish_req(struct weir_backlog *b, struct weir_req *req)
{
	if (weir_bug(req->state == WEIR_REQ_DONE))
		return;
	weir_deadline_remove(req);
	weir_list_del(&req->link);
	if (req->state != WEIR_REQ_BEHIND_BARRIER) {
		b->live--;
		if (req->op != WEIR_OP_SEND)
			leave_order(b, req);
	}
	hand_back(b, req);
}

/* A request in flight is in no list, or in the in_doubt list. */
static void stop_posting(struct weir_req *req)
{
	if (req->state == WEIR_REQ_IN_FLIGHT)
		return;
	weir_list_del(&req->link);
	req->state = WEIR_REQ_IN_FLIGHT;
}

void weir_backlog_end(struct weir_backlog *b, struct weir_req *req, int status)
{
	if (!req->status)
		req->status = status;
	if (!req->wrs && !req->in_doubt) {
		finish_req(b, req);
		return;
	}
	stop_posting(req);
}

void weir_backlog_repeat(struct weir_req *req)
{
	req->must_repeat = true;
	stop_posting(req);
}

void weir_backlog_unpost(struct weir_backlog *b, struct weir_req *req, uint64_t offset)
{
	req->posted = offset;
	if (req->state != WEIR_REQ_IN_FLIGHT || req->must_repeat || req->status)
		return;
	req->state = WEIR_REQ_READY;
	weir_list_add(ready_list(b, req), &req->link);
}

void weir_backlog_mark_in_doubt(struct weir_backlog *b, struct weir_req *req, uint16_t channel)
{
	req->in_doubt |= 1u << channel;
	stop_posting(req);
	if (weir_list_is_empty(&req->link))
		weir_list_add_tail(&b->in_doubt, &req->link);
}

static void restart_req(struct weir_backlog *b, struct weir_req *req)
{
	req->retries -= req->spends_retry;
	req->must_repeat = req->spends_retry = false;
	req->posted = 0;
	req->state = WEIR_REQ_READY;
	weir_list_add(ready_list(b, req), &req->link);
}

void weir_backlog_settle(struct weir_backlog *b, struct weir_req *req)
{
	if (req->wrs || req->in_doubt || req->state != WEIR_REQ_IN_FLIGHT)
		return;
	if (req->must_repeat && !req->status)
		restart_req(b, req);
	else
		finish_req(b, req);
}

void weir_backlog_resolve_doubt(struct weir_backlog *b, uint16_t channel, bool may_repeat)
{
	struct weir_list *at, *next;

	for (at = b->in_doubt.next; at != &b->in_doubt; at = next) {
		struct weir_req *req = weir_list_entry(at, struct weir_req, link);

		next = at->next;
		req->in_doubt &= ~(1u << channel);
		if (!may_repeat && !req->status)
			req->status = -ECONNRESET;
		if (req->in_doubt)
			continue;
		weir_list_del(&req->link);
		weir_backlog_settle(b, req);
	}
}

void weir_backlog_pass_barriers(struct weir_backlog *b)
{
	while (!weir_list_is_empty(&b->behind_barrier)) {
		struct weir_req *req = weir_backlog_first(&b->behind_barrier);

		if (b->live && (req->op == WEIR_OP_BARRIER || req->barriers != b->barriers_passed))
			return;
		if (req->op == WEIR_OP_BARRIER) {
			finish_req(b, req);
			continue;
		}
		b->barriers_passed = req->barriers;
		weir_list_del(&req->link);
		admit(b, req);
	}
}

bool weir_backlog_end_stranded(struct weir_backlog *b, struct weir_list *ready)
{
	bool any = !weir_list_is_empty(ready);

	while (!weir_list_is_empty(ready)) {
		struct weir_req *req = weir_backlog_first(ready);
		bool sent = req->sent || req->wrs;

		weir_backlog_end(b, req, sent ? -ECONNRESET : -ENOTCONN);
	}
	return any;
}
