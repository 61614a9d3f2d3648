/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One proven client of a donor: its channels, its messages, its account.
 *
 * Messages are sent from any thread, under @lock; all else is the donor's thread's. The struct is
 * counted: the donor holds it while the client lives, each call until it is answered.
 */
#ifndef WEIR_LIB_DONOR_CLIENT_H
#define WEIR_LIB_DONOR_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/donor.h>
#include "core/base/list.h"
#include "lib/donor/region_table.h"
#include "wire/credit.h"
#include "wire/handshake.h"

struct weir_donor_conn;

/**
 * struct weir_peer - one client
 * @donor: the donor's thread's
 * @conns: its channels; [0] carries messages
 *
 * Guarded by @lock:
 * @qp: channel 0's; NULL while that is broken, and once the client is gone
 * @is_gone: nothing can be sent to it any more
 * @epoch: how often it has come back; what was called before then wants no answer
 * @refs: free it at zero
 * @queue: messages that wait for a credit or a buffer; @nr_queued of them the application's
 * @nr_calls: received, and not answered and sent yet
 * @sends: bit mask of the send buffers that are free
 */
struct weir_peer {
	struct weir_list link;
	struct weir_donor *donor;
	uint64_t id;
	uint64_t session_id;
	unsigned int tenant;
	char name[64];
	struct weir_region_account account;
	struct weir_donor_conn *conns[WIRE_CHANNEL_UNLOAD + 1];

	struct ibv_mr *mr;
	char *buffers;

	pthread_mutex_t lock;
	struct ibv_qp *qp;
	bool is_gone;
	unsigned int epoch;
	unsigned int refs;
	struct wire_credit_balance credit;
	struct weir_list queue;
	unsigned int nr_queued;
	unsigned int nr_calls;
	uint32_t sends;
};

/**
 * weir_donor_client_new() - a client has proven its key on a channel 0
 * @conn: becomes its first channel
 *
 * Its receive buffers are posted when this returns.
 * Return: 0; -ENOMEM; -EPROTO too few credits.
 */
int weir_donor_client_new(struct weir_donor *donor, struct weir_donor_conn *conn,
			  struct weir_peer **client, struct weir_error *error);

/* The peer that a further channel belongs to. Return: NULL if there is none. */
struct weir_peer *weir_donor_client_find(struct weir_donor *donor, uint64_t session_id,
					 unsigned int tenant);

/**
 * weir_donor_client_attach() - a further channel of a client, or one that comes back
 * @conn: proven; names the channel
 *
 * When this returns, the QP that @conn takes the place of is destroyed: no write that was
 * sent to it can still arrive.
 *
 * Return: 0; -ENOMEM; -EPROTO too few credits; -ESTALE messages to the client were lost with the
 *	old channel 0, so that it cannot go on: its session ends.
 */
int weir_donor_client_attach(struct weir_peer *client, struct weir_donor_conn *conn,
			     struct weir_error *error);

/* A channel's QP has failed. If it is channel 0, what is sent to the client waits. */
void weir_donor_client_conn_broken(struct weir_peer *client, const struct weir_donor_conn *conn);

/**
 * weir_donor_client_mute() - a channel's QP is about to be destroyed
 *
 * If it is channel 0, nobody sends to the client any more, and its other channels are killed.
 */
void weir_donor_client_mute(struct weir_peer *client, const struct weir_donor_conn *conn);

/**
 * weir_donor_client_conn_gone() - the QP that was muted is destroyed
 *
 * If it was the last, what the client holds is given back, and on_leave runs; @client may be gone.
 */
void weir_donor_client_conn_gone(struct weir_peer *client);

/* Drops one reference. @client->lock is held, and released. */
void weir_donor_client_put(struct weir_peer *client);

#endif
