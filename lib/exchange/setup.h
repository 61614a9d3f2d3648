/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two ends until they know each other: both have proven the key, and told where their memory is. */
#ifndef WEIR_LIB_EXCHANGE_SETUP_H
#define WEIR_LIB_EXCHANGE_SETUP_H

#include "lib/exchange/exchange.h"
#include "lib/conn/handshake.h"

/* The listening end: what it waits for. */
enum weir_exchange_accept_state {
	WEIR_EXCHANGE_AWAITS_PROOF, /* the proof of the key */
	WEIR_EXCHANGE_AWAITS_OFFER, /* the peer's pool */
	WEIR_EXCHANGE_AWAITS_PLACES, /* where the own one is mirrored */
	WEIR_EXCHANGE_ESTABLISHED, /* nothing more */
	WEIR_EXCHANGE_AWAITS_REFUSAL_SENT, /* that the peer has heard that it is refused */
};

/**
 * struct weir_exchange_setup_state - what is said before
 * @heard: receives that were used; @said, @sent: messages posted, and those of them that have gone
 * @left: the peer has ended the connection
 * @deadline_ns: of all of it
 * @stage, @status: of the listening end; and what it refuses with
 */
struct weir_exchange_setup_state {
	struct ibv_mr *mr;
	unsigned int heard, said, sent;
	bool left;
	uint64_t deadline_ns;
	enum weir_exchange_accept_state stage;
	int status;
	struct weir_handshake handshake;
	char in[WIRE_HANDSHAKE_RECVS + WIRE_EXCHANGE_OFFERS_IN][WIRE_HANDSHAKE_MAX];
	char out[WIRE_HANDSHAKE_MAX];
};

/* meet.c: what both ends do. */

/* Checks the options, and fills in the defaults. Return: 0; -EINVAL. */
int weir_exchange_options_fill(struct weir_exchange_options *filled,
			       const struct weir_exchange_options *given, struct weir_error *error);

/* One without a connection. Return: 0; -ENOMEM. End it by weir_exchange_close(). */
int weir_exchange_new(const struct weir_exchange_options *options, struct weir_exchange **x,
		      struct weir_error *error);

/* Makes all but the QP on @x->id's device, and says what that is to be. Return: 0; -ENOMEM. */
int weir_exchange_create_queues(struct weir_exchange *x, struct ibv_qp_init_attr *attr,
				struct weir_error *error);

/* Posts receives for what the peer will say, @count messages in all. */
int weir_exchange_post_setup_recvs(struct weir_exchange *x, unsigned int count,
				   struct weir_error *error);

/* Begins the proof of the key over the QP, which is connected. */
int weir_exchange_begin_handshake(struct weir_exchange *x, struct weir_handshake_setup *setup,
				  struct weir_error *error);

/* Admits RDMA: the peer has proven the key, and is told of no memory yet. Return: 0; -EPROTO. */
int weir_exchange_open_qp(struct weir_exchange *x, struct weir_error *error);

/* Whether to wait on for the peer; asked so often as it likes. Return: 0; -ECANCELED. */
int weir_exchange_check_goes_on(const struct weir_exchange_options *options,
				struct weir_error *error);

/* Sends greeting->out. */
int weir_exchange_send_message(struct weir_exchange *x, size_t length, struct weir_error *error);

/* A message, if there is one. Return: 0; -EAGAIN; and as weir_exchange_wait_message(). */
int weir_exchange_poll_message(struct weir_exchange *x, const void **message, size_t *length,
			       struct weir_error *error);

/* Waits for a message. Return: 0; -ETIMEDOUT; -EPROTO the peer has ended the connection. */
int weir_exchange_wait_message(struct weir_exchange *x, const void **message, size_t *length,
			       struct weir_error *error);

/* Sends the own offer: the pool, and, if the peer's is known, where that is mirrored. */
int weir_exchange_send_offer(struct weir_exchange *x, struct weir_error *error);

/* Takes a message for the peer's. Return: 0; -EPROTO; -EDQUOT; what the peer refuses with. */
int weir_exchange_take_offer(struct weir_exchange *x, const void *message, size_t length,
			     struct weir_error *error);

/* Waits for the peer's. Return: as weir_exchange_take_offer(). */
int weir_exchange_wait_offer(struct weir_exchange *x, struct weir_error *error);

/* Posts the receives that follow those of the greeting. */
int weir_exchange_start(struct weir_exchange *x, struct weir_error *error);

/* greet.c, listen.c: the listening end */

/*
 * A call that needs the listener until it leaves: who closes it waits for that. It asks now and
 * then whether to go on. Return: 0; -ECANCELED it is being closed, and nothing is owed.
 */
int weir_exchange_listener_get(struct weir_exchange_listener *listener, struct weir_error *error);
void weir_exchange_listener_put(struct weir_exchange_listener *listener);
int weir_exchange_listener_check_open(struct weir_exchange_listener *listener,
				      struct weir_error *error);

/*
 * Who is accepted from now on shares the memory among @exchanges, unless the user said how many do:
 * with these options.
 */
void weir_exchange_listener_divide_pool(struct weir_exchange_listener *listener,
					unsigned int exchanges,
					struct weir_exchange_options *shared);

/* Lets in who asked with @param on @x->id, to prove the key. Return: 0; why not. */
int weir_exchange_accept_start(struct weir_exchange *x, const struct rdma_conn_param *param,
			       struct weir_error *error);

/* What can be done at once. Return: 0 both have met; -EAGAIN not yet; why they do not. */
int weir_exchange_accept_step(struct weir_exchange *x, struct weir_error *error);

#endif
