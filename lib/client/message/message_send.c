/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Outgoing messages: each takes a credit and a buffer, or waits in order for both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client/message/call.h"
#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/client/message/message.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"

static bool has_buffer(const struct weir_messages *m)
{
	return !weir_list_is_empty(&m->free_outgoing);
}

static bool is_up(const struct weir_session *session)
{
	return session->links[0].core.state == WEIR_LINK_UP;
}

static bool may_post(const struct weir_session *session)
{
	return is_up(session) && has_buffer(&session->messages) &&
	       weir_credit_has_room(&session->messages.credit);
}

static bool has_room(const struct weir_session *session)
{
	const struct weir_messages *m = &session->messages;

	return weir_list_is_empty(&m->unsent) && weir_list_is_empty(&m->backlog) &&
	       may_post(session);
}

/*
 * Hands a message to the engine. The caller has checked the credit. Messages have no deadline: no
 * thread here would notice a dropped message and its lost credits, and calls have their own
 * deadlines.
 */
static int submit_message(struct weir_session *session, struct weir_send_buffer *out,
			  struct wire_control_head *head)
{
	struct weir_messages *m = &session->messages;
	uint32_t length = (uint32_t)sizeof(*head) + head->length;
	int rc;

	out->request.req = (struct weir_req){
		.op = WEIR_OP_SEND,
		.nr_sge = 1,
		.length = length,
		.deadline_ns = WEIR_NEVER,
		.sge[0] = { (uintptr_t)out->buffer, length, m->mr->lkey },
	};
	rc = weir_engine_submit(&session->engine, &out->request.req, weir_now_ns());
	if (rc)
		return rc;
	head->credits = weir_credit_spend(&m->credit);
	memcpy(out->buffer, head, sizeof(*head));
	weir_list_del(&out->link);
	return 0;
}

/* As submit_message(); the caller has checked for a buffer too. */
static int post_message(struct weir_session *session, struct wire_control_head head,
			const void *body)
{
	struct weir_send_buffer *out = weir_list_entry(session->messages.free_outgoing.next,
						       struct weir_send_buffer, link);
	int rc = submit_message(session, out, &head);

	if (!rc && body)
		memcpy(out->buffer + sizeof(head), body, head.length);
	return rc;
}

static struct wire_control_head head_of_send_buffer(const struct weir_send_buffer *out)
{
	struct wire_control_head head;

	memcpy(&head, out->buffer, sizeof(head));
	return head;
}

/* Return: true if all unsent messages are posted. */
static bool post_unsent(struct weir_session *session)
{
	struct weir_messages *m = &session->messages;

	while (!weir_list_is_empty(&m->unsent)) {
		struct weir_send_buffer *out =
			weir_list_entry(m->unsent.next, struct weir_send_buffer, link);
		struct wire_control_head head = head_of_send_buffer(out);

		if (!is_up(session) || !weir_credit_has_room(&m->credit) ||
		    submit_message(session, out, &head))
			return false;
	}
	return true;
}

static void wake_waiting(struct weir_session *session)
{
	struct weir_list *list = &session->messages.waiting;

	while (!weir_list_is_empty(list)) {
		struct weir_send_waiter *sender =
			weir_list_entry(list->next, struct weir_send_waiter, link);

		weir_list_del(&sender->link);
		weir_waiter_done(&sender->waiter, session, 0);
	}
}

/* No message follows the CREDIT that closes the session. */
static bool is_close_due(const struct weir_messages *m)
{
	return m->is_closing && !m->backlog_count && weir_credit_may_send_bare(&m->credit);
}

static bool is_credit_due(const struct weir_messages *m)
{
	return weir_credit_is_due(&m->credit) || is_close_due(m);
}

static void post_credit(struct weir_session *session)
{
	struct weir_messages *m = &session->messages;
	bool closes = is_close_due(m);
	const struct wire_control_head head = {
		.kind = WIRE_CONTROL_CREDIT,
		.flags = closes ? WIRE_CONTROL_CLOSING : 0,
	};

	if (!post_message(session, head, NULL) && closes)
		m->is_closing = false;
}

void weir_messages_flush(struct weir_session *session)
{
	struct weir_messages *m = &session->messages;

	if (!post_unsent(session))
		return;
	while (!weir_list_is_empty(&m->backlog) && may_post(session)) {
		struct weir_message_copy *copy =
			weir_list_entry(m->backlog.next, struct weir_message_copy, link);

		if (post_message(session, copy->head, copy->body))
			break; /* channel 0 has failed: the message waits for the next */
		weir_list_del(&copy->link);
		m->backlog_count--;
		free(copy);
	}
	if (is_up(session) && has_buffer(m) && is_credit_due(m))
		post_credit(session);
	if (has_room(session))
		wake_waiting(session);
}

