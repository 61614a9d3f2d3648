/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's messages to and from one peer, on its channel 0.
 */
#ifndef WEIR_LIB_DONOR_MESSAGES_H
#define WEIR_LIB_DONOR_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#define WEIR_DONOR_CLIENT_RECVS 32 /* posted buffers for a peer's messages */
#define WEIR_DONOR_CLIENT_SENDS 16 /* messages to a peer in flight */
#define WEIR_DONOR_CLIENT_QUEUE_MAX 256 /* messages of the application that wait for room */

struct ibv_pd;
struct ibv_qp;
struct weir_peer;
struct wire_control_reclaim;

/**
 * weir_donor_messages_init() - take buffers, and post those to receive
 * @client: its qp is set
 * @credits: what the client's HELLO grants
 *
 * Return: 0; -ENOMEM; -EPROTO too few credits.
 */
int weir_donor_messages_init(struct weir_peer *client, struct ibv_pd *pd, uint16_t credits,
			     struct weir_error *error);

/**
 * weir_donor_messages_resume() - a client is coming back on a new channel 0
 * @qp: the new one's. The old one is in the error state and all that came on it is received
 * @credits: what the client's new HELLO grants
 *
 * Messages of the application that were not sent yet will go out; answers to what was called before
 * are dropped, for the client has given those calls up. Owes a weir_donor_messages_flush().
 *
 * Return: 0; or, with nothing changed: -EPROTO too few credits; -ENOMEM; -ESTALE messages of the
 *	application were on the old channel, and whether they arrived is not known.
 */
int weir_donor_messages_resume(struct weir_peer *client, struct ibv_qp *qp, uint16_t credits,
			       struct weir_error *error);

/* The client has its WELCOME on the new channel: sends what waits. */
void weir_donor_messages_flush(struct weir_peer *client, struct ibv_qp *qp);

/* The QP is destroyed. Drops what waits, and frees the buffers. */
void weir_donor_messages_fini(struct weir_peer *client);

/* Completions. Return: 0, or -EPROTO: the client breaks the protocol. */
int weir_donor_messages_received(struct weir_peer *client, unsigned int buffer, uint32_t length);
void weir_donor_messages_sent(struct weir_peer *client, unsigned int buffer);

/* The answer to a CONTROL_CALL. Context: any thread. */
void weir_donor_messages_reply(struct weir_peer *client, uint64_t tag, int status, const void *body,
			       size_t length);

/* Asks for memory back. Context: the donor's thread. */
void weir_donor_messages_reclaim(struct weir_peer *client,
				 const struct wire_control_reclaim *recall);

/* clerk.c: does what a CONTROL_CALL asks for, and answers it. Return: 0; -EPROTO. */
int weir_donor_control_serve(struct weir_peer *client, uint64_t tag, const void *body,
			     size_t length);

#endif
