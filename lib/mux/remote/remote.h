/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Another mux, as the mux knows it: its qps, one a class, and who posts on them. */
#ifndef WEIR_LIB_MUX_REMOTE_REMOTE_H
#define WEIR_LIB_MUX_REMOTE_REMOTE_H

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "core/base/inbox.h"
#include "core/base/list.h"
#include "core/sched/sched.h"
#include "lib/conn/address.h"
#include "lib/conn/handshake.h"
#include "lib/mux/vconn/vconn.h"

struct weir_mux_local;

#define WEIR_MUX_QP_DEPTH 256 /* WRs of streams on a qp */
#define WEIR_MUX_QP_CTRLS 64 /* control messages besides */
#define WEIR_MUX_QP_HANDSHAKES 3 /* and those of the handshake */
#define WEIR_MUX_QP_CHAIN 16 /* WRs with one doorbell */
#define WEIR_MUX_DIRECT_WRITE_MIN 4096u /* bytes: a piece is written into the ring, and not sent */
#define WEIR_MUX_REMOTE_NAMES_MAX 16 /* more of its addresses are dialled again each time */
#define WEIR_MUX_QP_RNR_TIMER 12 /* 0.64 ms, as verbs encode it */

/*
 * WELCOMED: a further one; who has connected was welcomed, and may not know yet. SPARE: who it
 * leads to has been reached by another qp; of who has connected.
 */
enum weir_mux_qp_state {
	WEIR_MUX_QP_PROVING,
	WEIR_MUX_QP_WELCOMED,
	WEIR_MUX_QP_UP,
	WEIR_MUX_QP_SPARE,
	WEIR_MUX_QP_FAILED
};

/* A WR of a qp, until its completion is seen; in the order posted. @rdma_op: NULL: of none. */
struct weir_mux_posted_wr {
	struct weir_mux_vconn *conn;
	struct weir_mux_rdma_op *rdma_op;
	uint32_t bytes;
	bool is_control;
};

/**
 * struct weir_mux_sched_group - what a party's connections to a remote have in a class, together
 * @link: in remote->sched_groups
 * @refs: connections; @nr_ours: of which so many have been connected from here; mux->lock
 * @bundle: the worker's; @pace_link: in remote->paced as long as that is paused, and the worker's,
 *	too
 */
struct weir_mux_sched_group {
	struct weir_list link, pace_link;
	struct weir_mux_account_group *party;
	unsigned int refs, nr_ours;
	struct weir_bundle bundle;
};

/**
 * struct weir_mux_qp - one QP
 * @link: in mux->qps
 * @id: the connection manager's; its context is this
 * @qp: set once; closed to RDMA until the other end has proven the key
 * @cm: its own event channel, where this end has connected; NULL where it was connected to
 * @state, @status: mux->lock; @status says why it failed
 * @ended, @proved: a session that the other end may have, and this end has not; and as of
 *	mux->last_event, when it proved itself; the client's
 * @nr: of all qps that the mux ever had; @nr_handshakes_posted: messages of the handshake in flight; mux->lock
 * @controls: WEIR_MUX_QP_CTRLS messages, and after them the handshake's, all registered
 * @posted, @first, @count, @nr_controls, @chain, @nr_chain: the worker's
 */
struct weir_mux_qp {
	struct weir_list link;
	struct weir_mux_remote *remote;
	uint8_t class;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct rdma_event_channel *cm;
	enum weir_mux_qp_state state;
	int status;
	uint64_t ended, proved, nr;
	unsigned int nr_handshakes_posted;
	struct weir_handshake handshake;
	uint64_t deadline_ns;
	bool is_counted; /* among the unproven */
	bool is_orphan; /* who dialled it waits for it no longer: it is the poller's */

	struct wire_mux_control *controls;
	struct ibv_mr *mr;

	struct weir_mux_posted_wr posted[WEIR_MUX_QP_DEPTH + WEIR_MUX_QP_CTRLS];
	unsigned int first, count, nr_controls, next_control, nr_handshakes;
	struct ibv_send_wr chain[WEIR_MUX_QP_CHAIN];
	struct ibv_sge sges[WEIR_MUX_QP_CHAIN];
	unsigned int nr_chain;
};

/*
 * Whether a remote to which no connection is left may go, as far as the two ends have agreed: this
 * end has asked; it may, and nobody connects by it any more.
 */
enum weir_mux_idle_state { WEIR_MUX_IDLE_NONE, WEIR_MUX_IDLE_ASKED, WEIR_MUX_IDLE_LEFT };

