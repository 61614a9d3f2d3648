/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Setup of an exchange: both ends prove the key and exchange the addresses of their memory. */
#ifndef WEIR_LIB_EXCHANGE_SETUP_H
#define WEIR_LIB_EXCHANGE_SETUP_H

#include "lib/exchange/exchange.h"
#include "lib/conn/places.h"
#include "lib/conn/proof.h"

#define WEIR_EXCHANGE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE) /* once proven */
#define WEIR_EXCHANGE_READS_MAX 4 /* bitmap reads in flight per peer, which posts one at a time */
#define WEIR_EXCHANGE_SETUP_WR UINT64_MAX /* wr_id of sends; they may complete after the setup */

/* The listening end's progress: the next thing expected. */
enum weir_exchange_accept_state {
	WEIR_EXCHANGE_AWAITS_PROOF, /* a proof of the key */
	WEIR_EXCHANGE_AWAITS_OFFER, /* the peer's pool */
	WEIR_EXCHANGE_AWAITS_PLACES, /* the address of our pool's mirror */
	WEIR_EXCHANGE_ESTABLISHED, /* nothing more */
	WEIR_EXCHANGE_AWAITS_REFUSAL_SENT, /* the completion of our refusal */
};

/**
 * struct weir_exchange_setup_state - state of the setup
 * @in, @out: messages
 * @said, @sent, and the fields down to @handshake: of the listening end
 * @said, @sent: messages posted and completed
 * @left: the peer has disconnected
 * @deadline_ns: of the next message
 * @status: the reason for a refusal
 * @handshake: until the exchange is established; then NULL
 * @newcomer: its place at the listener, until the peer has proven the key
 */
struct weir_exchange_setup_state {
	struct ibv_mr *mr;
	unsigned int said, sent;
	bool left;
	uint64_t deadline_ns;
	enum weir_exchange_accept_state stage;
	int status;
	struct weir_handshake *handshake;
	struct weir_newcomer newcomer;
	char in[WIRE_HANDSHAKE_RECVS + WIRE_EXCHANGE_OFFERS_IN][WIRE_HANDSHAKE_MAX];
	char out[WEIR_PROOF_SENDS + 1][WIRE_HANDSHAKE_MAX];
};

/* setup.c: used by both ends. */

/* Checks the options and fills in defaults. Return: 0; -EINVAL; -E2BIG. */
int weir_exchange_options_fill(struct weir_exchange_options *filled,
			       const struct weir_exchange_options *given, struct weir_error *error);

/* Creates an exchange without a connection. Return: 0; -ENOMEM. End it by weir_exchange_close(). */
int weir_exchange_new(const struct weir_exchange_options *options, struct weir_exchange **x,
		      struct weir_error *error);

/* Creates all verbs objects; the QP is closed. Return: 0; -ENOMEM. */
int weir_exchange_create_qp(struct weir_exchange *x, struct weir_error *error);

/* Posts @count receives for the setup. */
int weir_exchange_post_setup_recvs(struct weir_exchange *x, unsigned int count,
				   struct weir_error *error);

/* Asks the user's callback whether to keep waiting. Return: 0; -ECANCELED. */
int weir_exchange_check_goes_on(const struct weir_exchange_options *options,
				struct weir_error *error);

/* Sends setup->out[0]. */
int weir_exchange_send_message(struct weir_exchange *x, size_t length, struct weir_error *error);

/* Sends our offer: the pool and, once the peer's pool is known, the mirror's address. */
int weir_exchange_send_offer(struct weir_exchange *x, struct weir_error *error);

/* Handles a message as the peer's offer. Return: 0; -EPROTO; -EDQUOT; the peer's refusal. */
int weir_exchange_take_offer(struct weir_exchange *x, const void *message, size_t length,
			     struct weir_error *error);

/* Posts the receives for the time after the setup. */
int weir_exchange_start(struct weir_exchange *x, struct weir_error *error);

/* accept.c, listener.c: the listening end. */

/*
 * A call holds the listener between get and put; weir_exchange_unlisten() waits for the put.
 * Long calls check regularly whether the listener is being closed. Return: 0; -ECANCELED the
 * listener is being closed (get: nothing is held).
 */
int weir_exchange_listener_get(struct weir_exchange_listener *listener, struct weir_error *error);
void weir_exchange_listener_put(struct weir_exchange_listener *listener);
int weir_exchange_listener_check_open(struct weir_exchange_listener *listener,
				      struct weir_error *error);

/*
 * Makes exchanges accepted from now on share the memory among @exchanges, unless the user set a
 * number. @shared: receives the resulting options.
 */
void weir_exchange_listener_divide_pool(struct weir_exchange_listener *listener,
					unsigned int exchanges,
					struct weir_exchange_options *shared);

/* Accepts the request @asked on @x->id, so the peer can prove the key. Return: 0, or why not. */
int weir_exchange_accept_start(struct weir_exchange *x, const struct rdma_conn_param *asked,
			       struct weir_error *error);

/*
 * Handles pending messages without waiting. Return: 0 the exchange is ready; -EAGAIN not yet; or
 * the error.
 */
int weir_exchange_accept_step(struct weir_exchange *x, struct weir_error *error);

#endif
