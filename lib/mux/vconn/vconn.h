/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A connection inside the mux, and the grants in both directions. */
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

#define WEIR_MUX_GRANTS_MAX 16 /* per connection and direction */
/*
 * Refusals queued or in flight per remote: enough for all unanswered OPENs, and for refusals
 * without a completion yet.
 */
#define WEIR_MUX_REFUSALS_MAX (4 * WIRE_MUX_OPENS_MAX)

/* Control messages to be sent by the worker. */
#define WEIR_MUX_CTRL_OPEN 1u
#define WEIR_MUX_CTRL_ACCEPT 2u
#define WEIR_MUX_CTRL_REFUSE 4u
#define WEIR_MUX_CTRL_CREDIT 8u
#define WEIR_MUX_CTRL_GRANTS 16u
#define WEIR_MUX_CTRL_REMOTE 32u

/* A range of ours, open to the peer. Guarded by mux->lock. */
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

/*
 * A range of the peer's, open to us. @handle: 0 if unused. @users: active operations. Guarded by
 * mux->lock.
 */
struct weir_mux_remote_mr {
	uint32_t handle, rkey;
	uint16_t rights;
	bool is_withdrawn;
	unsigned int users;
	uint64_t address, length;
};

/**
 * struct weir_mux_rdma_op - an operation taken by the worker
 * @conn, @desc: the connection and its descriptor; constant
 * @mr: NULL when idle
 * @remote_mr: NULL for a zero-copy send, whose bytes belong to the stream
 * @local, @remote, @left: addresses and bytes of the part not yet posted
 * @wrs: work requests in flight
 *
 * Worker only.
 */
struct weir_mux_rdma_op {
	struct weir_mux_vconn *conn;
	struct weir_mux_rdma_op_desc *desc;
	struct weir_mux_mr *mr;
	struct weir_mux_remote_mr *remote_mr;
	bool is_read;
	int status;
	uint64_t local, remote, left;
	uint32_t wrs;
};

/* The peer's ring, for direct RDMA writes. @size: 0 if the peer allows none. */
struct weir_mux_peer_ring {
	uint64_t address;
	uint32_t rkey, size;
};

/*
 * What the other end has said about a connection. Changed with mux->lock held, also read without.
 *
 *	UNASKED -> ASKED -> OPEN -> FINISHED	we connect
 *	UNASKED ----------> OPEN -> FINISHED	the peer connects
 *	UNASKED, ASKED -----------> REFUSED	no connection, or a placeholder (ctrl_conn_new())
 *
 * ASKED: our OPEN is unanswered and counts in remote->nr_opens. OPEN: both ends may send.
 * FINISHED and REFUSED: the peer sends nothing more.
 */
enum weir_mux_peer_state {
	WEIR_MUX_PEER_UNASKED,
	WEIR_MUX_PEER_ASKED,
	WEIR_MUX_PEER_OPEN,
	WEIR_MUX_PEER_FINISHED,
	WEIR_MUX_PEER_REFUSED
};

/**
 * struct weir_mux_vconn - a connection
 * @app: the application's handle if the application is in this process
 * @account: the account charged
 * @id, @remote_id: our id, and the peer's once the connection is open
 * @status: 0, or why the connection failed; any thread
 * @granted: stream position up to which we may send; written by the poller, read by the worker
 * @peer_ring: constant once open
 * @received: bytes of the stream received; written by the poller, read by the worker
 * @weight: wanted weight, copied to @flow by the worker; any thread
 * @credited: read position covered by credits; written by the worker, read by all
 * @waiter: the thread that waits for the answer to OPEN, or NULL; mux->lock
 * @open_link: in remote->open_waiters while OPEN waits for others to be answered; mux->lock
 * @peer: what the peer has said
 * @is_closed: the application has let go; @is_detached: so has the worker; mux->lock, also read
 *	without
 * @is_ours: connected from here; mux->lock
 * @ctrls, @is_queued: any thread
 * @fd, @room_fd: signalled for armed waiters of the rings; -1 if not requested; any thread
 * @nr: the tenant's number for the connection
 * @service: the service connected to; for WEIR_MUX_CTRL_REMOTE the message type
 * @slot, @nr_slots: place of the rings in @slab; @slab is NULL for a placeholder
 *	(ctrl_conn_new()), which has no @sched_group either
 * @leaving: the mux's side of @out; the position counts completed bytes
 * @posted: bytes of the ring posted; @zc_posted: bytes of zero-copy sends posted
 * @sent, @zc_sent: the same, completed; @written_done, @read_done: bytes of completed RDMA
 *	writes and reads; statistics, written by the worker, read by all
 */