/**
 * struct weir_mux_remote - another mux
 * @link: in mux->nodes
 * @name: as connected to at first; or where it connected from
 * @names: all addresses by which it was reached, the last WEIR_MUX_REMOTE_NAMES_MAX; mux->lock
 * @id: the other mux's, as it was proven; 0: not yet known
 * @session_id: names it to further qps, which either end may dial
 * @is_ours: this end has dialled its qp of class 0
 * @refs: connections that know it, and one of the mux's, and who is about to connect; mux->lock
 * @party: whose it counts as: whose connect has begun it, or holds it since; NULL: it is there
 *	because others connect to us; mux->lock
 * @qps: by class; NULL where there is none yet. Set once with mux->lock held, and read without
 *	it after an acquire
 * @sched_groups: of parties who have connections; mux->lock
 * @nr_opens, @open_waiters: connections whose OPEN is unanswered, at most WIRE_MUX_OPENS_MAX, and those
 *	whose OPEN has to wait until it is less; mux->lock
 * @nr_refusals: of its OPENs, not yet sent; mux->lock
 * @nr_pending_opens: of its OPENs, that wait for rings; mux->lock
 * @heard: as of mux->last_event, when something first came by a qp of its; 0: nothing has;
 *	mux->lock
 * @is_dialing: an application's thread connects, for a qp of class @dialing; or has left that to
 *	the poller
 * @leave, @unused_ns, @expires_ns: since when it has had no connection, 0: not known; and when the
 *	queue pairs go, once that is agreed; mux->lock
 * @status: why it is lost, or 0; any thread
 * @nr_handshakes_posted: messages of handshakes in flight; changed with mux->lock held
 * @inbox, @asleep, @bell: how the worker gets news
 * @is_claimed: somebody does the worker's work. What is said to be the worker's is his who does
 * @is_ended: nobody does any more; @wakes_ns: the worker sleeps no longer than until then; the
 *	worker's
 * @has_more: who has served was not done, and comes again; mux->lock
 * @is_armed: the CQ, and its event has not been taken; set by who serves
 * @control_waits: connections with something to say, for which there was no room; @paced:
 *	sched_groups whose connections may not send yet, since their party has sent so much; the worker's
 */
struct weir_mux_remote {
	struct weir_list link;
	struct weir_mux_local *mux;
	char name[WEIR_ADDRESS_MAX], names[WEIR_MUX_REMOTE_NAMES_MAX][WEIR_ADDRESS_MAX];
	unsigned int nr_names;
	uint8_t id[WIRE_MUX_ID], dialing;
	uint64_t session_id, heard;
	unsigned int refs;
	struct weir_mux_qp *qps[WEIR_MUX_CLASSES_MAX];
	bool is_ours, is_dialing, has_worker, is_over;
	struct weir_mux_account_group *party;
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
	int bell;

	struct weir_sched sched;
	struct weir_list control_waits, paced;
	uint32_t posted; /* WRs whose completion has not been seen, over all qps */
	unsigned int cq_events;
	bool is_armed, is_ended, has_more;
	uint64_t wakes_ns;
};

/*
 * remote.c: all with mux->lock held, but weir_mux_remote_fail(), which takes none.
 * weir_mux_remote_fail() breaks a remote for good: its worker sees to the rest.
 */
int weir_mux_remote_new(struct weir_mux_local *mux, const char *name,
			struct weir_mux_remote **remote);
int weir_mux_remote_start(struct weir_mux_remote *remote);
void weir_mux_remote_fail(struct weir_mux_remote *remote, int status);
void weir_mux_remote_put(struct weir_mux_remote *remote);
/* It counts as nobody's any more. */
void weir_mux_remote_uncharge(struct weir_mux_remote *remote);
/* Ends what is over: joins its worker, destroys its QPs. The poller's. */
void weir_mux_remotes_reap(struct weir_mux_local *mux);
/* Its QPs are in error: what is posted completes, and the other end reaches nothing by them. */
void weir_mux_remote_flush_qps(struct weir_mux_remote *remote);

/*
 * meet.c: which remote is which, with mux->lock held. weir_mux_remote_is_usable(): connections may go by it.
 * weir_mux_remote_by_name(): by a name of its; weir_mux_remote_by_session(): for a further qp that this end
 * dials (@is_client), or is dialled; weir_mux_remote_by_id(): that has a qp, for who connects to us.
 */
bool weir_mux_remote_is_usable(const struct weir_mux_remote *remote);
struct weir_mux_remote *weir_mux_remote_by_name(struct weir_mux_local *mux, const char *name);
void weir_mux_remote_add_name(struct weir_mux_remote *remote, const char *name);
struct weir_mux_remote *weir_mux_remote_by_session(struct weir_mux_local *mux, uint64_t session_id,
						   bool is_client);
struct weir_mux_remote *weir_mux_remote_by_id(struct weir_mux_local *mux,
					      const uint8_t id[static WIRE_MUX_ID]);
