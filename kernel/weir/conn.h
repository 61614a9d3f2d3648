/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection: an id of the connection manager, a QP, a CQ and the work that polls the CQ.
 *
 * kweir_conn_open() makes a connection in private. The link publishes the connection only after
 * both ends have proven the key. The QP ends first (kweir_conn_destroy_qp()). The id stays until
 * the next connection is up, because the end of an id tells the donor that the session has left.
 */
#ifndef WEIR_KERNEL_WEIR_CONN_H
#define WEIR_KERNEL_WEIR_CONN_H

#include <rdma/rdma_cm.h>

#include "core/poll/poll.h"
#include "kernel/weir/weir.h"
#include "kernel/weir/link.h"
#include "kernel/weir/control.h"
#include "wire/handshake.h"

/* wr_ids below are small numbers; the wr_ids of the engine's WRs are addresses. */
#define KWEIR_CONN_SENT 1
#define KWEIR_CONN_RECEIVED 2 /* and the next WIRE_HANDSHAKE_RECVS */
#define KWEIR_CONTROL_GRANTED 14 /* credits, from control.h */
#define KWEIR_CONN_KEEPALIVE 15 /* keepalive.h */
#define KWEIR_CONTROL_RECEIVED 16 /* and the next KWEIR_CONTROL_RECVS */
#define KWEIR_WR_ID_MAX 255

#define KWEIR_HANDSHAKE_SENDS 2
#define KWEIR_CONN_BUFFERS (WIRE_HANDSHAKE_RECVS + KWEIR_HANDSHAKE_SENDS)

/* One handshake message, sent or received. */
struct kweir_conn_buffer {
	u8 data[WIRE_HANDSHAKE_MAX];
};

/**
 * struct kweir_conn - one connection
 * @link: the channel of this connection
 * @id: connection manager's id; holds the QP while the QP exists
 * @cq: for both queues of the QP
 * @dead: @cq must not be touched any more; guarded by nic->lock
 * @work: polls @cq; @poll and @idle_time decide when
 * @events: wake-ups of @work not yet counted; used by @work only
 * @gone: the connection manager has reported the end of the connection
 * @heard: last event of the connection manager, an enum rdma_cm_event_type; -1: no new event
 * @heard_status: status of that event
 * @reject: the donor's refusal, valid if its magic is set
 * @received: bytes of each handshake message received, in order
 * @nr_received: count of @received; @failed: no more messages will arrive
 * @control: bytes of each control message received before the link was up, in the order of the
 *	control buffers; @nr_control messages. Guarded by nic->lock
 * @buffers: receive buffers, then send buffers; mapped for the device at @dma
 *
 * An event or a message is stored once; then link->wait is woken.
 */
struct kweir_conn {
	struct kweir_link *link;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	bool dead;
	struct work_struct work;
	struct weir_poll poll;
	struct weir_idle_time idle_time;
	int events;

	bool gone;
	int heard;
	int heard_status;
	struct wire_handshake_reject reject;
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
 * @conn: receives the connection
 * @welcome: receives the donor's WELCOME
 *
 * Context: process; sleeps until the session's timeout, a signal, or the end of the session.
 * Return: as kweir_session_connect(); -ECANCELED the session has ended.
 */
int kweir_conn_open(struct kweir_link *link, struct kweir_conn **conn,
		    struct wire_handshake_welcome *welcome, struct kweir_error *error);

/* Handles a batch of completions, with nic->lock held. Return: how many; 0: the CQ is empty. */
u32 kweir_conn_poll(struct kweir_conn *conn, u64 now_ns);

/* Polls all links of the session that are up; as kweir_conn_poll(). */
u32 kweir_conns_poll(struct kweir_session *session, u64 now_ns);

/* Destroys QP and CQ, and so ends all work in flight. Sleeps; without nic->lock. */
void kweir_conn_destroy_qp(struct kweir_conn *conn);

/* Frees @conn, which may be NULL, and so tells the donor. Sleeps; without nic->lock. */
void kweir_conn_free(struct kweir_conn *conn);

#endif
