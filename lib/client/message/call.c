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

#define ASK_NS (100 * WEIR_NS_PER_MS) /* between questions of weir_call_while() */

int weir_calls_init(struct weir_calls *calls)
{
	struct weir_call_entry *entries = calloc(WIRE_CONTROL_CALLS_MAX, sizeof(*entries));

	calls->table.entries = entries;
	calls->callers = calloc(WIRE_CONTROL_CALLS_MAX, sizeof(*calls->callers));
	if (!entries || !calls->callers)
		return -ENOMEM; /* weir_calls_fini() frees what there is */
	weir_call_table_init(&calls->table, entries, WIRE_CONTROL_CALLS_MAX);
	return 0;
}

void weir_calls_fini(struct weir_calls *calls)
{
	free(calls->table.entries);
	free(calls->callers);
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

/* Reports the end to the caller. With status 0 there are a head and a body. */
static void end_call(struct weir_session *session, unsigned int index, int status,
		     const struct wire_control_head *head, const void *body)
{
	struct weir_caller *caller = &session->calls.callers[index];

	if (caller->answer)
		end_answer(session, caller->answer, status, body, head ? head->length : 0);
	if (caller->callback)
		end_callback(session, caller->callback, status, head, body);
	*caller = (struct weir_caller){ 0 };
}

int weir_calls_reply(struct weir_session *session, const struct wire_control_head *head,
		     const void *body)
{
	unsigned int index;
	int rc = weir_call_table_reply(&session->calls.table, head, body, &index);

	if (!rc)
		end_call(session, index, head->status, head, body);
	return rc == -ESTALE ? 0 : rc;
}

void weir_calls_expire(struct weir_session *session, uint64_t now_ns)
{
	int index;

	while ((index = weir_call_table_expire(&session->calls.table, now_ns)) >= 0)
		end_call(session, (unsigned int)index, -ETIMEDOUT, NULL, NULL);
}

void weir_calls_down(struct weir_session *session, int status)
{
	unsigned int i;

	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++)
		if (weir_call_table_broken(&session->calls.table, i))
			end_call(session, i, status, NULL, NULL);
}

/* With nic->lock held. One of @caller's is NULL. @hold: that the call returns, or 0. */
static int send_call(struct weir_session *session, enum wire_control_kind kind, const void *data,
		     size_t length, uint64_t timeout_ns, uint64_t hold, struct weir_caller caller)
{
	struct weir_call_table *table = &session->calls.table;
	uint64_t now_ns = weir_now_ns();
	int rc, index = weir_call_table_begin(table, weir_after_ns(now_ns, timeout_ns), hold);

	if (index < 0)
		return index;
	rc = weir_message_send(session, kind, table->entries[index].tag, data, length);
	if (rc) {
		weir_call_table_cancel(table, (unsigned int)index);
		return rc;
	}
	session->calls.callers[index] = caller;
	if (caller.answer)
		weir_waiter_begin(session);
	weir_pump_pull(session);
	weir_pump_poll(session, now_ns);
	return 0;
}

static int begin_call(struct weir_session *session, enum wire_control_kind kind, const void *data,
		      size_t length, uint64_t timeout_ns, uint64_t hold, struct weir_answer *answer)
{
	int rc;

	weir_session_lock(session);
	rc = send_call(session, kind, data, length, timeout_ns, hold,
		       (struct weir_caller){ .answer = answer });
	if (!rc)
		weir_pump_leave_to_waiters(session);
	weir_dispatch(session);
	return rc;
}

/* A call ends by its deadline at the latest. After the wait no thread may write to @answer. */
static int wait_for_answer(struct weir_session *session, struct weir_answer *answer)
{
	weir_waiter_wait(&answer->waiter, session, &session->call_idle_time, UINT64_MAX);
	return answer->waiter.status;
}

static int call_and_wait(struct weir_session *session, enum wire_control_kind kind,
			 const void *data, size_t length, uint64_t hold, struct weir_answer *answer)
{
	int rc = begin_call(session, kind, data, length, session->options.timeout_ns, hold, answer);

	return rc ? rc : wait_for_answer(session, answer);
}

int weir_call(struct weir_session *session, const void *data, size_t length, void *reply,
	      size_t reply_max, size_t *reply_length)
{
	struct weir_answer answer = { WEIR_WAITER_INIT, reply, reply_max, 0 };
	int rc;

	rc = call_and_wait(session, WIRE_APP_CALL, data, length, 0, &answer);
	if (!rc && reply_length)
		*reply_length = answer.length;
	return rc;
}

/* Ends the call unless its reply has just come. */
static void abandon_call(struct weir_session *session, const struct weir_answer *answer)
{
	struct weir_calls *calls = &session->calls;
	unsigned int i;

	weir_session_lock(session);
	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++)
		if (calls->callers[i].answer == answer && weir_call_table_abandon(&calls->table, i))
			end_call(session, i, -ECANCELED, NULL, NULL);
	weir_pump_leave_to_waiters(session);
	weir_dispatch(session);
}

int weir_call_while(struct weir_session *session, const void *data, size_t length, void *reply,
		    size_t reply_max, size_t *reply_length, bool (*goes_on)(void *arg), void *arg)
{
	struct weir_answer answer = { WEIR_WAITER_INIT, reply, reply_max, 0 };
	uint64_t until_ns = weir_after_ns(weir_now_ns(), session->options.timeout_ns);
	int rc = begin_call(session, WIRE_APP_CALL, data, length, UINT64_MAX, 0, &answer);

	if (rc)
		return rc;
	while (!weir_waiter_wait(&answer.waiter, session, &session->call_idle_time, until_ns)) {
		if (!goes_on(arg)) {
			abandon_call(session, &answer);
			break;
		}
		until_ns = weir_now_ns() + ASK_NS;
	}
	rc = wait_for_answer(session, &answer);
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
	rc = send_call(session, WIRE_APP_CALL, data, length, timeout_ns, 0,
		       (struct weir_caller){ .callback = callback });
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

/* Returns regions that the donor granted to callers that had timed out. */
static void return_granted(struct weir_session *session)
{
	struct wire_control_request request = { .op = WIRE_REGION_CLOSE };
	size_t length;

	do {
		weir_session_lock(session);
		request.value = weir_call_table_granted(&session->calls.table);
		weir_session_unlock(session);
	} while (request.value &&
		 !weir_call_control(session, &request, NULL, NULL, 0, &length, NULL));
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
	rc = call_and_wait(session, WIRE_CONTROL_CALL, body, (size_t)length,
			   request->op == WIRE_REGION_CLOSE ? request->value : 0, &answer);
	if (rc)
		rc = explain_reply(error, rc, &answer);
	else
		*reply_length = answer.length;
	/* -EAGAIN: holds to return may fill the table. */
	if ((!rc || rc == -EAGAIN) && request->op != WIRE_REGION_CLOSE)
		return_granted(session);
	return rc;
}
