/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A remote: the local view of another mux, with a QP per class and a worker. */
#ifndef WEIR_LIB_MUX_REMOTE_REMOTE_H
#define WEIR_LIB_MUX_REMOTE_REMOTE_H

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "core/base/combine.h"
#include "core/base/list.h"
#include "core/sched/sched.h"
#include "lib/conn/address.h"
#include "lib/conn/handshake.h"
#include "lib/conn/places.h"
#include "lib/mux/vconn/vconn.h"

struct weir_mux_local;

#define WEIR_MUX_QP_DEPTH 256 /* stream WRs on a QP */
#define WEIR_MUX_QP_CTRLS 64 /* control messages on top */
#define WEIR_MUX_QP_HANDSHAKES 3 /* handshake messages on top */
#define WEIR_MUX_QP_CHAIN 16 /* WRs per doorbell */
#define WEIR_MUX_DIRECT_WRITE_MIN 4096u /* bytes from which a segment goes by RDMA write */
#define WEIR_MUX_REMOTE_NAMES_MAX 16 /* older addresses are dialled again each time */
#define WEIR_MUX_QP_RNR_TIMER 12 /* 0.64 ms in the verbs encoding */

/*
 * WELCOMED: a further QP whose WELCOME may still be in flight. SPARE: dialled by us, but another
 * QP already reaches the same mux.
 */
enum weir_mux_qp_state {
	WEIR_MUX_QP_PROVING,
	WEIR_MUX_QP_WELCOMED,
	WEIR_MUX_QP_UP,
	WEIR_MUX_QP_SPARE,
	WEIR_MUX_QP_FAILED
};

/* A posted WR until its completion, in posting order. @rdma_op: NULL for stream and control WRs. */
struct weir_mux_posted_wr {
	struct weir_mux_vconn *conn;
	struct weir_mux_rdma_op *rdma_op;
	uint32_t bytes;
	bool is_control;
};

/**
 * struct weir_mux_sched_group - an account group's connections to a remote in one class
 * @link: in remote->sched_groups
 * @refs: connections; @nr_ours: outgoing connections; mux->lock
 * @bundle: their flows; worker only
 * @pace_link: in remote->paced while @bundle is paused; worker only
 */
struct weir_mux_sched_group {
	struct weir_list link, pace_link;
	struct weir_mux_account_group *group;
	unsigned int refs, nr_ours;
	struct weir_bundle bundle;
};

/**
 * struct weir_mux_qp - a QP to another mux
 * @link: in mux->qps
 * @id: the connection manager's; the context is the QP
 * @qp: set once; closed to RDMA until the peer has proven the key
 * @cm: event channel of a QP dialled by us, else NULL
 * @state, @status: mux->lock; @status is the error of a failed QP
 * @ended: client: session still known to the peer and lost here; 0 if none
 * @proved: client: mux->last_event when we sent the proof
 * @nr: unique within the mux; @nr_handshakes_posted: handshake messages in flight; mux->lock
 * @handshake: until the peer is proven; then NULL
 * @controls: registered: WEIR_MUX_QP_CTRLS messages, then the handshake's
 * @posted, @first, @count, @nr_controls, @chain, @nr_chain: worker only
 */
struct weir_mux_qp {
	struct weir_list link;
	struct weir_mux_remote *remote;
	uint8_t class;
	uint16_t version; /* of the protocol, asked for in the REQ */
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct rdma_event_channel *cm;
	enum weir_mux_qp_state state;
	int status;
	uint64_t ended, proved, nr;
	unsigned int nr_handshakes_posted;
	struct weir_handshake *handshake;
	uint64_t deadline_ns;
	struct weir_newcomer newcomer; /* the peer's place, until the peer has proven the key */
	bool is_orphan; /* the dialling thread gave up; now the poller's */

	struct wire_mux_control *controls;
	struct ibv_mr *mr;

	struct weir_mux_posted_wr posted[WEIR_MUX_QP_DEPTH + WEIR_MUX_QP_CTRLS];
	unsigned int first, count, nr_controls, next_control, nr_handshakes;
	struct ibv_send_wr chain[WEIR_MUX_QP_CHAIN];
	struct ibv_sge sges[WEIR_MUX_QP_CHAIN];
	unsigned int nr_chain;
};

/*
 * Idle teardown. ASKED: we have sent LEAVE. LEFT: both ends agree, and no new connection may use
 * the remote.
 */
enum weir_mux_idle_state { WEIR_MUX_IDLE_NONE, WEIR_MUX_IDLE_ASKED, WEIR_MUX_IDLE_LEFT };

/*
 * The remote's own thread. RUNNING: serves the remote, or sleeps. OVER: the remote has failed, all
 * WRs have completed, and all connections are released; the poller joins the thread.
 */
enum weir_mux_worker_state { WEIR_MUX_WORKER_NONE, WEIR_MUX_WORKER_RUNNING, WEIR_MUX_WORKER_OVER };

