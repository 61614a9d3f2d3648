/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between the applications at the two ends of a session, and calls: messages with a reply.
 */
#ifndef WEIR_MESSAGE_H
#define WEIR_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct weir_peer; /* the donor's view of a client; valid until on_leave returns */
struct weir_call; /* a call that waits for its reply */

#define WEIR_MESSAGE_MAX 16000 /* bytes of one message */

/**
 * typedef weir_message_fn - called when a message arrives
 * @arg: from the options
 * @peer: the sending client; NULL at the client, where the sender is the donor
 * @call: NULL for a plain message; otherwise the receiver owes a weir_reply()
 * @data: the message; valid during the call only
 * @length: bytes
 *
 * Messages of one peer arrive in the order sent, one at a time. The function must not block.
 *
 * Context: At a donor the donor's thread; at a client as weir_done_fn.
 */
typedef void weir_message_fn(void *arg, struct weir_peer *peer, struct weir_call *call,
			     const void *data, size_t length);

/**
 * weir_send() - send a message to the donor's application
 * @session: the session
 * @data: copied
 * @length: bytes, at most WEIR_MESSAGE_MAX
 *
 * Blocks only while the peer grants no room. Inside a callback the call never blocks: a message
 * without room is queued.
 *
 * Context: Any thread.
 * Return: 0; -EMSGSIZE; -ENOTCONN; -ETIMEDOUT; -ENOMEM; in a callback also -EAGAIN if 2048 messages
 * are queued.
 */
int weir_send(struct weir_session *session, const void *data, size_t length);

/**
 * weir_call() - send a message and wait for the reply
 * @session: the session
 * @data: the message
 * @length: bytes, at most WEIR_MESSAGE_MAX
 * @reply: receives the reply
 * @reply_max: bytes that fit at @reply
 * @reply_length: receives the reply's length
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or
 *	-EMSGSIZE    the message or the reply is too long;
 *	-EAGAIN      1024 calls of this session wait for a reply;
 *	-ENOTCONN    the session is down;
 *	-ECONNRESET  the channel failed: the outcome is unknown;
 *	-ETIMEDOUT   no reply in time;
 *	-ENOMEM      out of memory.
 */
int weir_call(struct weir_session *session, const void *data, size_t length, void *reply,
	      size_t reply_max, size_t *reply_length);

/**
 * weir_call_while() - weir_call() without a timeout
 * @goes_on: asked after the session's timeout without a reply, and ten times a second from then on;
 *	false ends the wait. Must not block
 * @arg: for @goes_on
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: as weir_call() without -ETIMEDOUT, or -ECANCELED @goes_on ended the wait: the outcome is
 * unknown.
 */
int weir_call_while(struct weir_session *session, const void *data, size_t length, void *reply,
		    size_t reply_max, size_t *reply_length, bool (*goes_on)(void *arg), void *arg);

/*
 * The reply to a weir_call_async(): @status, as weir_call() returns it, and, if 0, the bytes, valid
 * during the call. Context: as weir_done_fn.
 */
typedef void weir_reply_fn(void *arg, int status, const void *reply, size_t length);

/*
 * Like weir_call(), without waiting. @timeout_ns 0 means the session's timeout, UINT64_MAX none:
 * for replies that may take long, such as a lock's.
 *
 * Context: Any thread; does not block.
 * Return: 0 (@fn runs once, perhaps before the call returns), or no call of @fn and
 *	-EMSGSIZE    the message is too long;
 *	-EAGAIN      1024 calls of this session wait for a reply;
 *	-ENOTCONN    the session is down;
 *	-ENOMEM      out of memory.
 */
int weir_call_async(struct weir_session *session, const void *data, size_t length,
		    uint64_t timeout_ns, weir_reply_fn *fn, void *arg);

/**
 * weir_reply() - reply to a call
 * @call: consumed, even on failure
 * @data: the reply; copied
 * @length: bytes
 *
 * Context: Any thread, inside the callback or later.
 * Return: 0; -EMSGSIZE too long: an empty reply was sent; -ENOTCONN the peer is gone.
 */
int weir_reply(struct weir_call *call, const void *data, size_t length);

/*
 * For donors: sends a message to one client. Context: any thread. Return: 0; -EAGAIN the client
 * reads too slowly.
 */
int weir_peer_send(struct weir_peer *peer, const void *data, size_t length);

#ifdef __cplusplus
}
#endif
#endif
