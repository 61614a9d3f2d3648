/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A connection, as the hub has it; what it may reach of the other end's, and the other of its. */
#ifndef WEIR_LIB_MUX_VCONN_VCONN_H
#define WEIR_LIB_MUX_VCONN_VCONN_H

#include "core/base/inbox.h"
#include "core/base/list.h"
#include "core/sched/sched.h"
#include "lib/mux/handle.h"
#include "lib/mux/local/memory.h"
#include "lib/mux/local/account.h"
#include "wire/mux.h"

struct weir_node;
struct weir_stake;

#define WEIR_GRANTS_MAX 16 /* of a connection, either way */
/*
 * Of a node, to be sent or in flight: as many as can be wanted at once, and those whose completions
 * have not been seen yet.
 */
#define WEIR_REFUSALS_MAX (4 * WIRE_OPENS_MAX)

/* What the worker is to send for a connection: bits. */
#define WEIR_CHORE_OPEN 1u
#define WEIR_CHORE_ACCEPT 2u
#define WEIR_CHORE_REFUSE 4u
#define WEIR_CHORE_CREDIT 8u
#define WEIR_CHORE_GRANTS 16u
#define WEIR_CHORE_SAY 32u

/* What the other end may reach of ours. hub->lock. */
enum weir_grant_state { WEIR_GRANT_NONE, WEIR_GRANT_NEW, WEIR_GRANT_SENT, WEIR_GRANT_ENDS,
			WEIR_GRANT_ENDING };
struct weir_grant {
	enum weir_grant_state state;
	uint32_t handle;
	uint16_t rights;
	struct weir_plot *plot;
	uint64_t at, length;
};

/* What we may reach of the other end's. @handle: 0: nothing. @users: orders. hub->lock. */
struct weir_reach {
	uint32_t handle, rkey;
	uint16_t rights;
	bool is_withdrawn;
	unsigned int users;
	uint64_t address, length;
};

/**
 * struct weir_errand - an order that has been taken
 * @conn, @order: whose, and where he gives them; never change
 * @plot: NULL: there is none
 * @reach: NULL: it is a loan, and a part of the stream
 * @local, @remote, @left: what is left of it to be posted
 * @wrs: in flight
 *
 * Of the worker.
 */
struct weir_errand {
	struct weir_circuit *conn;
	struct weir_order *order;
	struct weir_plot *plot;
	struct weir_reach *reach;
	bool is_read;
	int status;
	uint64_t local, remote, left;
	uint32_t wrs;
};

/* The other end's ring, where the device may write what is sent. @size: 0: it may not. */
struct weir_landing {
	uint64_t address;
	uint32_t rkey, size;
};

/**
 * struct weir_circuit - a connection
 * @app: the application's end, where it is in this process
 * @owner: whose
 * @id, @remote_id: ours, and, once it is open, theirs
 * @status: 0, or why it no longer works; any thread
 * @granted: the peer allows the stream up to here; written by the poller, read by the worker
 * @landing: never changes once it is open
 * @received: of the stream, so far; written by the poller, read by the worker
 * @weight: that it is to have, and @flow has from its worker's next look on; any thread
 * @told: what the peer has been told that was read; written by the worker, read by all
 * @waiter: of the thread that waits for the answer; NULL: none does; hub->lock
 * @ask_link: in node->askers: its OPEN waits for others' to be answered; hub->lock
 * @is_asking: its OPEN is one of node->nr_asking; @is_ours: its owner has connected; hub->lock
 * @chores, @has_news: any thread
 * @fd, @room_fd: rung when a ring is told and somebody waits so; -1: nobody does; any thread
 * @nr: what a tenant calls it
 * @service: what was asked for; of one that only says something (WEIR_CHORE_SAY), what
 * @slot, @nr_slots: of its chunk; NULL: a speaker, that says one thing, and has no rings and no
 *	@stake
 * @leaving: as @out; its position is what has been sent, completions seen
 * @posted: of the ring out; @lent: of the stream besides, from loans
 * @sent, @sent_lent: of both, bytes whose completions were seen, for who looks; @put, @fetched: the
 *	same of what was written and read by handles; written by the worker, read by all
 */
struct weir_circuit {
	struct weir_conn app;
	struct weir_hub *hub;
	struct weir_owner *owner;
	struct weir_node *node;
	struct weir_stake *stake;
	struct weir_list node_link, offer_link, ask_link;
	pthread_cond_t *waiter;
	uint8_t class;
	uint16_t weight;
	uint32_t id, remote_id, service;
	bool is_open, is_closed, is_finished, is_detached; /* hub->lock; is_* also read without */
	bool is_asking, is_ours;
	int status;

	struct weir_chunk *chunk;
	unsigned int slot, nr_slots, nr;
	struct weir_door *door;
	uint32_t size; /* of either ring */
	int fd, room_fd;
	struct weir_grant grants[WEIR_GRANTS_MAX];
	struct weir_reach reaches[WEIR_GRANTS_MAX];
	uint32_t last_handle;

	/* the poller's */
	struct weir_ring_end arriving;
	uint64_t received, granted;
	struct weir_landing landing;

	/* the worker's */
	struct weir_inbox_node news;
	uint32_t has_news, chores;
	uint64_t told;
	struct weir_ring_end leaving;
	uint64_t posted, lent;
	uint32_t todo; /* chores taken, and not done for want of room */
	struct weir_flow flow;
	struct weir_list wait_link;
	uint32_t controls; /* in flight */
	bool fin_sent;
	struct weir_errand errand, loan;
	bool errand_was_last; /* of its turns: those of an errand and of the stream alternate */
	uint64_t waits_ns; /* since when what it has to send waits for a turn */
	uint64_t sent, sent_lent, put, fetched;
};

