/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that wait for their replies: the application's and weir's own.
 *
 * A call that times out keeps its entry until the reply comes: the donor also counts unanswered
 * calls.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_MESSAGE_CALL_H
#define WEIR_LIB_CLIENT_MESSAGE_CALL_H

#include <stdbool.h>
#include <weir/error.h>
#include <weir/message.h>

#include "core/base/list.h"
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

/**
 * struct weir_pending_call - the entry of one call
 * @link: in the free list, or in no list
 * @tag: number on the wire, or 0 when free: a generation and the index
 * @deadline_ns: when the call ends with -ETIMEDOUT
 * @answer, @callback: at most one is set; neither after a timeout
 * @kept: by the next weir_call_table_down()
 */
struct weir_pending_call {
	struct weir_list link;
	uint64_t tag;
	uint64_t deadline_ns;
	struct weir_answer *answer;
	struct weir_call_callback *callback;
	bool kept;
};

/**
 * struct weir_call_table - all calls of a session
 * @pending: WIRE_CONTROL_CALLS_MAX entries
 * @free: unused entries
 * @done: callbacks ready to run
 * @next_deadline_ns: no deadline is earlier
 * @generation: of the next tag
 */
struct weir_call_table {
	struct weir_pending_call *pending;
	struct weir_list free;
	struct weir_list done;
	uint64_t next_deadline_ns;
	uint64_t generation;
};

/* Return: 0; -ENOMEM. Without the lock. */
int weir_call_table_init(struct weir_call_table *calls);
void weir_call_table_fini(struct weir_call_table *calls);

/* Handles a reply. Return: 0; -EPROTO no such call. */
int weir_call_table_reply(struct weir_session *session, const struct wire_control_head *head,
			  const void *body);

/* Ends calls with passed deadlines. */
void weir_call_table_expire(struct weir_session *session, uint64_t now_ns);

/* Lets the next weir_call_table_down() keep the call of @tag, if any: the call was not sent yet. */
void weir_call_keep(struct weir_call_table *calls, uint64_t tag);

/* Ends all calls that are not kept. */
void weir_call_table_down(struct weir_session *session, int status);

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
