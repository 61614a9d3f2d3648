/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A connection, as the mux has it; what it may reach of the other end's, and the other of its. */
#ifndef WEIR_LIB_MUX_VCONN_VCONN_H
#define WEIR_LIB_MUX_VCONN_VCONN_H

#include "core/base/inbox.h"
#include "core/base/list.h"
#include "core/sched/sched.h"
#include "lib/mux/handle.h"
#include "lib/mux/local/memory.h"
#include "lib/mux/local/account.h"
#include "wire/mux.h"

struct weir_mux_remote;
struct weir_mux_sched_group;

#define WEIR_MUX_GRANTS_MAX 16 /* of a connection, either way */
/*
 * Of a remote, to be sent or in flight: as many as can be wanted at once, and those whose completions
 * have not been seen yet.
 */
#define WEIR_MUX_REFUSALS_MAX (4 * WIRE_MUX_OPENS_MAX)

/* What the worker is to send for a connection: bits. */
#define WEIR_MUX_CTRL_OPEN 1u
#define WEIR_MUX_CTRL_ACCEPT 2u
#define WEIR_MUX_CTRL_REFUSE 4u
#define WEIR_MUX_CTRL_CREDIT 8u
#define WEIR_MUX_CTRL_GRANTS 16u
#define WEIR_MUX_CTRL_REMOTE 32u

/* What the other end may reach of ours. mux->lock. */
enum weir_mux_grant_state {
	WEIR_MUX_GRANT_NONE,
	WEIR_MUX_GRANT_NEW,
	WEIR_MUX_GRANT_SENT,
	WEIR_MUX_GRANT_WITHDRAW,
	WEIR_MUX_GRANT_WITHDRAWING
};
struct weir_mux_grant {
	enum weir_mux_grant_state state;
	uint32_t handle;
	uint16_t rights;
	struct weir_mux_mr *mr;
	uint64_t at, length;
};

/* What we may reach of the other end's. @handle: 0: nothing. @users: orders. mux->lock. */
struct weir_mux_remote_mr {
	uint32_t handle, rkey;
	uint16_t rights;
	bool is_withdrawn;
	unsigned int users;
	uint64_t address, length;
};

/**
 * struct weir_mux_rdma_op - an order that has been taken
 * @conn, @order: whose, and where he gives them; never change
 * @mr: NULL: there is none
 * @reach: NULL: it is a zc_send, and a part of the stream
 * @local, @remote, @left: what is left of it to be posted
 * @wrs: in flight
 *
 * Of the worker.
 */
struct weir_mux_rdma_op {
	struct weir_mux_vconn *conn;
	struct weir_mux_rdma_op_desc *order;
	struct weir_mux_mr *mr;
	struct weir_mux_remote_mr *reach;
	bool is_read;
	int status;
	uint64_t local, remote, left;
	uint32_t wrs;
};

/* The other end's ring, where the device may write what is sent. @size: 0: it may not. */
struct weir_mux_peer_ring {
	uint64_t address;
	uint32_t rkey, size;
};

/**
 * struct weir_mux_vconn - a connection
 * @app: the application's end, where it is in this process
 * @account: whose
 * @id, @remote_id: ours, and, once it is open, theirs
 * @status: 0, or why it no longer works; any thread
 * @granted: the peer allows the stream up to here; written by the poller, read by the worker
 * @peer_ring: never changes once it is open
 * @received: of the stream, so far; written by the poller, read by the worker
 * @weight: that it is to have, and @flow has from its worker's next look on; any thread
 * @credited: what the peer has been credited that was read; written by the worker, read by all
 * @waiter: of the thread that waits for the answer; NULL: none does; mux->lock
 * @open_link: in remote->askers: its OPEN waits for others' to be answered; mux->lock
 * @is_opening: its OPEN is one of remote->nr_asking; @is_ours: its account has connected; mux->lock
 * @ctrls, @is_queued: any thread
 * @fd, @room_fd: rung when a ring is credited and somebody waits so; -1: nobody does; any thread
 * @nr: what a tenant calls it
 * @service: what was asked for; of one that only says something (WEIR_MUX_CTRL_REMOTE), what
 * @slot, @nr_slots: of its slab; NULL: a speaker, that says one thing, and has no rings and no
 *	@sched_group
 * @leaving: as @out; its position is what has been sent, completions seen
 * @posted: of the ring out; @zc_posted: of the stream besides, from loans
 * @sent, @zc_sent: of both, bytes whose completions were seen, for who looks; @written_done, @read_done: the
 *	same of what was written and read by handles; written by the worker, read by all
 */
