/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection: what the connection manager calls an id, its QP and its CQ, and whoever polls that.
 *
 * It is made aside (kweir_conn_open()), and nobody else knows it until both ends have proven the key
 * and it becomes its link's. Its QP ends first (kweir_conn_destroy_qp()); its id only when the next one
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
#define KWEIR_CONN_SENT 1
#define KWEIR_CONN_RECEIVED 2 /* and the next WIRE_HANDSHAKE_RECVS */
#define KWEIR_CONTROL_GRANTED 14 /* credits of control.h */
#define KWEIR_CONN_KEEPALIVE 15 /* by keepalive.h */
#define KWEIR_CONTROL_RECEIVED 16 /* and the next KWEIR_CONTROL_RECVS */
#define KWEIR_WR_ID_MAX 255

#define KWEIR_HANDSHAKE_SENDS 2
#define KWEIR_CONN_BUFFERS (WIRE_HANDSHAKE_RECVS + KWEIR_HANDSHAKE_SENDS)

/* What the handshake has sent, or may receive. */
struct kweir_conn_buffer {
	u8 data[WIRE_HANDSHAKE_MAX];
};

/**
 * struct kweir_conn - one connection
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
 * @control: bytes of each message behind these that came before it was its link's, in the order of
 *	the control's buffers; @nr_control of them. Guarded by nic->lock
 * @buffers: to receive, then to send; @dma: of them
 *
 * What is heard and received is written once, and then link->wait woken.
 */
struct kweir_conn {
	struct kweir_link *link;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	bool dead;
	struct work_struct work;
	struct weir_poll poll;
	struct weir_idle_time gaps;
	int events;

	bool gone;
	int heard;
	int heard_status;
	struct wire_handshake_refusal refusal;
	u32 received[WIRE_HANDSHAKE_RECVS];
	unsigned int nr_received;
	bool failed;
	u32 control[KWEIR_CONTROL_RECVS];
	unsigned int nr_control;
	struct kweir_conn_buffer *buffers;
	u64 dma;
};

/**
 * kweir_conn_open() - connect to the session's donor, and prove the key
 * @link: CLOSED or BROKEN
 * @conn: receives it
 * @welcome: receives what the donor said
 *
 * Context: process; sleeps, until the session's timeout, a signal, or the session's end.
 * Return: as kweir_session_connect(); -ECANCELED the session ends.
 */
int kweir_conn_open(struct kweir_link *link, struct kweir_conn **conn,
		    struct wire_handshake_welcome *welcome, struct kweir_error *error);

/*
 * Takes what has completed, or a part. With nic->lock held. Return: how many; 0: there is no more.
 */
u32 kweir_conn_poll(struct kweir_conn *conn, u64 now_ns);

/* The same, on all of the session's links that are up. */
u32 kweir_conns_poll(struct kweir_session *session, u64 now_ns);

/* Destroys its QP and CQ; what they had under way is over then. Sleeps; without nic->lock. */
void kweir_conn_destroy_qp(struct kweir_conn *conn);

/* Ends the rest, too; the donor hears of it. NULL is none. Sleeps; without nic->lock. */
void kweir_conn_free(struct kweir_conn *conn);

#endif
