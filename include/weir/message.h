/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between the applications at the two ends of a session, and calls: a message
 * that is answered.
 */
#ifndef WEIR_MESSAGE_H
#define WEIR_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct weir_peer; /* the donor's view of one client; valid until on_leave returns */
struct weir_call; /* a call that waits for its answer */

#define WEIR_MESSAGE_MAX 16000 /* bytes of one message */

/**
 * typedef weir_message_fn - a message arrived
 * @peer: who sent it (NULL at the client: it was the donor)
 * @call: NULL, or what weir_reply() wants: the sender waits for an answer
 * @data: valid during the call only
 *
 * Messages of one peer arrive in the order sent, one at a time. Must not block.
 */
typedef void weir_message_fn(void *arg, struct weir_peer *peer, struct weir_call *call,
			     const void *data, size_t length);

/**
 * weir_send() - send a message to the donor's application
 *
 * Copies @data. Context: any thread; blocks only while the peer has granted no room; never in a
 * callback, where such a message is kept and sent later.
 * Return: 0; -EMSGSIZE; -ENOTCONN; -ETIMEDOUT; -ENOMEM; in a callback also -EAGAIN, 2048 are kept.
 */
int weir_send(struct weir_session *session, const void *data, size_t length);

/**
 * weir_call() - send a message and wait for the answer
 * @reply, @reply_max: where the answer goes
 * @reply_length: receives its length
 *
 * Context: any thread but a callback.
 * Return: 0; -EMSGSIZE one of the two is too long; -ENOTCONN; -ETIMEDOUT; -ECONNRESET; -ENOMEM;
 * -EAGAIN 1024 calls of this session wait for an answer.
 */
int weir_call(struct weir_session *session, const void *data, size_t length, void *reply,
	      size_t reply_max, size_t *reply_length);

/* The answer to a weir_call_async(): @status, and if that is 0 the bytes, valid during the call. */
typedef void weir_reply_fn(void *arg, int status, const void *reply, size_t length);

/* The same without waiting, and without a time limit if @timeout_ns is UINT64_MAX (0: the
 * session's): for answers that may be long in coming, such as a lock. @fn runs as weir_done_fn
 * does, once, if this returns 0. */
int weir_call_async(struct weir_session *session, const void *data, size_t length,
		    uint64_t timeout_ns, weir_reply_fn *fn, void *arg);

/**
 * weir_reply() - answer a call, once, now or later, from any thread
 *
 * Uses up @call, also when it fails. Return: 0; -EMSGSIZE (an empty answer was sent);
 * -ENOTCONN the peer is gone.
 */
int weir_reply(struct weir_call *call, const void *data, size_t length);

/* Donor: a message to one client. Context: any thread. -EAGAIN: it reads too slowly. */
int weir_peer_send(struct weir_peer *peer, const void *data, size_t length);

#ifdef __cplusplus
}
#endif
#endif
