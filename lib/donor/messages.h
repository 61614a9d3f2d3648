/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A donor's messages to and from one client, on its channel 0. */
#ifndef WEIR_LIB_DONOR_MESSAGES_H
#define WEIR_LIB_DONOR_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#define WEIR_DONOR_CLIENT_RECVS 32 /* posted buffers for a client's messages */
#define WEIR_DONOR_CLIENT_SENDS 16 /* messages to a client in flight */
#define WEIR_DONOR_CLIENT_QUEUE_MAX 256 /* messages of the application that wait for room */

struct ibv_pd;
struct ibv_qp;
struct weir_call;
struct weir_donor;
struct weir_peer;
struct wire_control_reclaim;

/**
 * weir_donor_messages_init() - allocate buffers, and post the receives
 * @client: its qp is set
 * @credits: granted by the client's HELLO
 *
 * Return: 0; -ENOMEM; -EPROTO too few credits.
 */
int weir_donor_messages_init(struct weir_peer *client, struct ibv_pd *pd, uint16_t credits,
			     struct weir_error *error);

/**
 * weir_donor_messages_resume() - prepare a new channel 0 of a returning client
 * @qp: of the new channel; the old QP is in the error state, and its messages have been received
 * @credits: granted by the client's new HELLO
 *
 * Unsent messages of the application will go out. Answers to earlier calls are dropped, because the
 * client has given those calls up. Owes a weir_donor_messages_flush().
 * Return: 0; or, with nothing changed: -EPROTO too few credits; -ENOMEM; -ESTALE messages of the
 * application were in flight on the old channel, and their arrival is unknown.
 */
int weir_donor_messages_resume(struct weir_peer *client, struct ibv_qp *qp, uint16_t credits,
			       struct weir_error *error);

/* Sends queued messages after the client's WELCOME on the new channel. */
void weir_donor_messages_flush(struct weir_peer *client, struct ibv_qp *qp);

/* Drops queued messages, and frees the buffers. The QP is destroyed. */
void weir_donor_messages_fini(struct weir_peer *client);

/* Tells the client, behind all queued messages, that the donor closes the session. */
void weir_donor_messages_close(struct weir_peer *client);
/* Whether the device has sent all, or no channel is there to send on. */
bool weir_donor_messages_are_sent(struct weir_peer *client);

/* Handle completions. Return: 0, or -EPROTO: the client breaks the protocol. */
int weir_donor_messages_received(struct weir_peer *client, unsigned int buffer, uint32_t length);
void weir_donor_messages_sent(struct weir_peer *client, unsigned int buffer);

/* Whether an answer can still reach the caller: not after its client's end or return. */
bool weir_donor_messages_is_wanted(const struct weir_call *call);

/* Answers a CONTROL_CALL, and frees @call. Context: any thread. */
void weir_donor_messages_reply(struct weir_call *call, int status, const void *body, size_t length);

/* Frees a call whose client has broken the protocol. */
void weir_donor_messages_drop(struct weir_call *call);

/* Asks for memory back. Context: the donor's thread. */
void weir_donor_messages_reclaim(struct weir_peer *client,
				 const struct wire_control_reclaim *recall);

/* control.c: serves a CONTROL_CALL, and answers now or later. Return: 0; -EPROTO. */
int weir_donor_control_serve(struct weir_call *call, struct weir_peer *client, const void *body,
			     size_t length);

/* control.c: answers the calls whose regions are ready. Context: the donor's thread. */
void weir_donor_control_progress(struct weir_donor *donor);

/* control.c: ends the calls that wait. Context: after the donor's thread and the worker. */
void weir_donor_control_stop(struct weir_donor *donor);

#endif