struct weir_mux_vconn {
	struct weir_mux_conn app;
	struct weir_mux_local *mux;
	struct weir_mux_account *account;
	struct weir_mux_remote *remote;
	struct weir_mux_sched_group *sched_group;
	struct weir_list remote_link, service_link, open_link;
	pthread_cond_t *waiter;
	uint8_t class;
	uint16_t weight;
	uint32_t id, remote_id, service;
	enum weir_mux_peer_state peer;
	bool is_closed, is_detached, is_ours;
	int status;

	struct weir_mux_ring_slab *slab;
	unsigned int slot, nr_slots, nr;
	struct weir_mux_conn_shm *shm;
	uint32_t size; /* of each ring */
	int fd, room_fd;
	struct weir_mux_grant grants[WEIR_MUX_GRANTS_MAX];
	struct weir_mux_remote_mr remote_mrs[WEIR_MUX_GRANTS_MAX];
	uint32_t last_handle;

	/* poller only */
	struct weir_mux_ring_end arriving;
	uint64_t received, granted;
	struct weir_mux_peer_ring peer_ring;

	/* worker only */
	struct weir_inbox_node inbox_node;
	uint32_t is_queued, ctrls;
	uint64_t credited;
	struct weir_mux_ring_end leaving;
	uint64_t posted, zc_posted;
	uint32_t ctrls_todo; /* ctrls taken and not sent yet for lack of room */
	struct weir_flow flow;
	struct weir_list wait_link;
	uint32_t controls; /* in flight */
	bool fin_sent;
	struct weir_mux_rdma_op rdma_op, zc_send;
	bool rdma_op_was_last; /* operations and the stream take turns */
	uint64_t waits_ns; /* since when the next bytes wait for the scheduler */
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

/* The peer's id: 0, then constant once set by the poller. */
/* The counters of its class, of its account. */
static inline struct weir_mux_class_counters *
weir_mux_vconn_counters(const struct weir_mux_vconn *conn)
{
	return &conn->account->classes[conn->class];
}

static inline uint32_t weir_mux_vconn_remote_id(const struct weir_mux_vconn *conn)
{
	return __atomic_load_n(&conn->remote_id, __ATOMIC_RELAXED);
}

static inline enum weir_mux_peer_state weir_mux_vconn_peer(const struct weir_mux_vconn *conn)
{
	return __atomic_load_n(&conn->peer, __ATOMIC_ACQUIRE);
}

/* Both ends may send. */
static inline bool weir_mux_vconn_is_open(const struct weir_mux_vconn *conn)
{
	return weir_mux_vconn_peer(conn) == WEIR_MUX_PEER_OPEN;
}

/* The peer has accepted the connection, though it may have finished since. */
static inline bool weir_mux_vconn_was_opened(const struct weir_mux_vconn *conn)
{
	enum weir_mux_peer_state peer = weir_mux_vconn_peer(conn);

	return peer == WEIR_MUX_PEER_OPEN || peer == WEIR_MUX_PEER_FINISHED;
}

/* The peer sends nothing more. */
static inline bool weir_mux_vconn_is_finished(const struct weir_mux_vconn *conn)
{
	return weir_mux_vconn_peer(conn) >= WEIR_MUX_PEER_FINISHED;
}

/*
 * Creates a connection. @window: the ring length offered by the peer or asked for by the opener,
 * 0 if neither; our rings get the same length. Context: with mux->lock held, like all functions
 * down to weir_mux_vconn_abort() except weir_mux_vconn_fail(), which takes no lock.
 * Return: 0; -EPERM @account may not use @class; -EDQUOT; -ENOMEM; -EAGAIN as
 * weir_mux_ring_slab_take().
 */
int weir_mux_vconn_new(struct weir_mux_account *account, struct weir_mux_remote *remote,
		       uint8_t class, uint16_t weight, uint64_t window,
		       struct weir_mux_vconn **conn);
/* As weir_mux_conn_set_weight(). Context: without mux->lock. */
int weir_mux_vconn_weigh(struct weir_mux_vconn *conn, unsigned int weight);
/* Sends REFUSE for the peer's OPEN. -EPROTO: the peer has more OPENs unanswered than allowed. */
int weir_mux_vconn_refuse(struct weir_mux_remote *remote, uint8_t class, uint32_t remote_id,
			  int status);
/* Sends a control message about the remote. -EPROTO: the peer asked for too many at once. */
int weir_mux_vconn_send_remote_ctrl(struct weir_mux_remote *remote, enum wire_mux_type what);
struct weir_mux_vconn *weir_mux_vconn_find(struct weir_mux_local *mux, uint32_t id);
/* Handles the window in the peer's OPEN or ACCEPT. */
void weir_mux_vconn_set_window(struct weir_mux_vconn *conn, const struct wire_mux_control *m);
void weir_mux_vconn_fail(struct weir_mux_vconn *conn, int status);
/* Sends OPEN, at once or when fewer are unanswered. */
void weir_mux_vconn_send_open(struct weir_mux_vconn *conn);
/* An OPEN has been answered: sends the next one that waits. */
void weir_mux_vconn_send_next_open(struct weir_mux_remote *remote);
/* Wakes all threads waiting for a change. */
void weir_mux_vconn_wake_waiters(struct weir_mux_vconn *conn);
/* The peer sends nothing more. */
void weir_mux_vconn_peer_finished(struct weir_mux_vconn *conn);
void weir_mux_vconn_wake_app(struct weir_mux_vconn *conn);
void weir_mux_ring_wake(struct weir_mux_ring *ring, const int *fd);
/* Wakes waiters whose @wanted lies before @position, published before. */
void weir_mux_ring_wake_at(struct weir_mux_ring *ring, const int *fd, uint64_t position);
/* Frees the connection once application, peer and worker have all let go. */
void weir_mux_vconn_release(struct weir_mux_vconn *conn);
/* As weir_mux_conn_close(). */
void weir_mux_vconn_close(struct weir_mux_vconn *conn);
/* As weir_mux_vconn_close(), but drops unsent bytes. */
void weir_mux_vconn_abort(struct weir_mux_vconn *conn);

/*
 * Puts the connection into the worker's inbox and wakes the worker if needed. Context: any
 * thread.
 */
void weir_mux_vconn_notify(struct weir_mux_vconn *conn);
/* As above, without a wake-up; the caller then runs weir_mux_local_combine(). */
void weir_mux_vconn_queue(struct weir_mux_vconn *conn);

/*
 * As weir_mux_conn_grant() and weir_mux_conn_withdraw(), with the MR's number. Context: without
 * mux->lock.
 */
int weir_mux_vconn_grant(struct weir_mux_vconn *conn, uint32_t mr, uint64_t at, uint64_t length,
			 unsigned int rights, uint32_t *handle);
int weir_mux_vconn_withdraw(struct weir_mux_vconn *conn, uint32_t handle);
/*
 * Sends pending GRANT, WITHDRAW and WITHDRAWN messages. Context: the worker. Return: false: out
 * of room.
 */
bool weir_mux_grants_send(struct weir_mux_vconn *conn);
/* Handles the peer's GRANT, WITHDRAW or WITHDRAWN. -EPROTO. Context: with mux->lock held. */
int weir_mux_grant_input(struct weir_mux_vconn *conn, const struct wire_mux_control *m);
/* Drops all grants of a closing connection. Context: with mux->lock held. */
void weir_mux_grants_drop(struct weir_mux_vconn *conn);

/* Prepares the operations of a new connection. */
void weir_mux_rdma_ops_init(struct weir_mux_vconn *conn);
/* Takes a submitted operation, if there is one. Context: the worker, as for the next two. */
void weir_mux_rdma_op_start(struct weir_mux_rdma_op *e);
/* Posts no more of the operation and completes it with @status after the last completion. */
void weir_mux_rdma_op_stop(struct weir_mux_rdma_op *e, int status);
/* A work request of the operation has completed. */
void weir_mux_rdma_op_wr_done(struct weir_mux_rdma_op *e);
/* Completes an operation without waiting; nothing is in flight. Context: with mux->lock held. */
void weir_mux_rdma_op_drop(struct weir_mux_rdma_op *e, int status);

/*
 * Connects, offers and accepts for @account, as the functions of weir/mux.h.
 * weir_mux_vconn_connect() gives up at @deadline_ns. weir_mux_service_open() owns @fd from the
 * call on, and signals each new connection there. Context: without mux->lock.
 */
int weir_mux_vconn_connect(struct weir_mux_account *account, const char *peer, uint32_t service,
			   const struct weir_mux_conn_options *options, uint64_t deadline_ns,
			   struct weir_mux_vconn **conn, struct weir_error *error);
int weir_mux_service_open(struct weir_mux_account *account, uint32_t service, unsigned int backlog,
			  int fd, struct weir_mux_service **svc);
int weir_mux_service_accept(struct weir_mux_service *svc, struct weir_mux_vconn **conn);
void weir_mux_service_close(struct weir_mux_service *svc);
/* Context: with mux->lock held. No connection waits to be accepted. */
void weir_mux_service_free(struct weir_mux_service *svc);

#endif
