/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control messages on channel 0: one call about regions at a time with its reply, and the donor's
 * own messages that demand memory back. The session returns credits to the donor with a call, or
 * with a message that carries only credits (core/link/credit.h).
 *
 * Once a donor accepts a connection, it sends all pending messages at once. Those arrive before
 * both ends have agreed on the connection, and are read afterwards.
 */
#ifndef WEIR_KERNEL_WEIR_CONTROL_H
#define WEIR_KERNEL_WEIR_CONTROL_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "core/link/call_table.h"
#include "core/link/credit.h"
#include "kernel/weir/weir.h"
#include "wire/control.h"
#include "wire/handshake.h"

#define KWEIR_CONTROL_RECVS WEIR_CREDITS_MIN
#define KWEIR_CONTROL_CALL_MAX                                                    \
	(sizeof(struct wire_control_head) + sizeof(struct wire_control_request) + \
	 WIRE_CONTROL_NAME_MAX)
#define KWEIR_CONTROL_ANSWER_MAX 256
#define KWEIR_CONTROL_CALLS 16 /* the last one, those without a reply, and holds to return */
/* Credit messages in channel 0's send queue and CQ; calls pass through the engine. */
#define KWEIR_CONTROL_SENDS 1

struct kweir_conn;

/* Message buffers, on pages of their own that are mapped for the device. */
struct kweir_control_buffers {
	u8 received[KWEIR_CONTROL_RECVS][WIRE_CONTROL_MESSAGE_BYTES];
	u8 call[KWEIR_CONTROL_CALL_MAX];
	u8 grant[sizeof(struct wire_control_head)];
};

/**
 * struct kweir_control - control messages of one session
 * @mutex: held by the caller of kweir_control_call()
 * @buffers, @dma: message buffers, and their address for the device
 * @io: sends a call; @sent completes with @io; @sending: nobody has waited for @sent yet, guarded
 *	by @mutex
 * @timeout_ms: limit for sending a call and receiving the reply
 *
 * Guarded by nic->lock:
 *
 * @credit: credits of this connection
 * @granting: a credit message is in flight
 * @calling: @io may be in flight
 * @entries, @calls: of this session; @call: index of the last call
 * @answered: the reply to it has arrived, or never will
 * @status: of the reply
 * @answer: body of the reply, the first @length bytes
 */
struct kweir_control {
	struct kweir_session *session;
	struct mutex mutex;
	struct kweir_control_buffers *buffers;
	u64 dma;
	struct kweir_io io;
	struct completion sent;
	bool sending;
	unsigned int timeout_ms;

	struct weir_credit credit;
	bool granting;
	bool calling;
	struct weir_call_entry entries[KWEIR_CONTROL_CALLS];
	struct weir_call_table calls;
	unsigned int call;
	struct completion answered;
	int status;
	u32 length;
	u8 answer[KWEIR_CONTROL_ANSWER_MAX];
};

/* Requires a session with a device. Context: process. Return: 0; -ENOMEM. */
int kweir_control_init(struct kweir_control *control, struct kweir_session *session);
void kweir_control_fini(struct kweir_control *control);

/* Posts the receive buffers of a new channel 0. Return: 0 or a negative errno. */
int kweir_control_post(struct kweir_control *control, struct kweir_conn *conn);

/* Starts to count credits of a new connection. With nic->lock held. Return: 0; -EPROTO. */
int kweir_control_link_up(struct kweir_control *control,
			  const struct wire_handshake_welcome *welcome);

/* The channel is up: reads the messages that arrived earlier. With nic->lock held. */
void kweir_control_read_early(struct kweir_control *control);

/* A receive has completed. With nic->lock held. */
void kweir_control_received(struct kweir_control *control, struct kweir_conn *conn,
			    const struct ib_wc *wc);

/* A credit message has been sent. With nic->lock held. */
void kweir_control_granted(struct kweir_control *control, struct kweir_conn *conn,
			   const struct ib_wc *wc);

/*
 * Tells the donor that the session closes, if channel 0 has room now. The caller then fails the
 * links, and waits for nothing. With nic->lock held.
 */
void kweir_control_close(struct kweir_control *control);

/* Channel 0 has broken: wakes the caller without a reply. With nic->lock held. */
void kweir_control_link_down(struct kweir_control *control);

/**
 * kweir_control_call() - send a request to the donor and wait for the reply
 * @request: the request; @name: of a region, or NULL
 * @answer: receives the body, exactly @size bytes
 *
 * Context: process; sleeps.
 * Return: 0; the donor's error, with its sentence in @error; -EINVAL bad name; -EPROTO;
 * -ECONNRESET, -ETIMEDOUT, -EINTR no reply; -ENOTCONN, -EAGAIN the request was not sent.
 */
int kweir_control_call(struct kweir_control *control, struct wire_control_request *request,
		       const char *name, void *answer, size_t size, struct kweir_error *error);

#endif