struct weir_offer {
	struct weir_listener listener;
	struct weir_list link;
	struct weir_hub *hub;
	struct weir_owner *owner;
	uint32_t service;
	unsigned int backlog, count;
	struct weir_list conns;
	int fd;
};

/* Theirs; 0 until the poller has heard of it, and never changes after that. */
static inline uint32_t weir_circuit_remote(const struct weir_circuit *conn)
{
	return __atomic_load_n(&conn->remote_id, __ATOMIC_RELAXED);
}

/*
 * circuit.c: with hub->lock held, but weir_circuit_fail(), which takes none. weir_circuit_new():
 * -EPERM where @class is not for @owner; -EDQUOT; -ENOMEM; -EAGAIN as weir_chunk_take().
 * @window: what the peer offers, whose rings are as long as ours then, or who opens it asks for; 0:
 * neither does.
 */
int weir_circuit_new(struct weir_owner *owner, struct weir_node *node, uint8_t class,
		     uint16_t weight, uint32_t window, struct weir_circuit **conn);
/* As weir_conn_weigh(); without lock. */
int weir_circuit_weigh(struct weir_circuit *conn, unsigned int weight);
/* Tells the opener no. -EPROTO: he has asked more at once than anybody may. */
int weir_circuit_refuse(struct weir_node *node, uint8_t class, uint32_t remote_id, int status);
/*
 * Tells the other mux something that is of no connection. -EPROTO: it has asked for too much at
 * once.
 */
int weir_circuit_say(struct weir_node *node, enum wire_mux_type what);
struct weir_circuit *weir_circuit_find(struct weir_hub *hub, uint32_t id);
/* The peer's OPEN or ACCEPT. */
void weir_circuit_granted(struct weir_circuit *conn, const struct wire_mux *m);
void weir_circuit_fail(struct weir_circuit *conn, int status);
/* Its OPEN goes, now or when fewer are unanswered; and it has been answered, or never will be. */
void weir_circuit_ask(struct weir_circuit *conn);
void weir_circuit_answered(struct weir_circuit *conn);
/* Who waits for something of it looks. */
void weir_circuit_changed(struct weir_circuit *conn);
/* The other end sends no more. */
void weir_circuit_finished(struct weir_circuit *conn);
void weir_circuit_tell(struct weir_circuit *conn);
void weir_ring_tell(struct weir_ring *ring, const int *fd);
/* @position has been published there: who waits for more than that is not told. */
void weir_ring_tell_at(struct weir_ring *ring, const int *fd, uint64_t position);
/* Frees it if all have let go of it. */
void weir_circuit_release(struct weir_circuit *conn);
/* As weir_conn_close(). */
void weir_circuit_shut(struct weir_circuit *conn);
/* The same, and what has not been sent is not sent any more. */
void weir_circuit_abort(struct weir_circuit *conn);

/*
 * serve.c: there is something to be looked at, by who serves its node. Context: any thread.
 * weir_circuit_leave(): the caller sees to it that somebody does: see weir_hub_serve().
 */
void weir_circuit_news(struct weir_circuit *conn);
void weir_circuit_leave(struct weir_circuit *conn);

/*
 * grant.c. weir_circuit_grant() and weir_circuit_withdraw() as weir_conn_grant() and
 * weir_conn_withdraw(), of a plot by its number, without lock.
 */
int weir_circuit_grant(struct weir_circuit *conn, uint32_t plot, uint64_t at, uint64_t length,
		       unsigned int rights, uint32_t *handle);
int weir_circuit_withdraw(struct weir_circuit *conn, uint32_t handle);
/* The worker's: says what is to be said. Return: false: there was no room. */
bool weir_grants_send(struct weir_circuit *conn);
/* With hub->lock held: the other end said so. -EPROTO. */
int weir_grant_input(struct weir_circuit *conn, const struct wire_mux *m);
/* With hub->lock held: the connection is gone. */
void weir_grants_drop(struct weir_circuit *conn);

/*
 * errand.c: the worker's. weir_errands_open(): of a connection that has a door; weir_errand_take()
 * looks for an order; weir_errand_end(): no more of it is posted; weir_errand_done(): a WR of it
 * is in flight no longer.
 */
void weir_errands_open(struct weir_circuit *conn);
void weir_errand_take(struct weir_errand *e);
void weir_errand_end(struct weir_errand *e, int status);
void weir_errand_done(struct weir_errand *e);
/* With hub->lock held: nothing of it is in flight. */
void weir_errand_drop(struct weir_errand *e, int status);

/*
 * offer.c: connecting, and offering a service, on behalf of @owner; without hub->lock. As the
 * functions of weir/mux.h; weir_circuit_connect() gives up at @deadline_ns; weir_offer_open() with
 * the descriptor that is rung when somebody has connected, which is the offer's from then on.
 */
int weir_circuit_connect(struct weir_owner *owner, const char *peer, uint32_t service,
			 const struct weir_conn_options *options, uint64_t deadline_ns,
			 struct weir_circuit **conn, struct weir_error *error);
int weir_offer_open(struct weir_owner *owner, uint32_t service, unsigned int backlog, int fd,
		    struct weir_offer **offer);
int weir_offer_accept(struct weir_offer *offer, struct weir_circuit **conn);
void weir_offer_close(struct weir_offer *offer);
/* With hub->lock held. Nobody waits to be accepted. */
void weir_offer_free(struct weir_offer *offer);

#endif
