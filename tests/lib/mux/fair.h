/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of several accounts between two muxes, and a watch on the bytes of each, for tests
 * of fairness.
 */
#ifndef WEIR_TESTS_LIB_MUX_FAIR_H
#define WEIR_TESTS_LIB_MUX_FAIR_H

#include <stdbool.h>

#include "lib/mux/local/local.h"
#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define SENDERS_MAX 8
#define SEGMENT 1024u /* the default ring has many of these */
#define ROUNDS 70 /* two segments are 3 % of this */
#define MESSAGE_MAX (1u << 20)

/* A connection that sends messages of @message bytes from the near to the far end. */
struct fair_sender {
	struct weir_mux_account *account;
	unsigned int weight;
	size_t message;
	unsigned int depth; /* messages in the ring at a time; 0: as many as fit */
	struct weir_mux_conn *near, *far;
	const struct weir_mux_ring *arriving; /* at the far end; outlives the connection */
	uint64_t sent; /* bytes put into the ring */
	uint64_t received; /* bytes arrived; receiver->lock */
	uint64_t others; /* others' bytes arrived before our first; receiver->lock */
	uint64_t before; /* bytes arrived before the watch began */
	char *buffer;
};

/**
 * struct watch - observations while all senders are active
 * @is_on: receiver->lock
 * @rounds: scheduler rounds completed by the slowest sender
 * @ahead_max: largest weighted lead in bytes of a sender over another
 * @off_max: largest relative deviation from the share due, from ROUNDS on
 * @jain_min: smallest Jain's index, from ROUNDS on
 */
struct watch {
	bool is_on, has_begun;
	unsigned int rounds;
	uint64_t ahead_max;
	double off_max, jain_min;
};

struct fair {
	struct watch watch;
	struct weir_mux_local *client, *server;
	struct weir_mux_local *receiver; /* the server, unless turned round */
	unsigned int class;
	struct weir_mux_listener *listener;
	char address[64];
	struct weir_mux_account owners[3];
	struct fair_sender senders[SENDERS_MAX];
	unsigned int count, nr_owners;
	uint64_t rate_bytes_s; /* rate limit of each account, bytes a second; 0: none */
};

static inline struct weir_mux_vconn *circuit_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app);
}

/* fair.c. Opens two muxes; connections use the last class unless @class is changed. */
void fair_open(struct fair *f, const struct weir_mux_class *classes, unsigned int nr);
void fair_close(struct fair *f);
/* Connects and accepts, one connection at a time so that the ends match. */
struct fair_sender *fair_add(struct fair *f, struct weir_mux_account *account, unsigned int weight,
			     size_t message);
/* The accepting ends send from now on, all for one account. */
void fair_turn_round(struct fair *f);
void fair_limit(struct weir_mux_account *account, unsigned int weight, uint64_t bytes_s);
/* Stops or starts all sending. */
void fair_gate(struct fair *f, bool open);
/* Reads until everything sent has arrived. */
void fair_drain(struct fair *f);
/* Fills the ring with messages, the last one perhaps in part. */
void sender_fill(struct fair_sender *s);
/* Reads arrived bytes. Return: whether everything has arrived. */
bool sender_drain(struct fair_sender *s);
/* Passes a message. */
void sender_pass(struct fair_sender *s, size_t length);

/* fair_watch.c: called with receiver->lock held when bytes have arrived. */
void watch_look(struct fair *f);

#endif