struct weir_mux_vconn {
	struct weir_mux_conn app;
	struct weir_mux_local *mux;
	struct weir_mux_account *account;
	struct weir_mux_remote *remote;
	struct weir_mux_sched_group *sched_group;
	struct weir_list remote_link, offer_link, open_link;
	pthread_cond_t *waiter;
	uint8_t class;
	uint16_t weight;
	uint32_t id, remote_id, service;
	bool is_open, is_closed, is_finished, is_detached; /* mux->lock; is_* also read without */
	bool is_opening, is_ours;
	int status;

	struct weir_mux_ring_slab *slab;
	unsigned int slot, nr_slots, nr;
	struct weir_mux_conn_shm *shm;
	uint32_t size; /* of either ring */
	int fd, room_fd;
	struct weir_mux_grant grants[WEIR_MUX_GRANTS_MAX];
	struct weir_mux_remote_mr reaches[WEIR_MUX_GRANTS_MAX];
	uint32_t last_handle;

	/* the poller's */
	struct weir_mux_ring_end arriving;
	uint64_t received, granted;
	struct weir_mux_peer_ring peer_ring;

	/* the worker's */
	struct weir_inbox_node inbox_node;
	uint32_t is_queued, ctrls;
	uint64_t credited;
	struct weir_mux_ring_end leaving;
	uint64_t posted, zc_posted;
	uint32_t ctrls_todo; /* ctrls taken, and not done for want of room */
	struct weir_flow flow;
	struct weir_list wait_link;
	uint32_t controls; /* in flight */
	bool fin_sent;
	struct weir_mux_rdma_op rdma_op, zc_send;
	bool errand_was_last; /* of its turns: those of an rdma_op and of the stream alternate */
	uint64_t waits_ns; /* since when what it has to send waits for a turn */
	uint64_t sent, zc_sent, written_done, read_done;
};

struct weir_mux_service {
	struct weir_mux_listener listener;
	struct weir_list link;
	struct weir_mux_local *mux;
	struct weir_mux_account *account;
	uint32_t service;
	unsigned int backlog, count;
	struct weir_list conns;
	int fd;
};

/* Theirs; 0 until the poller has heard of it, and never changes after that. */
static inline uint32_t weir_mux_vconn_remote_id(const struct weir_mux_vconn *conn)
{
	return __atomic_load_n(&conn->remote_id, __ATOMIC_RELAXED);
}

/*
 * circuit.c: with mux->lock held, but weir_mux_vconn_fail(), which takes none. weir_mux_vconn_new():
 * -EPERM where @class is not for @account; -EDQUOT; -ENOMEM; -EAGAIN as weir_mux_ring_slab_take().
 * @window: what the peer offers, whose rings are as long as ours then, or who opens it asks for; 0:
 * neither does.
 */
int weir_mux_vconn_new(struct weir_mux_account *account, struct weir_mux_remote *remote,
		       uint8_t class, uint16_t weight, uint32_t window,
		       struct weir_mux_vconn **conn);
/* As weir_mux_conn_weigh(); without lock. */
int weir_mux_vconn_weigh(struct weir_mux_vconn *conn, unsigned int weight);
/* Tells the opener no. -EPROTO: he has asked more at once than anybody may. */
int weir_mux_vconn_refuse(struct weir_mux_remote *remote, uint8_t class, uint32_t remote_id,
			  int status);
/*
 * Tells the other mux something that is of no connection. -EPROTO: it has asked for too much at
 * once.
 */
