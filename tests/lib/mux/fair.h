/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of owners between two muxes, and a look at what has come of each: for tests of who
 * gets how much.
 */
#ifndef WEIR_TESTS_LIB_MUX_FAIR_H
#define WEIR_TESTS_LIB_MUX_FAIR_H

#include <stdbool.h>

#include "lib/mux/local/local.h"
#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define SENDERS_MAX 8
#define SEGMENT 1024u /* a ring as it is by default has many of them */
#define ROUNDS 70 /* two segments more or less are 3 % of them */
#define MESSAGE_MAX (1u << 20)

/* A connection, from its near end, which sends messages of @message bytes, to the far one. */
struct fair_sender {
	struct weir_mux_account *account;
	unsigned int weight;
	size_t message;
	unsigned int depth; /* messages that lie in its ring at once; 0: as many as fit */
	struct weir_mux_conn *near, *far;
	const struct weir_mux_ring *arriving; /* of the far end; stays when that goes */
	uint64_t sent; /* bytes that have been put into its ring */
	uint64_t received; /* and have come; receiver->lock */
	uint64_t others; /* had come of all others when the first of these did; receiver->lock */
	uint64_t before; /* of these, when the looking began */
	char *buffer;
};

/**
 * struct watch - what was seen since all had begun, and while all had something left
 * @is_on: receiver->lock
 * @rounds: of what is due in a round so much had come of each
 * @ahead_max: bytes that anybody was ahead of another, each by his weight
 * @off_max: part by which anybody had more or less than is due beside another, from ROUNDS on
 * @jain_min: Jain's index, from ROUNDS on
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
	struct weir_mux_local *receiver; /* the server, until they turn round */
	unsigned int class;
	struct weir_mux_listener *listener;
	char address[64];
	struct weir_mux_account owners[3];
	struct fair_sender senders[SENDERS_MAX];
	unsigned int count, nr_owners;
	uint64_t ceiling; /* of each account, bytes a second; 0: none */
};

static inline struct weir_mux_vconn *circuit_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app);
}

/* fair.c. Two muxes; connections are of the last class until @class is another one. */
void fair_open(struct fair *f, const struct weir_mux_class *classes, unsigned int nr);
void fair_close(struct fair *f);
/* They are connected one after another, so that each finds its own other end. */
struct fair_sender *fair_add(struct fair *f, struct weir_mux_account *account, unsigned int weight,
			     size_t message);
/* From now on those who have accepted send, all of one account. */
void fair_turn_round(struct fair *f);
void fair_limit(struct weir_mux_account *account, unsigned int weight, uint64_t bytes_s);
/* Nobody may send, or everybody as much as he can. */
void fair_gate(struct fair *f, bool open);
/* Reads until all that was sent has come. */
void fair_drain(struct fair *f);
/* Puts in as many messages as it may, and as fit: of the last one perhaps a part. */
void sender_fill(struct fair_sender *s);
/* Reads what has come. Return: whether that was all. */
bool sender_drain(struct fair_sender *s);
/* A message goes, and comes. */
void sender_pass(struct fair_sender *s, size_t length);

/* fair_watch.c: something has come; receiver->lock is held. */
void watch_look(struct fair *f);

#endif
