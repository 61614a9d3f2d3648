/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that wait for their answers: the application's and weir's own.
 *
 * A call_and_wait that times out keeps its place until its answer comes after all: the donor, too,
 * counts how many it has not answered.
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

/* Where a blocking caller wants the answer; on its stack. */
struct weir_answer {
	struct weir_waiter waiter;
	void *body;
	size_t max;
	size_t length;
};

/* What a weir_call_async() wants done with it; allocated. */
struct weir_callback {
	struct weir_list link; /* in calls->done, once it is to be run */
	weir_reply_fn *fn;
	void *arg;
	int status;
	struct weir_message_copy *parcel; /* the copy of the answer */
};

/**
 * struct weir_pending_call - the place of one call_and_wait
 * @link: among the free, or in no list
 * @tag: its number on the wire, or 0 when it is free: a generation and the place
 * @deadline_ns: when it ends with -ETIMEDOUT
 * @answer, @callback: who wants to know: one of them, or neither any more
 * @kept: by the next weir_call_table_down()
 */
struct weir_pending_call {
	struct weir_list link;
	uint64_t tag;
	uint64_t deadline_ns;
	struct weir_answer *answer;
	struct weir_callback *callback;
	bool kept;
};

/**
 * struct weir_call_table - all of a session
 * @pending: WIRE_CONTROL_CALLS_MAX of them
 * @free: those not in use
 * @done: callbacks that wait to be run
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

/* An answer came. Return: 0; -EPROTO nobody asked. */
int weir_call_table_reply(struct weir_session *session, const struct wire_control_head *head,
			  const void *body);

/* Ends what is late. */
void weir_call_table_expire(struct weir_session *session, uint64_t now_ns);

/* The call_and_wait, if @tag is one's, is kept by the next weir_call_table_down(): it was not sent yet. */
void weir_call_keep(struct weir_call_table *calls, uint64_t tag);

/* Ends all that are not kept. */
void weir_call_table_down(struct weir_session *session, int status);

/* Runs one from calls->done. Without the lock. */
void weir_callback_dispatch(struct weir_callback *callback);
void weir_callback_free(struct weir_callback *callback);

/**
 * weir_call_control() - a call_and_wait of weir's own, waited for
 * @request: op, flags and value are set
 * @name: or NULL
 * @reply, @reply_max, @reply_length: where the answer goes, and how long it is
 * @error: receives the donor's sentence on failure; may be NULL
 *
 * Context: any thread but a callback, without the lock.
 * Return: what the donor says; -EINVAL a bad name; -ENOTCONN; -ECONNRESET; -ETIMEDOUT.
 */
int weir_call_control(struct weir_session *session, struct wire_control_request *request,
		      const char *name, void *reply, size_t reply_max, size_t *reply_length,
		      struct weir_error *error);

#endif
