/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client/message/call.h"
#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/base/error.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"

/* A tag is a generation, and below it the index in calls->pending. */
#define TAG_BITS 10
static_assert(WIRE_CONTROL_CALLS_MAX == 1 << TAG_BITS, "a tag holds the place");

int weir_call_table_init(struct weir_call_table *calls)
{
	int i;

	calls->pending = calloc(WIRE_CONTROL_CALLS_MAX, sizeof(*calls->pending));
	if (!calls->pending)
		return -ENOMEM;
	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++)
		weir_list_add_tail(&calls->free, &calls->pending[i].link);
	calls->next_deadline_ns = UINT64_MAX;
	calls->generation = 1;
	return 0;
}

void weir_call_table_fini(struct weir_call_table *calls)
{
	free(calls->pending);
}

static struct weir_pending_call *get_pending_call(struct weir_call_table *calls,
						  uint64_t deadline_ns)
{
	struct weir_pending_call *call;

	if (weir_list_is_empty(&calls->free))
		return NULL;
	call = weir_list_entry(calls->free.next, struct weir_pending_call, link);
	weir_list_del(&call->link);
	call->tag = calls->generation++ << TAG_BITS | (uint64_t)(call - calls->pending);
	call->deadline_ns = deadline_ns;
	if (deadline_ns < calls->next_deadline_ns)
		calls->next_deadline_ns = deadline_ns;
	return call;
}

static void put_pending_call(struct weir_call_table *calls, struct weir_pending_call *call)
{
	call->tag = 0;
	call->answer = NULL;
	call->callback = NULL;
	weir_list_add(&calls->free, &call->link);
}

void weir_call_callback_run(struct weir_call_callback *callback)
{
	struct weir_message_copy *reply = callback->reply;

	callback->fn(callback->arg, callback->status, reply ? reply->body : NULL,
		     reply ? reply->head.length : 0);
}

void weir_call_callback_free(struct weir_call_callback *callback)
{
	weir_list_del(&callback->link);
	free(callback->reply);
	free(callback);
}

/* The caller sleeps or polls: the reply is copied straight to its buffer. */
static void end_answer(struct weir_session *session, struct weir_answer *answer, int status,
		       const void *body, size_t length)
{
	if (length > answer->max) {
		status = status ? status : -EMSGSIZE;
		length = answer->max;
	}
	if (length)
		memcpy(answer->body, body, length);
	answer->length = length;
	weir_waiter_done(&answer->waiter, session, status);
}

static void end_callback(struct weir_session *session, struct weir_call_callback *callback,
			 int status, const struct wire_control_head *head, const void *body)
{
	if (!status && head->length) {
		callback->reply = weir_message_copy_new(head, body);
		if (!callback->reply)
			status = -ENOMEM;
	}
	callback->status = status;
	weir_list_add_tail(&session->calls.done, &callback->link);
}

/* Reports the end to the caller, if any remains. With status 0 there are a head and a body. */
static void end_pending_call(struct weir_session *session, struct weir_pending_call *call,
			     int status, const struct wire_control_head *head, const void *body)
{
	if (call->answer)
		end_answer(session, call->answer, status, body, head ? head->length : 0);
	if (call->callback)
		end_callback(session, call->callback, status, head, body);
	call->answer = NULL;
	call->callback = NULL;
}

int weir_call_table_reply(struct weir_session *session, const struct wire_control_head *head,
			  const void *body)
{
	struct weir_call_table *calls = &session->calls;
	struct weir_pending_call *call = &calls->pending[head->tag % WIRE_CONTROL_CALLS_MAX];

	if (!head->tag || call->tag != head->tag)
		return -EPROTO;
	end_pending_call(session, call, head->status, head, body);
	put_pending_call(calls, call);
	return 0;
}

static bool has_caller(const struct weir_pending_call *call)
{
	return call->answer || call->callback;
}

void weir_call_table_expire(struct weir_session *session, uint64_t now_ns)
{
	struct weir_call_table *calls = &session->calls;
	uint64_t next_ns = UINT64_MAX;
	unsigned int i;

	if (now_ns < calls->next_deadline_ns)
		return;
	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++) {
		struct weir_pending_call *call = &calls->pending[i];

		if (!has_caller(call))
			continue;
		if (call->deadline_ns <= now_ns)
			end_pending_call(session, call, -ETIMEDOUT, NULL, NULL);
		else if (call->deadline_ns < next_ns)
			next_ns = call->deadline_ns;
	}
	calls->next_deadline_ns = next_ns;
}