/**
 * struct weir_mux_remote - another mux
 * @link: in mux->remotes
 * @name: the address first dialled, or from which the peer connected
 * @names: all addresses used to reach the remote, the last WEIR_MUX_REMOTE_NAMES_MAX; mux->lock
 * @id: the peer's proven id; 0: not known yet
 * @identity: if @is_ours, the public key that the peer has proven on the first QP
 * @session_id: names the remote when either end dials a further QP
 * @is_ours: we dialled the QP of class 0
 * @refs: connections, threads about to connect, and the mux; mux->lock
 * @group: the account group charged: the first to connect, or the heir; NULL if only the peer
 *	connects; mux->lock
 * @qps: by class, NULL if missing. Set once with mux->lock held; read without it after an
 *	acquire
 * @sched_groups: account groups with connections; mux->lock
 * @nr_opens, @open_waiters: OPENs without an answer, at most WIRE_MUX_OPENS_MAX, and connections
 *	whose OPEN must wait; mux->lock
 * @nr_refusals: refusals of the peer's OPENs not yet sent; mux->lock
 * @nr_pending_opens: the peer's OPENs waiting for rings; mux->lock
 * @heard: mux->last_event at the first control message from the peer, 0: none yet; mux->lock
 * @is_dialing: an application's thread, or the poller after it, dials a QP of class @dialing
 * @leave, @unused_ns, @expires_ns: idle teardown; since when there is no connection (0:
 *	unknown), and when the QPs go once both ends agree; mux->lock
 * @status: 0, or why the remote is lost; any thread
 * @nr_handshakes_posted: handshake messages in flight; changed with mux->lock held
 * @inbox, @asleep, @wakeup_fd: news for the worker
 * @is_claimed: a thread acts as the worker; "worker only" means the claim holder
 * @is_ended: no more work will be done; worker only
 * @now_ns: the time, set before the first of a few passes, so it may lag a little; worker only
 * @wakes_ns: timeout of the sleeping worker; worker only
 * @has_more: a combining thread left work, and comes again; mux->lock
 * @is_armed: the CQ is armed and the event not yet taken; worker only
 * @control_waits: connections whose control messages wait for room; worker only
 * @paced: groups waiting for the rate limit; worker only
 */
struct weir_mux_remote {
	struct weir_list link;
	struct weir_mux_local *mux;
	char name[WEIR_ADDRESS_MAX], names[WEIR_MUX_REMOTE_NAMES_MAX][WEIR_ADDRESS_MAX];
	unsigned int nr_names;
	uint8_t id[WIRE_MUX_ID], identity[WIRE_KEY], dialing;
	uint64_t session_id, heard;
	unsigned int refs;
	struct weir_mux_qp *qps[WEIR_MUX_CLASSES_MAX];
	bool is_ours, is_dialing;
	enum weir_mux_worker_state worker_state; /* mux->lock */
	struct weir_mux_account_group *group;
	enum weir_mux_idle_state leave;
	uint64_t unused_ns, expires_ns;
	int status;
	struct weir_list conns, sched_groups, open_waiters;
	unsigned int nr_opens, nr_refusals, nr_pending_opens;

	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	pthread_t worker;
	struct weir_inbox inbox;
	uint32_t asleep, is_claimed, nr_handshakes_posted;
	int wakeup_fd;

	struct weir_sched sched;
	struct weir_list control_waits, paced;
	uint32_t posted; /* WRs in flight over all QPs */
	unsigned int cq_events;
	bool is_armed, is_ended, has_more;
	uint64_t now_ns, wakes_ns;
};

/*
 * Functions down to weir_mux_qp_is_pending() are called with mux->lock held, except
 * weir_mux_remote_fail(), which takes no lock.
 */
int weir_mux_remote_new(struct weir_mux_local *mux, const char *name,
			struct weir_mux_remote **remote);
int weir_mux_remote_start(struct weir_mux_remote *remote);
/* Breaks the remote for good; poller and worker clean up. */
void weir_mux_remote_fail(struct weir_mux_remote *remote, int status);
void weir_mux_remote_put(struct weir_mux_remote *remote);
/* Charges the remote to no account group any more. */
void weir_mux_remote_uncharge(struct weir_mux_remote *remote);
/* Joins the workers and destroys the QPs of remotes that have ended. Context: the poller. */
void weir_mux_remotes_reap(struct weir_mux_local *mux);
/* Moves the QPs to error: all WRs complete, and the peer reaches no memory through them. */
void weir_mux_remote_flush_qps(struct weir_mux_remote *remote);

/* Whether connections may use the remote. */
bool weir_mux_remote_is_usable(const struct weir_mux_remote *remote);
/* The usable remote with the address @name. */
struct weir_mux_remote *weir_mux_remote_by_name(struct weir_mux_local *mux, const char *name);
void weir_mux_remote_add_name(struct weir_mux_remote *remote, const char *name);
/* The remote of a further QP. @is_client: we dial the QP. A mux with pins keeps the kinds apart. */
struct weir_mux_remote *weir_mux_remote_by_session(struct weir_mux_local *mux, uint64_t session_id,
						   bool is_client);
