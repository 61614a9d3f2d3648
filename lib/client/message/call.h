/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that wait for their replies: the application's and weir's own. core/link/call_table.h
 * decides when each ends; here are the callers.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_MESSAGE_CALL_H
#define WEIR_LIB_CLIENT_MESSAGE_CALL_H

#include <stdbool.h>
#include <weir/error.h>
#include <weir/message.h>

#include "core/base/list.h"
#include "core/link/call_table.h"
#include "lib/client/request/waiter.h"
#include "wire/control.h"

struct weir_message_copy;

/* The buffer of a blocking caller for the reply; on the caller's stack. */
struct weir_answer {
	struct weir_waiter waiter;
	void *body;
	size_t max;
	size_t length;
};

/* The callback of a weir_call_async(); allocated. */
struct weir_call_callback {
	struct weir_list link; /* in calls->done, when ready to run */
	weir_reply_fn *fn;
	void *arg;
	int status;
	struct weir_message_copy *reply; /* the copy of the reply */
};

/* Who waits for a call's reply: at most one is set, and neither after a timeout. */
struct weir_caller {
	struct weir_answer *answer;
	struct weir_call_callback *callback;
};

/**
 * struct weir_calls - all calls of a session
 * @table: their lives, in WIRE_CONTROL_CALLS_MAX entries
 * @callers: by the index of the entry
 * @done: callbacks ready to run
 */
struct weir_calls {
	struct weir_call_table table;
	struct weir_caller *callers;
	struct weir_list done;
};

/* Return: 0; -ENOMEM. Without the lock. */
int weir_calls_init(struct weir_calls *calls);
void weir_calls_fini(struct weir_calls *calls);

/* Handles a reply. Return: 0; -EPROTO no such call. */
int weir_calls_reply(struct weir_session *session, const struct wire_control_head *head,
		     const void *body);

/* Ends calls with passed deadlines. */
void weir_calls_expire(struct weir_session *session, uint64_t now_ns);

/* Ends all calls but those of weir_call_table_keep(). */
void weir_calls_down(struct weir_session *session, int status);

/* Runs a callback from calls->done. Without the lock. */
void weir_call_callback_run(struct weir_call_callback *callback);
void weir_call_callback_free(struct weir_call_callback *callback);

/**
 * weir_call_control() - make one of weir's own calls and wait
 * @request: op, flags and value are set
 * @name: or NULL
 * @reply, @reply_max, @reply_length: buffer for the reply, its size, and the reply's length
 * @error: receives the donor's sentence on failure; may be NULL
 *
 * Context: any thread but a callback, without the lock.
 * Return: the donor's status; -EINVAL a bad name; -ENOTCONN; -ECONNRESET; -ETIMEDOUT.
 */
int weir_call_control(struct weir_session *session, struct wire_control_request *request,
		      const char *name, void *reply, size_t reply_max, size_t *reply_length,
		      struct weir_error *error);

#endif
