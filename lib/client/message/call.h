/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that wait for their answers: the application's and weir's own.
 *
 * A call that times out keeps its place until its answer comes after all: the donor, too,
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

struct weir_parcel;

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
	struct weir_parcel *parcel; /* the copy of the answer */
};

/**
 * struct weir_ask - the place of one call
 * @link: among the free, or in no list
 * @tag: its number on the wire, or 0 when it is free: a generation and the place
 * @deadline_ns: when it ends with -ETIMEDOUT
 * @answer, @callback: who wants to know: one of them, or neither any more
 * @kept: by the next weir_calls_down()
 */
struct weir_ask {
	struct weir_list link;
	uint64_t tag;
	uint64_t deadline_ns;
	struct weir_answer *answer;
	struct weir_callback *callback;
	bool kept;
};

/**
 * struct weir_calls - all of a session
 * @asks: WIRE_CALLS_MAX of them
 * @free: those not in use
 * @done: callbacks that wait to be run
 * @next_deadline_ns: no deadline is earlier
 * @generation: of the next tag
 */
struct weir_calls {
	struct weir_ask *asks;
	struct weir_list free;
	struct weir_list done;
	uint64_t next_deadline_ns;
	uint64_t generation;
};

/* Return: 0; -ENOMEM. Without the lock. */
int weir_calls_init(struct weir_calls *calls);
void weir_calls_fini(struct weir_calls *calls);

/* An answer came. Return: 0; -EPROTO nobody asked. */
int weir_calls_answer(struct weir_session *session, const struct wire_head *head,
		      const void *body);

/* Ends what is late. */
void weir_calls_expire(struct weir_session *session, uint64_t now_ns);

/* The call, if @tag is one's, is kept by the next weir_calls_down(): it was not sent yet. */
void weir_call_keep(struct weir_calls *calls, uint64_t tag);

/* Ends all that are not kept. */
void weir_calls_down(struct weir_session *session, int status);

/* Runs one from calls->done. Without the lock. */
void weir_callback_deliver(struct weir_callback *callback);
void weir_callback_free(struct weir_callback *callback);

/**
 * weir_control_call() - a call of weir's own, waited for
 * @request: op, flags and value are set
 * @name: or NULL
 * @reply, @reply_max, @reply_length: where the answer goes, and how long it is
 * @error: receives the donor's sentence on failure; may be NULL
 *
 * Context: any thread but a callback, without the lock.
 * Return: what the donor says; -EINVAL a bad name; -ENOTCONN; -ECONNRESET; -ETIMEDOUT.
 */
int weir_control_call(struct weir_session *session, struct wire_request *request,
		      const char *name, void *reply, size_t reply_max, size_t *reply_length,
		      struct weir_error *error);

#endif