/* The remote with the peer's id, for an incoming QP. */
struct weir_mux_remote *weir_mux_remote_by_id(struct weir_mux_local *mux,
					      const uint8_t id[static WIRE_MUX_ID]);
/* Whether we dial a first QP whose session the peer may already have. */
bool weir_mux_local_expects_welcome(const struct weir_mux_local *mux);
/*
 * Deduplication after the peer's proof. Return: 0: use the QP, now or later; 1: spare, as the
 * answer says; -EALREADY both ends dial, and the peer's QP stays; -EPROTO.
 */
int weir_mux_qp_dedup_client(struct weir_mux_qp *qp, struct wire_handshake_welcome *welcome);
int weir_mux_qp_dedup_donor(struct weir_mux_qp *qp);

int weir_mux_qp_new(struct weir_mux_remote *remote, uint8_t class, struct rdma_cm_id *id,
		    struct weir_mux_qp **qp);
void weir_mux_qp_destroy(struct weir_mux_qp *qp);
struct weir_mux_qp *weir_mux_qp_find(struct weir_mux_local *mux, uint32_t qpn);
/* Starts the handshake as client or donor. */
int weir_mux_qp_handshake_start(struct weir_mux_qp *qp, bool is_client);
void weir_mux_qp_fail(struct weir_mux_qp *qp, int status);
/* The waiting thread gives up; the handshake goes on until its deadline. */
void weir_mux_qp_orphan(struct weir_mux_qp *qp);
/* Handles a handshake message from a peer not yet trusted. */
void weir_mux_qp_handshake_input(struct weir_mux_qp *qp, const void *data, size_t length);
/* The client has received WELCOME: the QP may carry connections. */
void weir_mux_qp_confirm(struct weir_mux_qp *qp);
/* Whether a QP of @class will come up, or fail, without further action on our side. */
bool weir_mux_qp_is_pending(const struct weir_mux_remote *remote, uint8_t class);
/* Handles the completion of a handshake message. Context: the worker, without mux->lock. */
void weir_mux_qp_handshake_sent(struct weir_mux_remote *remote, const struct ibv_wc *wc);

/*
 * The worker thread, and one pass of its work. @next_ns: receives when the first paced group may
 * send. Return: whether there was anything to do. Context (step): the claim holder, which has set
 * @remote->now_ns.
 */
void *weir_mux_worker_run(void *remote);
bool weir_mux_worker_step(struct weir_mux_remote *remote, uint64_t *next_ns);
/*
 * Whether a further pass would find nothing: no completion is outstanding, and the inbox is empty.
 * Connections queued after this are left to combine.c. Context: the claim holder, after a step.
 */
bool weir_mux_worker_is_done(const struct weir_mux_remote *remote);

/*
 * Claim the worker's role until release. Return: false: another thread has it. After release,
 * check the inbox.
 */
bool weir_mux_remote_claim(struct weir_mux_remote *remote);
void weir_mux_remote_release(struct weir_mux_remote *remote);
/* Does the pending work, unless another thread does. Context: no lock held; with a reference. */
void weir_mux_remote_combine(struct weir_mux_remote *remote);
void weir_mux_remote_wake(struct weir_mux_remote *remote);

/* Handles the peer's LEAVE, LEFT or STAY. -EPROTO; -ENOMEM. Context: with mux->lock held. */
int weir_mux_idle_input(struct weir_mux_qp *qp, enum wire_mux_type what);
/*
 * Sends LEAVE to remotes idle long enough, and ends remotes in state LEFT when due. Return: when
 * to call again, at the latest. Context: with mux->lock held.
 */
uint64_t weir_mux_idle_expire(struct weir_mux_local *mux, uint64_t now_ns);

/* -ENOMEM. Context: with mux->lock held, like the next two. */
int weir_mux_sched_group_join(struct weir_mux_vconn *conn);
void weir_mux_sched_group_leave(struct weir_mux_vconn *conn);
/* The connection is outgoing: its group may be charged for the remote. */
void weir_mux_sched_group_charge(struct weir_mux_vconn *conn);
/*
 * Moves the connection to the account's present group, memory permitting. Context: the worker,
 * without mux->lock, like the next three.
 */
void weir_mux_sched_group_follow_account(struct weir_mux_vconn *conn);
/* The connection has nothing to send, or may not. */
void weir_mux_sched_group_idle(struct weir_mux_vconn *conn);
/* Pauses the connection's group if over the rate limit. Return: whether paused. */
bool weir_mux_sched_group_is_paced(struct weir_mux_vconn *conn);
/* Resumes groups whose time has come. Return: when the next may send, or UINT64_MAX. */
uint64_t weir_mux_sched_groups_resume(struct weir_mux_remote *remote);

#endif
