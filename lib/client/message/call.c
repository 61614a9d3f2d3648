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

/* A tag is a generation, and below it the place in calls->asks. */
#define TAG_BITS 10
static_assert(WIRE_CALLS_MAX == 1 << TAG_BITS, "a tag holds the place");

int weir_calls_init(struct weir_calls *calls)
{
	int i;

	calls->asks = calloc(WIRE_CALLS_MAX, sizeof(*calls->asks));
	if (!calls->asks)
		return -ENOMEM;
	for (i = 0; i < WIRE_CALLS_MAX; i++)
		weir_list_add_tail(&calls->free, &calls->asks[i].link);
	calls->next_deadline_ns = UINT64_MAX;
	calls->generation = 1;
	return 0;
}

void weir_calls_fini(struct weir_calls *calls)
{
	free(calls->asks);
}

static struct weir_ask *ask_get(struct weir_calls *calls, uint64_t deadline_ns)
{
	struct weir_ask *ask;

	if (weir_list_is_empty(&calls->free))
		return NULL;
	ask = weir_list_entry(calls->free.next, struct weir_ask, link);
	weir_list_del(&ask->link);
	ask->tag = calls->generation++ << TAG_BITS | (uint64_t)(ask - calls->asks);
	ask->deadline_ns = deadline_ns;
	if (deadline_ns < calls->next_deadline_ns)
		calls->next_deadline_ns = deadline_ns;
	return ask;
}

static void ask_put(struct weir_calls *calls, struct weir_ask *ask)
{
	ask->tag = 0;
	ask->answer = NULL;
	ask->callback = NULL;
	weir_list_add(&calls->free, &ask->link);
}

void weir_callback_deliver(struct weir_callback *callback)
{
	struct weir_parcel *parcel = callback->parcel;

	callback->fn(callback->arg, callback->status, parcel ? parcel->body : NULL,
		     parcel ? parcel->head.length : 0);
}

void weir_callback_free(struct weir_callback *callback)
{
	weir_list_del(&callback->link);
	free(callback->parcel);
	free(callback);
}

/* Its caller sleeps or polls: the answer is copied straight to where it is wanted. */
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

static void end_callback(struct weir_session *session, struct weir_callback *callback,
			 int status, const struct wire_head *head, const void *body)
{
	if (!status && head->length) {
		callback->parcel = weir_parcel_make(head, body);
		if (!callback->parcel)
			status = -ENOMEM;
	}
	callback->status = status;
	weir_list_add_tail(&session->calls.done, &callback->link);
}

/* Tells whoever still wants to know. With status 0 there is a head and a body. */
static void ask_end(struct weir_session *session, struct weir_ask *ask, int status,
		    const struct wire_head *head, const void *body)
{
	if (ask->answer)
		end_answer(session, ask->answer, status, body, head ? head->length : 0);
	if (ask->callback)
		end_callback(session, ask->callback, status, head, body);
	ask->answer = NULL;
	ask->callback = NULL;
}

int weir_calls_answer(struct weir_session *session, const struct wire_head *head, const void *body)
{
	struct weir_calls *calls = &session->calls;
	struct weir_ask *ask = &calls->asks[head->tag % WIRE_CALLS_MAX];

	if (!head->tag || ask->tag != head->tag)
		return -EPROTO;
	ask_end(session, ask, head->status, head, body);
	ask_put(calls, ask);
	return 0;
}

static bool is_wanted(const struct weir_ask *ask)
{
	return ask->answer || ask->callback;
}

void weir_calls_expire(struct weir_session *session, uint64_t now_ns)
{
	struct weir_calls *calls = &session->calls;
	uint64_t next_ns = UINT64_MAX;
	unsigned int i;

	if (now_ns < calls->next_deadline_ns)
		return;
	for (i = 0; i < WIRE_CALLS_MAX; i++) {
		struct weir_ask *ask = &calls->asks[i];

		if (!is_wanted(ask))
			continue;
		if (ask->deadline_ns <= now_ns)
			ask_end(session, ask, -ETIMEDOUT, NULL, NULL);
		else if (ask->deadline_ns < next_ns)
			next_ns = ask->deadline_ns;
	}
	calls->next_deadline_ns = next_ns;
}

