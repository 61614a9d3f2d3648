/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages on channel 0, in both directions.
 *
 * An outgoing message takes a credit and a registered buffer; without either it waits in a backlog,
 * in order. Messages not posted before channel 0 broke stay in their buffers and go first when the
 * channel is back. Incoming messages are checked and copied, and the buffers posted again at once.
 * At most WEIR_INBOX_MAX copies wait for a slow handler; then the CQ is not polled, so that the
 * donor runs out of credits.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_MESSAGE_MESSAGE_H
#define WEIR_LIB_CLIENT_MESSAGE_MESSAGE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <weir/message.h>

#include "lib/client/request/request.h"
#include "lib/client/request/waiter.h"
#include "lib/conn/proof.h"
#include "wire/control.h"
#include "core/link/credit.h"
#include "wire/handshake.h"

#define WEIR_MESSAGE_RECVS 64 /* buffers posted, and so credits granted */
#define WEIR_MESSAGE_SENDS 32 /* buffers to send from */
#define WEIR_BACKLOG_MAX 2048 /* messages */
#define WEIR_INBOX_MAX 64

/* A buffer to send from; its request is free or in the engine. */
struct weir_send_buffer {
	struct weir_request request;
	struct weir_list link;
	char *buffer;
};

/* A thread in weir_send() that waits for room. */
struct weir_send_waiter {
	struct weir_list link;
	struct weir_waiter waiter;
};

/* A copy of a message that waits for room or for its handler. */
struct weir_message_copy {
	struct weir_list link;
	struct wire_control_head head;
	char body[];
};

/* One link's handshake buffers in the arena: lib/conn/proof.h. */
struct weir_handshake_buffers {
	char recvs[WIRE_HANDSHAKE_RECVS][WIRE_HANDSHAKE_MAX];
	char sends[WEIR_PROOF_SENDS + 1][WIRE_HANDSHAKE_MAX];
};

/**
 * struct weir_messages - all of a session
 * @arena: all buffers, registered as @mr: receive, send, handshakes
 * @body_max: longest body that the donor takes, bytes
 * @credit: flow control
 * @outgoing, @free_outgoing: buffers to send from
 * @unsent: outgoing messages not posted when channel 0 broke, in order
 * @backlog, @backlog_count: copies that wait for room
 * @lost: a one-way message failed with channel 0
 * @waiting: senders that wait for room
 * @inbox, @inbox_count: copies for the handler
 * @handling: a thread is running the handler
 * @is_closing: the CREDIT that closes the session must still be posted
 */
struct weir_messages {
	char *arena;
	struct ibv_mr *mr;
	uint32_t body_max;
	struct weir_credit credit;
	struct weir_send_buffer outgoing[WEIR_MESSAGE_SENDS];
	struct weir_list free_outgoing;
	struct weir_list unsent;
	struct weir_list backlog;
	unsigned int backlog_count;
	bool lost;
	struct weir_list waiting;
	struct weir_list inbox;
	unsigned int inbox_count;
	bool handling;
	bool is_closing;
};

/* A copy of a message. NULL: out of memory. Without the lock. */
struct weir_message_copy *weir_message_copy_new(const struct wire_control_head *head,
						const void *body);
void weir_message_copies_free(struct weir_list *list);

/* Allocates the buffers; the session's NIC is known. Without the lock. Return: 0; -ENOMEM. */
int weir_messages_init(struct weir_session *session, struct weir_error *error);
void weir_messages_fini(struct weir_session *session);

struct weir_handshake_buffers *weir_messages_handshake(struct weir_session *session,
						       unsigned int channel);

/* Posts all receive buffers to the QP of channel 0, old or new. Return: 0 or a negative errno. */
int weir_messages_post(struct weir_session *session, struct ibv_qp *qp);

/**
 * weir_message_send() - send, or add to the backlog
 *
 * Owes a weir_pump_pull(). Return: 0; -ENOTCONN; -ENOMEM; -EAGAIN the backlog is full.
 */
int weir_message_send(struct weir_session *session, enum wire_control_kind kind, uint64_t tag,
		      const void *data, size_t length);

/* Sends waiting messages as far as there is room. Owes a weir_pump_pull(). */
void weir_messages_flush(struct weir_session *session);

/* Ends an outgoing message when the engine is done with its request. */
void weir_messages_finish(struct weir_request *request);

/* Polls for arrived messages. Owes a weir_pump_pull(). Return: number of messages. */
int weir_messages_poll(struct weir_session *session);

/* Tells the donor, behind all other messages, that the session closes. Owes a weir_pump_pull(). */
void weir_messages_close(struct weir_session *session);

/* Return: true if all accepted messages have been sent and their completions polled. */
bool weir_messages_are_sent(const struct weir_session *session);

/* Return: true if there is room for messages that channel 0 may still have received. */
bool weir_messages_have_room(const struct weir_session *session);

/* Keeps calls that are not sent yet: the next channel 0 will send them. */
void weir_messages_keep_unsent_calls(struct weir_session *session);

/**
 * weir_messages_broken() - channel 0 is BROKEN, and all its received messages are taken
 *
 * Sent calls end with -ECONNRESET. Unsent messages wait until the channel is back. If one-way
 * messages were in flight, whose arrival is unknown, the session is lost.
 */
void weir_messages_broken(struct weir_session *session);

/* Drops unsent messages: nothing can be sent any more. */
void weir_messages_down(struct weir_session *session);

#endif
