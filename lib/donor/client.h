/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One proven client of a donor: its channels, messages and account.
 *
 * Any thread may send messages, under @lock; all else happens in the donor's thread. The struct is
 * reference-counted: the donor holds a reference while the client lives, each call until answered.
 */
#ifndef WEIR_LIB_DONOR_CLIENT_H
#define WEIR_LIB_DONOR_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/donor.h>
#include "core/base/list.h"
#include "lib/donor/region_table.h"
#include "core/link/credit.h"
#include "wire/handshake.h"

struct weir_donor_conn;
struct weir_donor_secret;

/**
 * enum weir_peer_end - how a client's session ends
 *
 * A client that closes its session says so in its last message. If channel 0 ends without that
 * message, the session has DIED, or the donor has CUT it.
 */
enum weir_peer_end {
	WEIR_PEER_DIED,
	WEIR_PEER_CLOSED,
	WEIR_PEER_CUT,
};

/**
 * struct weir_peer - one client
 * @donor: only for the donor's thread
 * @secret: the key that it has proven; all its channels prove the same
 * @conns: the channels; [0] carries messages
 * @end: how its session ends, if it ended now; only for the donor's thread
 *
 * Guarded by @lock:
 * @qp: channel 0's; NULL while channel 0 is broken, and once the client is gone
 * @is_gone: nothing can be sent any more
 * @reconnects: how often the client came back; calls from before get no answer
 * @refs: free at zero
 * @queue: messages that wait for a credit or a buffer; @nr_queued counts the application's
 * @nr_calls: received calls without a sent answer
 * @sends: bit mask of free send buffers
 * @is_closing: the CREDIT that closes the session must still be posted
 */
struct weir_peer {
	struct weir_list link;
	struct weir_donor *donor;
	uint64_t id;
	uint64_t session_id;
	unsigned int tenant;
	struct weir_donor_secret *secret;
	char name[64];
	struct weir_region_account account;
	struct weir_donor_conn *conns[WIRE_CHANNEL_UNLOAD + 1];
	enum weir_peer_end end;

	struct ibv_mr *mr;
	char *buffers;

	pthread_mutex_t lock;
	struct ibv_qp *qp;
	bool is_gone;
	unsigned int reconnects;
	unsigned int refs;
	struct weir_credit credit;
	struct weir_list queue;
	unsigned int nr_queued;
	unsigned int nr_calls;
	uint32_t sends;
	bool is_closing;
};

/* Whether a key may have one more client. Return: 0; -EDQUOT. */
int weir_donor_client_check_limits(const struct weir_donor *donor, unsigned int tenant,
				   struct weir_error *error);

/* Most bytes of the regions that one client of a key creates. */
uint64_t weir_donor_client_quota(const struct weir_donor *donor,
				 const struct weir_donor_secret *secret);

/**
 * weir_donor_client_new() - create a client after its proof on channel 0
 * @conn: becomes the first channel
 *
 * On return the receive buffers are posted.
 * Return: 0; -EDQUOT; -ENOMEM; -EPROTO too few credits.
 */
int weir_donor_client_new(struct weir_donor *donor, struct weir_donor_conn *conn,
			  struct weir_peer **client, struct weir_error *error);

/* The client of a further channel's session. Return: NULL if there is none. */
struct weir_peer *weir_donor_client_find(struct weir_donor *donor, uint64_t session_id,
					 const struct weir_donor_secret *secret);

/**
 * weir_donor_client_attach() - attach a further channel, or replace one
 * @conn: proven; names the channel
 *
 * On return the replaced QP, if any, is destroyed: no write sent on it can still arrive.
 * Return: 0; -ENOMEM; -EPROTO too few credits; -ESTALE messages were lost with the old channel 0,
 * so the session ends.
 */
int weir_donor_client_attach(struct weir_peer *client, struct weir_donor_conn *conn,
			     struct weir_error *error);

/* Handles the failure of a channel's QP. Messages wait if it was channel 0. */
void weir_donor_client_conn_broken(struct weir_peer *client, const struct weir_donor_conn *conn);

/**
 * weir_donor_client_mute() - prepare the destruction of a channel's QP
 *
 * If it is channel 0's, sending to the client ends, and its other channels are killed.
 */
void weir_donor_client_mute(struct weir_peer *client, const struct weir_donor_conn *conn);

/**
 * weir_donor_client_conn_gone() - finish the destruction of the muted QP
 *
 * After the last QP, the donor frees the client's holds and calls on_leave; @client may be gone.
 */
void weir_donor_client_conn_gone(struct weir_peer *client);

/* Drops one reference. @client->lock is held, and released. */
void weir_donor_client_put(struct weir_peer *client);

#endif
