/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection: what the connection manager calls an id, its QP and its CQ, and whoever polls that.
 *
 * It is made aside (weir_conn_open()), and nobody else knows it until both ends have proven the key
 * and it becomes its link's. Its QP ends first (weir_conn_bury()); its id only when the next one
 * is there, because its end tells the donor that the session has left.
 */
#ifndef WEIR_KERNEL_CONN_H
#define WEIR_KERNEL_CONN_H

#include <rdma/rdma_cm.h>

#include "core/poll/poll.h"
#include "kernel/weir/weir.h"
#include "kernel/weir/link.h"
#include "kernel/weir/control.h"
#include "wire/handshake.h"

/* wr_ids; those of the engine's WRs are addresses. */
#define WEIR_CONN_SENT 1
#define WEIR_CONN_RECEIVED 2 /* and the next WIRE_HANDSHAKE_RECVS */
#define WEIR_MAIL_GRANTED 14 /* credits of mail.h */
#define WEIR_CONN_ASKED 15 /* by keepalive.h */
#define WEIR_MAIL_RECEIVED 16 /* and the next WEIR_MAIL_RECVS */
#define WEIR_WR_ID_MAX 255

#define WEIR_HANDSHAKE_SENDS 2
#define WEIR_CONN_BUFFERS (WIRE_HANDSHAKE_RECVS + WEIR_HANDSHAKE_SENDS)

/* What the handshake has sent, or may receive. */
struct weir_conn_buffer {
	u8 data[WIRE_HANDSHAKE_MAX];
};

/**
 * struct weir_conn - one connection
 * @link: for whose channel
 * @id: with the QP, while there is one
 * @cq: of both its queues
 * @dead: @cq must not be touched any more; guarded by nic->lock
 * @work: polls; @poll, @gaps: when it does
 * @events: that woke @work, and are not counted yet; of the work's
 * @gone: the connection manager said that it has ended
 * @heard: what the connection manager said last, an enum rdma_cm_event_type; -1: nothing new
 * @heard_status: with which status
 * @refusal: with which words, if refusal.head.magic is there
 * @received: bytes of each message of the handshake that has come, in order
 * @nr_received: how many; @failed: no more will come
 * @mail: bytes of each message behind these that came before it was its link's, in the order of
 *	the mail's buffers; @nr_mail of them. Guarded by nic->lock
 * @buffers: to receive, then to send; @dma: of them
 *
 * What is heard and received is written once, and then link->wait woken.
 */
struct weir_conn {
	struct weir_link *link;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	bool dead;
	struct work_struct work;
	struct weir_poll poll;
	struct weir_gaps gaps;
	int events;

	bool gone;
	int heard;
	int heard_status;
	struct wire_refusal refusal;
	u32 received[WIRE_HANDSHAKE_RECVS];
	unsigned int nr_received;
	bool failed;
	u32 mail[WEIR_MAIL_RECVS];
	unsigned int nr_mail;
	struct weir_conn_buffer *buffers;
	u64 dma;
};

/**
 * weir_conn_open() - connect to the session's donor, and prove the key
 * @link: CLOSED or BROKEN
 * @conn: receives it
 * @welcome: receives what the donor said
 *
 * Context: process; sleeps, until the session's timeout, a signal, or the session's end.
 * Return: as weir_session_connect(); -ECANCELED the session ends.
 */
int weir_conn_open(struct weir_link *link, struct weir_conn **conn, struct wire_welcome *welcome,
		   struct weir_error *error);

/*
 * Takes what has completed, or a part. With nic->lock held. Return: how many; 0: there is no more.
 */
u32 weir_conn_poll(struct weir_conn *conn, u64 now_ns);

/* The same, on all of the session's links that are up. */
u32 weir_conns_poll(struct weir_session *session, u64 now_ns);

/* Destroys its QP and CQ; what they had under way is over then. Sleeps; without nic->lock. */
void weir_conn_bury(struct weir_conn *conn);

/* Ends the rest, too; the donor hears of it. NULL is none. Sleeps; without nic->lock. */
void weir_conn_free(struct weir_conn *conn);

#endif
