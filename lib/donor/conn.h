/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One connection to a donor: a QP, in the PD of the tenant that its REQ named.
 *
 * Until the client has proven the tenant's key it gets nothing but this: a QP without any right
 * to remote access, two small receive buffers and WEIR_HANDSHAKE_NS. Then it becomes a channel of a
 * peer, a new one or that of its session.
 *
 * A channel that breaks without a word from the connection manager is kept, its QP in the error
 * state: its client may come back on a new connection, which takes its place, or leave after all.
 */
#ifndef WEIR_LIB_DONOR_CONN_H
#define WEIR_LIB_DONOR_CONN_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/list.h"
#include "core/poll/poll.h"
#include "lib/conn/handshake.h"

struct weir_donor;
struct weir_peer;
struct weir_donor_unload_rx;

/* What a completion's wr_id says: one of these, and below it the index of a buffer. */
enum weir_donor_wr {
	WEIR_DONOR_WR_HANDSHAKE_RECV = 1 << 16,
	WEIR_DONOR_WR_HANDSHAKE_SEND = 2 << 16,
	WEIR_DONOR_WR_MESSAGE_RECV = 3 << 16,
	WEIR_DONOR_WR_MESSAGE_SEND = 4 << 16,
	WEIR_DONOR_WR_UNLOAD_RECV = 5 << 16,
	WEIR_DONOR_WR_UNLOAD_RETURN = 6 << 16,
	WEIR_DONOR_WR_KEEPALIVE = 7 << 16,
	WEIR_DONOR_WR_MASK = 0xff << 16,
};

/**
 * struct weir_donor_conn - one connection
 * @name: the client's address
 * @client: whom it belongs to; NULL: unproven
 * @mr: over @buffers, for the handshake; one more buffer for what is sent than is received
 * @deadline_ns: when it ends, while it is unproven or broken
 * @is_refused: it ends when the refusal is sent
 * @is_broken: its QP has failed and its client may come back
 * @is_dead: it ends at the end of this turn: weir_donor_conn_reap()
 * @probe_ns: when its client is asked, on channel 0; @is_probe_in_flight: it has not answered: ask.h
 * @awake_link: among the donor's awake conns, or in no list: then @cq is armed
 * @poll: when it falls asleep
 * @unload_rx: what its client unloads, on WIRE_CHANNEL_UNLOAD once proven; or NULL
 */
struct weir_donor_conn {
	struct weir_list link;
	struct weir_donor *donor;
	struct weir_peer *client;
	char name[64];
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct weir_handshake handshake;
	unsigned int tenant;
	uint64_t deadline_ns;
	bool is_refused, is_broken, is_dead;
	uint64_t probe_ns;
	bool is_probe_in_flight;
	struct weir_list awake_link;
	struct weir_poll poll;
	struct weir_donor_unload_rx *unload_rx;
	uint8_t buffers[2 * WIRE_HANDSHAKE_RECVS][WIRE_HANDSHAKE_MAX];
};

/**
 * weir_donor_conn_request() - admit.c: somebody wants to connect
 * @id: given
 *
 * Accepts or rejects.
 */
void weir_donor_conn_request(struct weir_donor *donor, struct rdma_cm_id *id,
			     const struct rdma_conn_param *param);

/* An event said that completions are there: it is awake. */
void weir_donor_conn_handle_event(struct weir_donor_conn *conn, uint64_t now_ns);

/* Takes what the CQ of one that is awake has, up to a bound; arms it before it falls asleep. */
void weir_donor_conn_poll(struct weir_donor_conn *conn, uint64_t now_ns);

/* The peer has disconnected, or is to be: takes what it sent before, then ends. */
void weir_donor_conn_disconnected(struct weir_donor_conn *conn);

/**
 * weir_donor_conn_break() - its QP has failed, or is to be replaced
 *
 * Takes no more part in anything until it is replaced, or its client leaves or stays away too long.
 */
void weir_donor_conn_break(struct weir_donor_conn *conn, const char *why);

/* Destroys the QP of a broken one at once, and the rest at the end of this turn. */
void weir_donor_conn_retire(struct weir_donor_conn *conn);

/* Takes all that the client sent on it before now. */
void weir_donor_conn_drain(struct weir_donor_conn *conn);

/* Ends it, if it is unproven or broken and its time is up. */
void weir_donor_conn_expire(struct weir_donor_conn *conn);

/* To be ended at the end of this turn. */
void weir_donor_conn_kill(struct weir_donor_conn *conn, const char *why);

/* Destroys all of a dead conn, and tells its peer. */
void weir_donor_conn_reap(struct weir_donor_conn *conn);

/* Frees it, its QP, CQ and MR, as far as there are any. Its id stays. */
void weir_donor_conn_destroy(struct weir_donor_conn *conn);

#endif