int weir_mux_vconn_send_remote_ctrl(struct weir_mux_remote *remote, enum wire_mux_type what);
struct weir_mux_vconn *weir_mux_vconn_find(struct weir_mux_local *mux, uint32_t id);
/* The peer's OPEN or ACCEPT. */
void weir_mux_vconn_set_window(struct weir_mux_vconn *conn, const struct wire_mux_control *m);
void weir_mux_vconn_fail(struct weir_mux_vconn *conn, int status);
/* Its OPEN goes, now or when fewer are unanswered; and it has been answered, or never will be. */
void weir_mux_vconn_send_open(struct weir_mux_vconn *conn);
void weir_mux_vconn_open_answered(struct weir_mux_vconn *conn);
/* Who waits for something of it looks. */
void weir_mux_vconn_wake_waiters(struct weir_mux_vconn *conn);
/* The other end sends no more. */
void weir_mux_vconn_peer_finished(struct weir_mux_vconn *conn);
void weir_mux_vconn_wake_app(struct weir_mux_vconn *conn);
void weir_mux_ring_wake(struct weir_mux_ring *ring, const int *fd);
/* @position has been published there: who waits for more than that is not credited. */
void weir_mux_ring_wake_at(struct weir_mux_ring *ring, const int *fd, uint64_t position);
/* Frees it if all have let go of it. */
void weir_mux_vconn_release(struct weir_mux_vconn *conn);
/* As weir_mux_conn_close(). */
void weir_mux_vconn_close(struct weir_mux_vconn *conn);
/* The same, and what has not been sent is not sent any more. */
void weir_mux_vconn_abort(struct weir_mux_vconn *conn);

/*
 * serve.c: there is something to be looked at, by who serves its remote. Context: any thread.
 * weir_mux_vconn_queue(): the caller sees to it that somebody does: see weir_mux_local_combine().
 */
void weir_mux_vconn_notify(struct weir_mux_vconn *conn);
void weir_mux_vconn_queue(struct weir_mux_vconn *conn);

/*
 * grant.c. weir_mux_vconn_grant() and weir_mux_vconn_withdraw() as weir_mux_conn_grant() and
 * weir_mux_conn_withdraw(), of a mr by its number, without lock.
 */
int weir_mux_vconn_grant(struct weir_mux_vconn *conn, uint32_t mr, uint64_t at, uint64_t length,
			 unsigned int rights, uint32_t *handle);
int weir_mux_vconn_withdraw(struct weir_mux_vconn *conn, uint32_t handle);
/* The worker's: says what is to be said. Return: false: there was no room. */
bool weir_mux_grants_send(struct weir_mux_vconn *conn);
/* With mux->lock held: the other end said so. -EPROTO. */
int weir_mux_grant_input(struct weir_mux_vconn *conn, const struct wire_mux_control *m);
/* With mux->lock held: the connection is gone. */
void weir_mux_grants_drop(struct weir_mux_vconn *conn);

/*
 * rdma_op.c: the worker's. weir_mux_rdma_ops_init(): of a connection that has a shm; weir_mux_rdma_op_start()
 * looks for an order; weir_mux_rdma_op_stop(): no more of it is posted; weir_mux_rdma_op_wr_done(): a WR of it
 * is in flight no longer.
 */
void weir_mux_rdma_ops_init(struct weir_mux_vconn *conn);
void weir_mux_rdma_op_start(struct weir_mux_rdma_op *e);
void weir_mux_rdma_op_stop(struct weir_mux_rdma_op *e, int status);
void weir_mux_rdma_op_wr_done(struct weir_mux_rdma_op *e);
/* With mux->lock held: nothing of it is in flight. */
void weir_mux_rdma_op_drop(struct weir_mux_rdma_op *e, int status);

/*
 * offer.c: connecting, and offering a service, on behalf of @account; without mux->lock. As the
 * functions of weir/mux.h; weir_mux_vconn_connect() gives up at @deadline_ns; weir_mux_service_open() with
 * the descriptor that is rung when somebody has connected, which is the offer's from then on.
 */
int weir_mux_vconn_connect(struct weir_mux_account *account, const char *peer, uint32_t service,
			   const struct weir_mux_conn_options *options, uint64_t deadline_ns,
			   struct weir_mux_vconn **conn, struct weir_error *error);
int weir_mux_service_open(struct weir_mux_account *account, uint32_t service, unsigned int backlog,
			  int fd, struct weir_mux_service **offer);
int weir_mux_service_accept(struct weir_mux_service *offer, struct weir_mux_vconn **conn);
void weir_mux_service_close(struct weir_mux_service *offer);
/* With mux->lock held. Nobody waits to be accepted. */
void weir_mux_service_free(struct weir_mux_service *offer);

#endif
