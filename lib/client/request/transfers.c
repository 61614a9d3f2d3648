/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Batched submission: one atomic operation fetches the free requests, one reserves the queue
 * events, and one pushes all requests into the inbox before the first is posted.
 */
#include "lib/client/request/prepare.h"
#include "lib/client/request/combine.h"

/* Resources for the remaining transfers: requests, and reserved queue events. */
struct request_stock {
	struct weir_inbox_node *requests;
	unsigned int rooms;
};

static WEIR_ALWAYS_INLINE struct weir_request *
stock_take(struct request_stock *request_stock, struct weir_session *session, unsigned int left)
{
	struct weir_inbox_node *node = request_stock->requests;

	if (!node)
		node = weir_freelist_get_some(&session->spares, left);
	if (!node)
		return weir_request_new(session);
	request_stock->requests = node->next;
	return container_of(node, struct weir_request, node);
}

/* Reserves events for the first of @left transfers and the following ones with the same queue. */
static int stock_rooms(struct request_stock *request_stock, const struct weir_transfer *t,
		       unsigned int left)
{
	unsigned int count = 1;

	if (!weir_prepare_for_queue(&t->completion))
		return 0;
	while (count < left && weir_prepare_for_queue(&t[count].completion) &&
	       t[count].completion.queue == t->completion.queue)
		count++;
	if (weir_queue_reserve(t->completion.queue, count))
		return -ENOMEM;
	request_stock->rooms = count;
	return 0;
}

/* Neither @t nor any later transfer was submitted. */
__attribute__((cold)) static void stock_return(struct request_stock *request_stock,
					       struct weir_session *session,
					       const struct weir_transfer *t)
{
	struct weir_inbox_node *node;

	if (request_stock->rooms)
		weir_queue_release(t->completion.queue, request_stock->rooms);
	while ((node = request_stock->requests)) {
		request_stock->requests = node->next;
		weir_freelist_put(&session->spares, node);
	}
}

static WEIR_ALWAYS_INLINE int prepare_one(struct weir_session *session,
					  const struct weir_transfer *t, unsigned int left,
					  struct request_stock *request_stock,
					  struct weir_request **request)
{
	if (!weir_prepare_is_transfer(session, t))
		return -EINVAL;
	if (!request_stock->rooms && stock_rooms(request_stock, t, left))
		return -ENOMEM;
	*request = stock_take(request_stock, session, left);
	if (!*request)
		return -ENOMEM;
	(*request)->req.op = weir_prepare_op(t);
	return weir_prepare(*request, t->region, t->offset, t->iov, t->iovcnt, &t->completion,
			    t->request, true);
}

/* One step pushes all requests, so that the combiner takes all together. */
int weir_transfers_enqueue(struct weir_session *session, const struct weir_transfer *transfers,
			   unsigned int count, unsigned int *submitted)
{
	struct weir_inbox_node *newest = NULL, *oldest = NULL;
	uint64_t now_ns = weir_now_ns();
	struct weir_request *request;
	struct request_stock request_stock = { 0 };
	unsigned int i;
	int rc = 0;

	for (i = 0; i < count; i++) {
		rc = prepare_one(session, &transfers[i], count - i, &request_stock, &request);
		if (rc)
			break;
		request_stock.rooms -= request_stock.rooms > 0;
		weir_prepare_date(request, now_ns);
		request->node.next = newest;
		newest = &request->node;
		oldest = oldest ? oldest : newest;
	}
	*submitted = i;
	if (rc)
		stock_return(&request_stock, session, &transfers[i]);
	if (newest)
		weir_combine_enqueue(session->nic, newest, oldest, session);
	return rc;
}