void weir_call_keep(struct weir_call_table *calls, uint64_t tag)
{
	struct weir_pending_call *call = &calls->pending[tag % WIRE_CONTROL_CALLS_MAX];

	call->kept = tag && call->tag == tag;
}

void weir_call_table_down(struct weir_session *session, int status)
{
	struct weir_call_table *calls = &session->calls;
	unsigned int i;

	/*
	 * next_deadline_ns may now be earlier than any deadline left, which costs one useless
	 * check.
	 */
	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++) {
		struct weir_pending_call *call = &calls->pending[i];

		if (call->tag && !call->kept) {
			end_pending_call(session, call, status, NULL, NULL);
			put_pending_call(calls, call);
		}
		call->kept = false;
	}
}

/* With nic->lock held. One of @answer and @callback is NULL. */
static int send_call(struct weir_session *session, enum wire_control_kind kind, const void *data,
		     size_t length, uint64_t timeout_ns, struct weir_answer *answer,
		     struct weir_call_callback *callback)
{
	uint64_t now_ns = weir_now_ns();
	struct weir_pending_call *call;
	int rc;

	call = get_pending_call(&session->calls, weir_after_ns(now_ns, timeout_ns));
	if (!call)
		return -EAGAIN;
	rc = weir_message_send(session, kind, call->tag, data, length);
	if (rc) {
		put_pending_call(&session->calls, call);
		return rc;
	}
	call->answer = answer;
	if (answer)
		weir_waiter_begin(session);
	call->callback = callback;
	weir_pump_pull(session);
	weir_pump_poll(session, now_ns);
	return 0;
}

static int call_and_wait(struct weir_session *session, enum wire_control_kind kind,
			 const void *data, size_t length, struct weir_answer *answer)
{
	int rc;

	weir_session_lock(session);
	rc = send_call(session, kind, data, length, session->options.timeout_ns, answer, NULL);
	if (rc) {
		weir_dispatch(session);
		return rc;
	}
	weir_pump_leave_to_waiters(session);
	weir_dispatch(session);
	/* send_call() has set the deadline. After the wait no thread may write to @answer. */
	weir_waiter_wait(&answer->waiter, session, &session->call_idle_time, UINT64_MAX);
	return answer->waiter.status;
}

int weir_call(struct weir_session *session, const void *data, size_t length, void *reply,
	      size_t reply_max, size_t *reply_length)
{
	struct weir_answer answer = { WEIR_WAITER_INIT, reply, reply_max, 0 };
	int rc;

	rc = call_and_wait(session, WIRE_APP_CALL, data, length, &answer);
	if (!rc && reply_length)
		*reply_length = answer.length;
	return rc;
}

int weir_call_async(struct weir_session *session, const void *data, size_t length,
		    uint64_t timeout_ns, weir_reply_fn *fn, void *arg)
{
	struct weir_call_callback *callback = malloc(sizeof(*callback));
	int rc;

	if (!callback)
		return -ENOMEM;
	*callback = (struct weir_call_callback){ .fn = fn, .arg = arg };
	weir_list_init(&callback->link);
	if (!timeout_ns)
		timeout_ns = session->options.timeout_ns;
	weir_session_lock(session);
	rc = send_call(session, WIRE_APP_CALL, data, length, timeout_ns, NULL, callback);
	if (rc)
		free(callback);
	else
		weir_pump_leave(session, false);
	weir_dispatch(session);
	return rc;
}

static int explain_reply(struct weir_error *error, int status, const struct weir_answer *answer)
{
	char text[sizeof(error->text)];

	wire_control_text_decode(answer->body, answer->length, text, sizeof(text));
	return weir_error_set(error, status, "%s", text[0] ? text : weir_strerror(status));
}

int weir_call_control(struct weir_session *session, struct wire_control_request *request,
		      const char *name, void *reply, size_t reply_max, size_t *reply_length,
		      struct weir_error *error)
{
	struct weir_answer answer = { WEIR_WAITER_INIT, reply, reply_max, 0 };
	char body[sizeof(*request) + WIRE_CONTROL_NAME_MAX];
	int length, rc;

	length = wire_control_request_encode(request, name, body);
	if (length < 0)
		return weir_error_set(error, length,
				      "'%s' cannot name a region: 1 to %d bytes without '/'", name,
				      WIRE_CONTROL_NAME_MAX);
	rc = call_and_wait(session, WIRE_CONTROL_CALL, body, (size_t)length, &answer);
	if (rc)
		return explain_reply(error, rc, &answer);
	*reply_length = answer.length;
	return 0;
}
