/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One connection to a donor: a QP, in the PD of the tenant named by the REQ.
 *
 * Before the proof of the tenant's key, a client gets only a QP without any right to remote access,
 * two small receive buffers and WEIR_HANDSHAKE_NS. After the proof the connection becomes a channel
 * of a client, new or known.
 *
 * A channel that breaks without a disconnect is kept, with the QP in the error state. The client
 * may replace it by a new connection, or may leave.
 */
#ifndef WEIR_LIB_DONOR_CONN_H
#define WEIR_LIB_DONOR_CONN_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/list.h"
#include "core/link/keepalive.h"
#include "core/poll/poll.h"
#include "lib/conn/handshake.h"
#include "lib/conn/places.h"

struct weir_cm_event;
struct weir_donor;
struct weir_peer;
struct weir_donor_secret;
struct weir_donor_unload_rx;

/* The kind of work in a wr_id; the lower bits are the index of a buffer. */
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
 * @client: the owner; NULL: unproven
 * @mr: over @buffers, for the handshake; one more buffer for sends than for receives
 * @handshake: until WELCOME is written; then NULL
 * @newcomer: its place while unproven
 * @deadline_ns: end of an unproven or broken connection
 * @core: up after the proof, and failing once the QP has failed: the client may come back
 * @is_refused: ends when the refusal is sent
 * @secret: the key that its REQ named; @tenant: of that key; @channel: named by the REQ
 * @is_dead: ends at the end of this turn: weir_donor_conn_reap()
 * @keepalive: probes the client on channel 0
 * @awake_link: in the donor's awake list, or in none: then @cq is armed
 * @poll: decides when to stop polling
 * @unload_rx: state of unloaded writes, on a proven WIRE_CHANNEL_UNLOAD; or NULL
 */
struct weir_donor_conn {
	struct weir_list link;
	struct weir_donor *donor;
	struct weir_peer *client;
	char name[64];
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct weir_handshake *handshake;
	struct weir_donor_secret *secret;
	unsigned int tenant;
	uint16_t channel;
	struct weir_newcomer newcomer;
	uint64_t deadline_ns;
	struct weir_link core;
	bool is_refused, is_dead;
	struct weir_keepalive keepalive;
	struct weir_list awake_link;
	struct weir_poll poll;
	struct weir_donor_unload_rx *unload_rx;
	char buffers[2 * WIRE_HANDSHAKE_RECVS][WIRE_HANDSHAKE_MAX];
};

/* conn_accept.c: accepts or rejects a connection request, whose id this call owns. */
void weir_donor_conn_request(struct weir_donor *donor, const struct weir_cm_event *request);

/* Handles a CQ event: polling starts. */
void weir_donor_conn_handle_event(struct weir_donor_conn *conn, uint64_t now_ns);

/* Polls the CQ of an awake connection, up to a bound; arms before sleeping. */
void weir_donor_conn_poll(struct weir_donor_conn *conn, uint64_t now_ns);

/* Handles a disconnect, wanted or not: takes earlier completions, then ends. */
void weir_donor_conn_disconnected(struct weir_donor_conn *conn);

/**
 * weir_donor_conn_break() - handle a QP that has failed or is to be replaced
 *
 * The connection stays idle until replaced, or until the client leaves or stays away too long.
 */
void weir_donor_conn_break(struct weir_donor_conn *conn, const char *why);

/* Destroys the QP of a broken connection at once, and the rest at the end of this turn. */
void weir_donor_conn_retire(struct weir_donor_conn *conn);

/* Takes all messages that the client has sent on the connection. */
void weir_donor_conn_drain(struct weir_donor_conn *conn);

/* Ends an unproven or broken connection after its deadline. */
void weir_donor_conn_expire(struct weir_donor_conn *conn);

/* Cuts a connection off, at the end of this turn. */
void weir_donor_conn_kill(struct weir_donor_conn *conn, const char *why);

/* Destroys a dead connection, and informs its client. */
void weir_donor_conn_reap(struct weir_donor_conn *conn);

/* Frees the connection with its QP, CQ and MR, if any; the id stays. */
void weir_donor_conn_destroy(struct weir_donor_conn *conn);

#endif