/* A bare credit is useless on the next channel 0, where credits begin afresh. */
void weir_messages_finish(struct weir_request *request)
{
	struct weir_send_buffer *out = container_of(request, struct weir_send_buffer, request);
	struct weir_session *session = request->session;
	struct weir_messages *m = &session->messages;
	struct wire_control_head head = head_of_send_buffer(out);

	if (request->req.status == -ENOTCONN && head.kind != WIRE_CONTROL_CREDIT) {
		weir_list_add_tail(&m->unsent, &out->link);
	} else {
		m->lost |= request->req.status && head.kind == WIRE_APP_ONEWAY;
		weir_list_add(&m->free_outgoing, &out->link);
	}
	weir_messages_flush(session);
}

static int add_to_backlog(struct weir_messages *m, const struct wire_control_head *head,
			  const void *data)
{
	struct weir_message_copy *copy;

	if (m->backlog_count == WEIR_BACKLOG_MAX)
		return -EAGAIN;
	copy = weir_message_copy_new(head, data);
	if (!copy)
		return -ENOMEM;
	weir_list_add_tail(&m->backlog, &copy->link);
	m->backlog_count++;
	return 0;
}

int weir_message_send(struct weir_session *session, enum wire_control_kind kind, uint64_t tag,
		      const void *data, size_t length)
{
	struct weir_messages *m = &session->messages;
	struct wire_control_head head = { .kind = kind, .tag = tag, .length = (uint32_t)length };
	int rc;

	if (length > m->body_max)
		return -EMSGSIZE;
	if (!weir_session_is_usable(session))
		return -ENOTCONN;
	/* The engine may know already that channel 0 has failed. */
	rc = has_room(session) ? post_message(session, head, data) : -ENOTCONN;
	return rc == -ENOTCONN ? add_to_backlog(m, &head, data) : rc;
}

void weir_messages_close(struct weir_session *session)
{
	session->messages.is_closing = true;
	weir_messages_flush(session);
}

bool weir_messages_are_sent(const struct weir_session *session)
{
	const struct weir_messages *m = &session->messages;
	const struct weir_list *at;
	unsigned int unused = 0;

	for (at = m->free_outgoing.next; at != &m->free_outgoing; at = at->next)
		unused++;
	return !m->is_closing && !m->backlog_count && unused == WEIR_MESSAGE_SENDS;
}

void weir_messages_keep_unsent_calls(struct weir_session *session)
{
	const struct weir_messages *m = &session->messages;
	const struct weir_list *at;

	for (at = m->unsent.next; at != &m->unsent; at = at->next)
		weir_call_table_keep(
			&session->calls.table,
			head_of_send_buffer(weir_list_entry(at, struct weir_send_buffer, link))
				.tag);
	for (at = m->backlog.next; at != &m->backlog; at = at->next)
		weir_call_table_keep(&session->calls.table,
				     weir_list_entry(at, struct weir_message_copy, link)->head.tag);
}

void weir_messages_down(struct weir_session *session)
{
	struct weir_messages *m = &session->messages;

	while (!weir_list_is_empty(&m->unsent)) {
		struct weir_list *first = m->unsent.next;

		weir_list_del(first);
		weir_list_add(&m->free_outgoing, first);
	}
	weir_message_copies_free(&m->backlog);
	m->backlog_count = 0;
	wake_waiting(session);
}

/* A callback must not wait: without room, its message goes to the backlog. */
static bool must_wait(const struct weir_session *session)
{
	return weir_session_is_usable(session) && !has_room(session) && !weir_dispatch_is_inside();
}

/* Called with nic->lock held; returns without, when there is room or no channel. */
static int wait_for_room(struct weir_session *session, uint64_t deadline_ns)
{
	struct weir_send_waiter sender = { .waiter = WEIR_WAITER_INIT };

	weir_list_add_tail(&session->messages.waiting, &sender.link);
	weir_waiter_begin(session);
	weir_session_unlock(session);
	if (weir_waiter_wait(&sender.waiter, session, &session->call_idle_time, deadline_ns))
		return 0;
	weir_session_lock(session);
	weir_list_del(&sender.link);
	weir_session_unlock(session);
	return weir_waiter_is_done(&sender.waiter) ? 0 : -ETIMEDOUT;
}

int weir_send(struct weir_session *session, const void *data, size_t length)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), session->options.timeout_ns);
	int rc;

	if (length > session->messages.body_max)
		return -EMSGSIZE;
	weir_session_lock(session);
	while (must_wait(session)) {
		rc = wait_for_room(session, deadline_ns);
		if (rc)
			return rc;
		weir_session_lock(session);
	}
	rc = weir_message_send(session, WIRE_APP_ONEWAY, 0, data, length);
	weir_pump_pull(session);
	weir_pump_poll(session, weir_now_ns());
	weir_pump_leave(session, false);
	weir_dispatch(session);
	return rc;
}
