/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"

/* A thread that came to submit does not deliver other threads' completions for ever. */
#define ROUNDS_MAX 16

_Thread_local const struct weir_nic *weir_dispatch_nic;
static _Thread_local struct weir_session *inside;

bool weir_dispatch_is_inside(void)
{
	return inside;
}

static bool may_handle_message(const struct weir_session *session)
{
	return !session->messages.handling && !weir_list_is_empty(&session->messages.inbox);
}

static void move_list(struct weir_list *from, struct weir_list *to)
{
	weir_list_init(to);
	if (weir_list_is_empty(from))
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	weir_list_init(from);
}

struct round {
	struct weir_list requests;
	struct weir_list callbacks;
	struct weir_message_copy *message;
};

static void round_take(struct weir_session *session, struct round *round)
{
	struct weir_messages *m = &session->messages;

	move_list(&session->done, &round->requests);
	move_list(&session->calls.done, &round->callbacks);
	round->message = NULL;
	if (!may_handle_message(session))
		return;
	round->message = weir_list_entry(m->inbox.next, struct weir_message_copy, link);
	weir_list_del(&round->message->link);
	m->handling = true;
}

static void round_run(struct weir_session *session, struct round *round)
{
	const struct weir_session_options *options = &session->options;
	struct weir_list *at;

	for (at = round->requests.next; at != &round->requests; at = at->next)
		weir_request_dispatch(weir_list_entry(at, struct weir_request, link));
	for (at = round->callbacks.next; at != &round->callbacks; at = at->next)
		weir_call_callback_run(weir_list_entry(at, struct weir_call_callback, link));
	if (round->message && options->on_message)
		options->on_message(options->arg, NULL, NULL, round->message->body,
				    round->message->head.length);
}

/* Return: true if the message inbox was full, so that receives were not polled. */
static bool round_return(struct weir_session *session, struct round *round)
{
	struct weir_messages *m = &session->messages;

	while (!weir_list_is_empty(&round->requests))
		weir_request_dispatched(
			weir_list_entry(round->requests.next, struct weir_request, link));
	weir_requests_notify(session);
	while (!weir_list_is_empty(&round->callbacks))
		weir_call_callback_free(
			weir_list_entry(round->callbacks.next, struct weir_call_callback, link));
	if (!round->message)
		return false;
	free(round->message);
	m->handling = false;
	return m->inbox_count-- == WEIR_INBOX_MAX;
}

void weir_dispatch_later(struct weir_session *session)
{
	if (weir_session_has_callbacks(session) && !session->dispatching)
		weir_pump_kick(session);
}

/* After a round: posts requests from the callbacks and polls for their completions. */
static void post_and_poll(struct weir_session *session, bool has_events)
{
	if (has_events || !weir_list_is_empty(&session->active))
		weir_pump_poll(session, weir_now_ns());
	weir_pump_leave_to_waiters(session);
}

void weir_dispatch_locked(struct weir_session *session)
{
	struct round round;
	int rounds;

	if (inside) {
		if (inside != session)
			weir_dispatch_later(session);
		return;
	}
	for (rounds = 0; weir_session_has_callbacks(session); rounds++) {
		if (rounds == ROUNDS_MAX) {
			weir_pump_kick(session);
			break;
		}
		round_take(session, &round);
		session->dispatching++;
		inside = session;
		weir_dispatch_nic = session->nic;
		weir_session_unlock(session);

		round_run(session, &round);

		weir_session_lock(session);
		inside = NULL;
		weir_dispatch_nic = NULL;
		post_and_poll(session, round_return(session, &round));
		if (!--session->dispatching)
			weir_waitqueue_wake_all(&session->idle);
	}
}

void weir_dispatch(struct weir_session *session)
{
	struct weir_nic *nic = session->nic;

	weir_dispatch_locked(session);
	weir_combine_unlock(nic);
}