/* Whether some first qp that this end dials is so far that the other end may have its session. */
bool weir_mux_local_expects_welcome(const struct weir_mux_local *mux);
/*
 * The other end has proven itself on the qp. Return: 0: it is used, now or later; 1: it is spare,
 * and the answer says so; -EALREADY the same qp is dialled by either end, and this is not the one
 * that stays; -EPROTO.
 */
int weir_mux_qp_dedup_client(struct weir_mux_qp *qp, struct wire_handshake_welcome *welcome);
int weir_mux_qp_dedup_donor(struct weir_mux_qp *qp);

/* qp.c: with mux->lock held. */
int weir_mux_qp_new(struct weir_mux_remote *remote, uint8_t class, struct rdma_cm_id *id,
		    struct weir_mux_qp **qp);
void weir_mux_qp_destroy(struct weir_mux_qp *qp);
struct weir_mux_qp *weir_mux_qp_find(struct weir_mux_local *mux, uint32_t qpn);
/* Begins the handshake, as who has connected or as who was connected to. */
int weir_mux_qp_handshake_start(struct weir_mux_qp *qp, bool is_client);
void weir_mux_qp_fail(struct weir_mux_qp *qp, int status);
/* Who waits for its proof does so no longer: it goes on all the same, until its deadline. */
void weir_mux_qp_orphan(struct weir_mux_qp *qp);
/* A message of the handshake came, from whoever it is. */
void weir_mux_qp_handshake_input(struct weir_mux_qp *qp, const void *data, size_t length);
/* Who was welcomed on it knows: it carries connections, if it does not do so already. */
void weir_mux_qp_confirm(struct weir_mux_qp *qp);
/* Whether there is one of that class that will be up, or will fail, without this end's doing. */
bool weir_mux_qp_is_pending(const struct weir_mux_remote *remote, uint8_t class);
/* Without mux->lock, by who serves: a work request of a handshake is in flight no longer. */
void weir_mux_qp_handshake_sent(struct weir_mux_remote *remote, const struct ibv_wc *wc);

/*
 * worker.c: the thread of a remote, and its work, once: @next_ns receives when somebody may send
 * again who may not yet. Return: whether there was anything to do. Context: who serves.
 */
void *weir_mux_worker_run(void *remote);
bool weir_mux_worker_step(struct weir_mux_remote *remote, uint64_t now_ns, uint64_t *next_ns);

/*
 * serve.c. weir_mux_remote_claim(): the work is the caller's until weir_mux_remote_release(), or false: somebody
 * is at it; afterwards he looks at the inbox. weir_mux_remote_combine(): does what there is to do, unless
 * somebody does; the caller has no lock, and a reference. weir_mux_remote_wake() wakes the worker.
 */
bool weir_mux_remote_claim(struct weir_mux_remote *remote);
void weir_mux_remote_release(struct weir_mux_remote *remote);
void weir_mux_remote_combine(struct weir_mux_remote *remote);
void weir_mux_remote_wake(struct weir_mux_remote *remote);

/*
 * leave.c: with mux->lock held. weir_mux_idle_input(): the other end has said @what. -EPROTO; -ENOMEM.
 * weir_mux_idle_expire(): asks for the end of nodes that have had no connection for long enough, and
 * ends those for which it is agreed. Return: when it is to be called again, at the latest.
 */
int weir_mux_idle_input(struct weir_mux_qp *qp, enum wire_mux_type what);
uint64_t weir_mux_idle_expire(struct weir_mux_local *mux, uint64_t now_ns);

/* stake.c: with mux->lock held. -ENOMEM. */
int weir_mux_sched_group_join(struct weir_mux_vconn *conn);
void weir_mux_sched_group_leave(struct weir_mux_vconn *conn);
/* The connection is one that is asked for here: its party may be who holds the remote. */
void weir_mux_sched_group_charge(struct weir_mux_vconn *conn);
/*
 * The worker's, without mux->lock. weir_mux_sched_group_follow_account(): the connection is of its owner's party, as
 * that is now; if there is no memory for that, of the last one. weir_mux_sched_group_idle(): it has nothing
 * to send, or may not. weir_mux_sched_group_is_paced(): whether it has to wait, and all of its stake, since
 * its party has sent so much. weir_mux_sched_groups_resume(): who may send again has his turn. Return: when the
 * next may, or UINT64_MAX.
 */
void weir_mux_sched_group_follow_account(struct weir_mux_vconn *conn);
void weir_mux_sched_group_idle(struct weir_mux_vconn *conn);
bool weir_mux_sched_group_is_paced(struct weir_mux_vconn *conn, uint64_t now_ns);
uint64_t weir_mux_sched_groups_resume(struct weir_mux_remote *remote, uint64_t now_ns);

#endif
