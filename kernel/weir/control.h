/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is said about regions, on channel 0: one call at a time, and its answer; and what the donor
 * says by itself, when it wants memory back. For that it gets its credits back, by a call, or by a
 * message of their own (wire/credit.h).
 *
 * A donor that has let a new connection in says at once what has waited for it. That comes before
 * both ends have agreed on the connection, and is read when they have.
 */
#ifndef WEIR_KERNEL_WEIR_CONTROL_H
#define WEIR_KERNEL_WEIR_CONTROL_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "kernel/weir/weir.h"
#include "wire/control.h"
#include "wire/credit.h"
#include "wire/handshake.h"

#define KWEIR_CONTROL_RECVS WIRE_CREDITS_MIN
#define KWEIR_CONTROL_CALL_MAX                                                    \
	(sizeof(struct wire_control_head) + sizeof(struct wire_control_request) + \
	 WIRE_CONTROL_NAME_MAX)
#define KWEIR_CONTROL_ANSWER_MAX 256
#define KWEIR_CONTROL_LATE_MAX 4
/* Of credits, in channel 0's send queue and its CQ; calls go by the engine. */
#define KWEIR_CONTROL_SENDS 1

struct kweir_conn;

/* Where messages lie; on pages of its own, for the device. */
struct kweir_control_buffers {
	u8 received[KWEIR_CONTROL_RECVS][WIRE_CONTROL_MESSAGE_BYTES];
	u8 call[KWEIR_CONTROL_CALL_MAX];
	u8 grant[sizeof(struct wire_control_head)];
};

/**
 * struct kweir_control - of one session
 * @mutex: held by who calls
 * @buffers, @dma: see above
 * @io: sends a call; @sent: it is done; @sending: nobody has seen that yet, guarded by @mutex
 * @patience_ms: until it is sent and answered
 *
 * Guarded by nic->lock:
 *
 * @credit: on this connection
 * @granting: credits are on their way
 * @calling: @io may be under way
 * @tag: of the last call
 * @waiting: for its answer; @answered: it came, or will not
 * @status: of the answer
 * @answer: its body, the first @length bytes
 * @late: holds that came for somebody who had given up, and are to be closed, @nr_late of
 *	them. Who does not answer is not asked for more and more, so they are few; what does not fit
 *	the session's end gives back
 */
struct kweir_control {
	struct kweir_session *session;
	struct mutex mutex;
	struct kweir_control_buffers *buffers;
	u64 dma;
	struct kweir_io io;
	struct completion sent;
	bool sending;
	unsigned int patience_ms;

	struct wire_credit_balance credit;
	bool granting;
	bool calling;
	u64 tag;
	bool waiting;
	struct completion answered;
	int status;
	u32 length;
	u8 answer[KWEIR_CONTROL_ANSWER_MAX];
	u64 late[KWEIR_CONTROL_LATE_MAX];
	unsigned int nr_late;
};

/* Context: process. The session has its device. Return: 0; -ENOMEM. */
int kweir_control_init(struct kweir_control *control, struct kweir_session *session);
void kweir_control_fini(struct kweir_control *control);

/* Posts the buffers of a new channel 0. Return: 0 or a negative errno. */
int kweir_control_post(struct kweir_control *control, struct kweir_conn *conn);

/* Credits begin anew with it. With nic->lock held. Return: 0; -EPROTO. */
int kweir_control_link_up(struct kweir_control *control,
			  const struct wire_handshake_welcome *welcome);

/* The channel is up: reads what has come by it before. With nic->lock held. */
void kweir_control_read_early(struct kweir_control *control);

/* A receive has completed. With nic->lock held. */
void kweir_control_received(struct kweir_control *control, struct kweir_conn *conn,
			    const struct ib_wc *wc);

/* Credits were sent. With nic->lock held. */
void kweir_control_granted(struct kweir_control *control, struct kweir_conn *conn,
			   const struct ib_wc *wc);

/* Channel 0 is no more: who waits for an answer waits in vain. With nic->lock held. */
void kweir_control_link_down(struct kweir_control *control);

/**
 * kweir_control_call() - ask the donor
 * @request: about what; @name: NULL or of a region
 * @answer: receives the body, @size bytes, which must be exactly so long
 *
 * Context: process; sleeps.
 * Return: 0; what the donor said, with its sentence in @error; -EINVAL the name; -EPROTO;
 * -ECONNRESET, -ETIMEDOUT, -EINTR no answer; -ENOTCONN, -EAGAIN: it was not even asked.
 */
int kweir_control_call(struct kweir_control *control, struct wire_control_request *request,
		       const char *name, void *answer, size_t size, struct kweir_error *error);

#endif