void weir_call_keep(struct weir_calls *calls, uint64_t tag)
{
	struct weir_ask *ask = &calls->asks[tag % WIRE_CALLS_MAX];

	ask->kept = tag && ask->tag == tag;
}

void weir_calls_down(struct weir_session *session, int status)
{
	struct weir_calls *calls = &session->calls;
	unsigned int i;

	/*
	 * The next deadline may now be earlier than any that is kept: it is looked at for nothing.
	 */
	for (i = 0; i < WIRE_CALLS_MAX; i++) {
		struct weir_ask *ask = &calls->asks[i];

		if (ask->tag && !ask->kept) {
			ask_end(session, ask, status, NULL, NULL);
			ask_put(calls, ask);
		}
		ask->kept = false;
	}
}

/* With nic->lock held. One of @answer and @callback is NULL. */
static int ask(struct weir_session *session, enum wire_kind kind, const void *data, size_t length,
	       uint64_t timeout_ns, struct weir_answer *answer, struct weir_callback *callback)
{
	uint64_t now_ns = weir_now_ns();
	struct weir_ask *ask;
	int rc;

	ask = ask_get(&session->calls, weir_after_ns(now_ns, timeout_ns));
	if (!ask)
		return -EAGAIN;
	rc = weir_message_send(session, kind, ask->tag, data, length);
	if (rc) {
		ask_put(&session->calls, ask);
		return rc;
	}
	ask->answer = answer;
	if (answer)
		weir_waiter_begin(session);
	ask->callback = callback;
	weir_pump_pull(session);
	weir_pump_poll(session, now_ns);
	return 0;
}

/* Asks, and waits. */
static int call(struct weir_session *session, enum wire_kind kind, const void *data, size_t length,
		struct weir_answer *answer)
{
	int rc;

	weir_session_lock(session);
	rc = ask(session, kind, data, length, session->options.timeout_ns, answer, NULL);
	if (rc) {
		weir_deliver(session);
		return rc;
	}
	weir_pump_part(session);
	weir_deliver(session);
	/* The deadline is the ask's: after this nobody may write to @answer. */
	weir_waiter_wait(&answer->waiter, session, &session->call_gaps, UINT64_MAX);
	return answer->waiter.status;
}

int weir_call(struct weir_session *session, const void *data, size_t length, void *reply,
	      size_t reply_max, size_t *reply_length)
{
	struct weir_answer answer = { WEIR_WAITER_INIT, reply, reply_max, 0 };
	int rc;

	rc = call(session, WIRE_CALL, data, length, &answer);
	if (!rc && reply_length)
		*reply_length = answer.length;
	return rc;
}

int weir_call_async(struct weir_session *session, const void *data, size_t length,
		    uint64_t timeout_ns, weir_reply_fn *fn, void *arg)
{
	struct weir_callback *callback = malloc(sizeof(*callback));
	int rc;

	if (!callback)
		return -ENOMEM;
	*callback = (struct weir_callback){ .fn = fn, .arg = arg };
	weir_list_init(&callback->link);
	if (!timeout_ns)
		timeout_ns = session->options.timeout_ns;
	weir_session_lock(session);
	rc = ask(session, WIRE_CALL, data, length, timeout_ns, NULL, callback);
	if (rc)
		free(callback);
	else
		weir_pump_leave(session, false);
	weir_deliver(session);
	return rc;
}

static int explain(struct weir_error *error, int status, const struct weir_answer *answer)
{
	char text[sizeof(error->text)];

	wire_text_decode(answer->body, answer->length, text, sizeof(text));
	return weir_fail(error, status, "%s", text[0] ? text : weir_strerror(status));
}

int weir_control_call(struct weir_session *session, struct wire_request *request,
		      const char *name, void *reply, size_t reply_max, size_t *reply_length,
		      struct weir_error *error)
{
	struct weir_answer answer = { WEIR_WAITER_INIT, reply, reply_max, 0 };
	char body[sizeof(*request) + WIRE_NAME_MAX];
	int length, rc;

	length = wire_request_encode(request, name, body);
	if (length < 0)
		return weir_fail(error, length,
				 "'%s' cannot name a region: 1 to %d bytes without '/'", name,
				 WIRE_NAME_MAX);
	rc = call(session, WIRE_CONTROL_CALL, body, (size_t)length, &answer);
	if (rc)
		return explain(error, rc, &answer);
	*reply_length = answer.length;
	return 0;
}
