/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "lib/client/request/dispatch.h"
#include "lib/client/channel/pump.h"
#include "lib/client/request/latency.h"
#include "lib/client/request/queue.h"
#include "lib/client/request/request.h"
#include "lib/client/session.h"
#include "lib/client/request/waiter.h"

#define TOLD_MAX 64 /* events put in a queue at a time */

struct weir_request *weir_request_new(struct weir_session *session)
{
	struct weir_request *request = malloc(sizeof(*request));

	if (!request)
		return NULL;
	request->session = session;
	request->is_timed = false;
	weir_list_init(&request->link);
	return request;
}

int weir_request_release(struct weir_request *request, int status)
{
	request->req.status = status;
	weir_bounce_unmap(request->session, &request->req, &request->bounce);
	weir_freelist_put(&request->session->spares, &request->node);
	return status;
}

/* With nic->lock held. */
static void request_recycle(struct weir_request *request)
{
	weir_freelist_keep_some(&request->session->spares, &request->node, &request->node);
}

void weir_requests_fini(struct weir_session *session)
{
	struct weir_inbox_node *node;

	while ((node = weir_freelist_get_kept(&session->spares)))
		free(container_of(node, struct weir_request, node));
}

/* Closing the session turns any failure for want of a channel into -ECANCELED. */
static int status_of(const struct weir_request *request)
{
	int status = request->req.status;

	return status == -ENOTCONN && weir_session_is_closing(request->session) ? -ECANCELED :
										  status;
}

/* The engine counted @retries down. */
static void count_retries(struct weir_request *request)
{
	struct weir_session *session = request->session;

	session->counters->retries += session->options.retries - request->req.retries;
}

/* A request that the waiter frees may be gone once the waiter is notified. */
static void notify_waiter(struct weir_request *request)
{
	struct weir_waiter *waiter = request->completion.arg;
	bool is_waiters = waiter->request;

	weir_list_del(&request->link);
	weir_waiter_done(waiter, request->session, request->req.status);
	if (!is_waiters)
		request_recycle(request);
}

/* weir_requests_notify() reports the completion later, with all others of the queue. */
static void notify_queue(struct weir_request *request)
{
	struct weir_session *session = request->session;

	weir_list_del(&request->link);
	request->node.next = NULL;
	*session->to_notify_tail = &request->node;
	session->to_notify_tail = &request->node.next;
}

static void free_or_queue(struct weir_request *request)
{
	count_retries(request);
	request->req.status = status_of(request);
	if (request->is_timed)
		weir_latency_end(request);
	if (weir_request_needs_dispatch(request)) {
		weir_list_del(&request->link);
		weir_list_add_tail(&request->session->done, &request->link);
	} else if (request->completion.queue) {
		notify_queue(request);
	} else {
		notify_waiter(request);
	}
}

void weir_request_finish(struct weir_request *request)
{
	if (request->req.op == WEIR_OP_SEND)
		weir_messages_finish(request);
	else
		free_or_queue(request);
}

void weir_request_dispatch(struct weir_request *request)
{
	const struct weir_completion *completion = &request->completion;

	weir_bounce_unmap(request->session, &request->req, &request->bounce);
	if (completion->done)
		completion->done(completion->arg, request->req.status);
}

void weir_request_dispatched(struct weir_request *request)
{
	if (!request->completion.done) {
		notify_queue(request);
		return;
	}
	weir_list_del(&request->link);
	request_recycle(request);
}

static struct weir_request *request_of_node(struct weir_inbox_node *node)
{
	return container_of(node, struct weir_request, node);
}

/*
 * Reports the leading requests that share a queue, and frees them. Return: the remaining requests.
 */
static struct weir_inbox_node *notify_some(struct weir_session *session,
					   struct weir_inbox_node *first)
{
	struct weir_queue *queue = request_of_node(first)->completion.queue;
	struct weir_inbox_node *last = NULL, *next = first;
	struct weir_event events[TOLD_MAX];
	unsigned int count = 0;
	uint32_t *wakeups;

	for (; next && count < TOLD_MAX && request_of_node(next)->completion.queue == queue;
	     next = next->next) {
		events[count++] = (struct weir_event){ request_of_node(next)->completion.arg,
						       request_of_node(next)->req.status };
		last = next;
	}
	weir_freelist_keep_some(&session->spares, first, last);
	wakeups = weir_queue_put(queue, events, count);
	if (wakeups)
		weir_combine_wake(session->nic, wakeups);
	return next;
}

void weir_requests_notify(struct weir_session *session)
{
	struct weir_inbox_node *first = session->to_notify;

	session->to_notify = NULL;
	session->to_notify_tail = &session->to_notify;
	while (first)
		first = notify_some(session, first);
}

void weir_request_notify_alone(struct weir_request *request)
{
	const struct weir_event event = { request->completion.arg, 0 };
	struct weir_queue *queue = request->completion.queue;
	struct weir_session *session = request->session;
	uint32_t *wakeups;

	if (!queue) {
		weir_waiter_done_at_once(event.arg);
		if (!((struct weir_waiter *)event.arg)->request)
			request_recycle(request);
		return;
	}
	request_recycle(request);
	wakeups = weir_queue_put_one(queue, &event);
	if (wakeups)
		weir_combine_wake(session->nic, wakeups);
}

int weir_cancel(struct weir_request *request)
{
	struct weir_session *session = request->session;
	int rc;

	weir_session_lock(session);
	rc = weir_engine_cancel(&session->engine, &request->req);
	weir_pump_pull(session);
	weir_pump_leave(session, false);
	weir_dispatch(session);
	return rc;
}
