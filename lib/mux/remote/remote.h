/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Another mux, as the hub knows it: its lanes, one a class, and who posts on them. */
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

struct weir_hub;

#define WEIR_LANE_DEPTH 256 /* WRs of streams on a lane */
#define WEIR_LANE_CONTROLS 64 /* control messages besides */
#define WEIR_LANE_HANDSHAKES 3 /* and those of the handshake */
#define WEIR_LANE_CHAIN 16 /* WRs with one doorbell */
#define WEIR_DIRECT_MIN 4096u /* bytes: a piece is written into the ring, and not sent */
#define WEIR_NODE_NAMES_MAX 16 /* more of its addresses are dialled again each time */
#define WEIR_LANE_RNR_TIMER 12 /* 0.64 ms, as verbs encode it */

/*
 * WELCOMED: a further one; who has connected was welcomed, and may not know yet. SPARE: who it
 * leads to has been reached by another lane; of who has connected.
 */
enum weir_lane_state { WEIR_LANE_PROVING, WEIR_LANE_WELCOMED, WEIR_LANE_UP, WEIR_LANE_SPARE,
		       WEIR_LANE_FAILED };

/* A WR of a lane, until its completion is seen; in the order posted. @errand: NULL: of none. */
struct weir_posted {
	struct weir_circuit *conn;
	struct weir_errand *errand;
	uint32_t bytes;
	bool is_control;
};

/**
 * struct weir_stake - what a party's connections to a node have in a class, together
 * @link: in node->stakes
 * @refs: connections; @nr_ours: of which so many have been connected from here; hub->lock
 * @bundle: the worker's; @pace_link: in node->paced as long as that is paused, and the worker's,
 *	too
 */
struct weir_stake {
	struct weir_list link, pace_link;
	struct weir_party *party;
	unsigned int refs, nr_ours;
	struct weir_bundle bundle;
};

/**
 * struct weir_lane - one QP
 * @link: in hub->lanes
 * @id: the connection manager's; its context is this
 * @cm: its own event channel, where this end has connected; NULL where it was connected to
 * @state, @status: hub->lock; @status says why it failed
 * @ended, @proved: a session that the other end may have, and this end has not; and as of
 *	hub->last_event, when it proved itself; the client's
 * @nr: of all lanes that the hub ever had; @unheard: messages of the handshake in flight; hub->lock
 * @controls: WEIR_LANE_CONTROLS messages, and after them the handshake's, all registered
 * @posted, @first, @count, @nr_controls, @chain, @nr_chain: the worker's
 */
struct weir_lane {
	struct weir_list link;
	struct weir_node *node;
	uint8_t class;
	struct rdma_cm_id *id;
	struct rdma_event_channel *cm;
	enum weir_lane_state state;
	int status;
	uint64_t ended, proved, nr;
	unsigned int unheard;
	struct weir_handshake handshake;
	uint64_t deadline_ns;
	bool is_counted; /* among the unproven */
	bool is_orphan; /* who dialled it waits for it no longer: it is the poller's */

	struct wire_mux *controls;
	struct ibv_mr *mr;

	struct weir_posted posted[WEIR_LANE_DEPTH + WEIR_LANE_CONTROLS];
	unsigned int first, count, nr_controls, next_control, nr_handshakes;
	struct ibv_send_wr chain[WEIR_LANE_CHAIN];
	struct ibv_sge sges[WEIR_LANE_CHAIN];
	unsigned int nr_chain;
};

/*
 * Whether a node to which no connection is left may go, as far as the two ends have agreed: this
 * end has asked; it may, and nobody connects by it any more.
 */
enum weir_leave { WEIR_LEAVE_NONE, WEIR_LEAVE_ASKED, WEIR_LEAVE_LEFT };

/**
 * struct weir_node - another mux
 * @link: in hub->nodes
 * @name: as connected to at first; or where it connected from
 * @names: all addresses by which it was reached, the last WEIR_NODE_NAMES_MAX; hub->lock
 * @id: the other mux's, as it was proven; 0: not yet known
 * @session_id: names it to further lanes, which either end may dial
 * @is_ours: this end has dialled its lane of class 0
 * @refs: connections that know it, and one of the mux's, and who is about to connect; hub->lock
 * @party: whose it counts as: whose connect has begun it, or holds it since; NULL: it is there
 *	because others connect to us; hub->lock
 * @lanes: by class; NULL where there is none yet. Set once with hub->lock held, and read without
 *	it after an acquire
 * @stakes: of parties who have connections; hub->lock
 * @nr_asking, @askers: connections whose OPEN is unanswered, at most WIRE_OPENS_MAX, and those
 *	whose OPEN has to wait until it is less; hub->lock
 * @nr_refusals: of its OPENs, not yet sent; hub->lock
 * @nr_openings: of its OPENs, that wait for rings; hub->lock
 * @heard: as of hub->last_event, when something first came by a lane of its; 0: nothing has;
 *	hub->lock
 * @is_dialing: an application's thread connects, for a lane of class @dialing; or has left that to
 *	the poller
 * @leave, @quiet_ns, @part_ns: since when it has had no connection, 0: not known; and when the
 *	queue pairs go, once that is agreed; hub->lock
 * @status: why it is lost, or 0; any thread
 * @unheard: messages of handshakes in flight; changed with hub->lock held
 * @inbox, @asleep, @bell: how the worker gets news
 * @serving: somebody does the worker's work. What is said to be the worker's is his who does
 * @is_ended: nobody does any more; @rises_ns: the worker sleeps no longer than until then; the
 *	worker's
 * @has_more: who has served was not done, and comes again; hub->lock
 * @is_armed: the CQ, and its event has not been taken; set by who serves
 * @control_waits: connections with something to say, for which there was no room; @paced:
 *	stakes whose connections may not send yet, since their party has sent so much; the worker's
 */
struct weir_node {
	struct weir_list link;
	struct weir_hub *hub;
	char name[WEIR_ADDRESS_MAX], names[WEIR_NODE_NAMES_MAX][WEIR_ADDRESS_MAX];
	unsigned int nr_names;
	uint8_t id[WIRE_MUX_ID], dialing;
	uint64_t session_id, heard;
	unsigned int refs;
	struct weir_lane *lanes[WEIR_MUX_CLASSES_MAX];
	bool is_ours, is_dialing, has_worker, is_over;
	struct weir_party *party;
	enum weir_leave leave;
	uint64_t quiet_ns, part_ns;
	int status;
	struct weir_list conns, stakes, askers;
	unsigned int nr_asking, nr_refusals, nr_openings;

	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	pthread_t worker;
	struct weir_inbox inbox;
	uint32_t asleep, serving, unheard;
	int bell;

	struct weir_sched sched;
	struct weir_list control_waits, paced;
	uint32_t posted; /* WRs whose completion has not been seen, over all lanes */
	unsigned int cq_events;
	bool is_armed, is_ended, has_more;
	uint64_t rises_ns;
};

/*
 * node.c: all with hub->lock held, but weir_node_fail(), which takes none.
 * weir_node_fail() breaks a node for good: its worker sees to the rest.
 */
int weir_node_new(struct weir_hub *hub, const char *name, struct weir_node **node);
int weir_node_start(struct weir_node *node);
void weir_node_fail(struct weir_node *node, int status);
void weir_node_put(struct weir_node *node);
/* It counts as nobody's any more. */
void weir_node_uncharge(struct weir_node *node);
/* Ends what is over: joins its worker, destroys its QPs. The poller's. */
void weir_nodes_reap(struct weir_hub *hub);
/* Its QPs are in error: what is posted completes, and the other end reaches nothing by them. */
void weir_lanes_break(struct weir_node *node);

/*
 * meet.c: which node is which, with hub->lock held. weir_node_is_there(): connections may go by it.
 * weir_node_named(): by a name of its; weir_node_of_session(): for a further lane that this end
 * dials (@is_client), or is dialled; weir_node_of_mux(): that has a lane, for who connects to us.
 */
bool weir_node_is_there(const struct weir_node *node);
struct weir_node *weir_node_named(struct weir_hub *hub, const char *name);
void weir_node_name(struct weir_node *node, const char *name);
struct weir_node *weir_node_of_session(struct weir_hub *hub, uint64_t session_id, bool is_client);
struct weir_node *weir_node_of_mux(struct weir_hub *hub, const uint8_t id[static WIRE_MUX_ID]);
/* Whether some first lane that this end dials is so far that the other end may have its session. */
bool weir_hub_expects_welcome(const struct weir_hub *hub);
/*
 * The other end has proven itself on the lane. Return: 0: it is used, now or later; 1: it is spare,
 * and the answer says so; -EALREADY the same lane is dialled by either end, and this is not the one
 * that stays; -EPROTO.
 */
int weir_lane_met_client(struct weir_lane *lane, struct wire_welcome *welcome);
int weir_lane_met_donor(struct weir_lane *lane);

/* lane.c: with hub->lock held. */
int weir_lane_new(struct weir_node *node, uint8_t class, struct rdma_cm_id *id,
		  struct weir_lane **lane);
void weir_lane_destroy(struct weir_lane *lane);
struct weir_lane *weir_lane_find(struct weir_hub *hub, uint32_t qpn);
/* Begins the handshake, as who has connected or as who was connected to. */
int weir_lane_hello(struct weir_lane *lane, bool is_client);
void weir_lane_fail(struct weir_lane *lane, int status);
/* Who waits for its proof does so no longer: it goes on all the same, until its deadline. */
void weir_lane_leave(struct weir_lane *lane);
/* A message of the handshake came, from whoever it is. */
void weir_lane_input(struct weir_lane *lane, const void *data, size_t length);
/* Who was welcomed on it knows: it carries connections, if it does not do so already. */
void weir_lane_heard(struct weir_lane *lane);
/* Whether there is one of that class that will be up, or will fail, without this end's doing. */
bool weir_lane_is_coming(const struct weir_node *node, uint8_t class);
/* Without hub->lock, by who serves: a work request of a handshake is in flight no longer. */
void weir_lane_said(struct weir_node *node, const struct ibv_wc *wc);

/*
 * worker.c: the thread of a node, and its work, once: @next_ns receives when somebody may send
 * again who may not yet. Return: whether there was anything to do. Context: who serves.
 */
void *weir_node_worker(void *node);
bool weir_node_work(struct weir_node *node, uint64_t now_ns, uint64_t *next_ns);

/*
 * serve.c. weir_node_begin(): the work is the caller's until weir_node_stop(), or false: somebody
 * is at it; afterwards he looks at the inbox. weir_node_serve(): does what there is to do, unless
 * somebody does; the caller has no lock, and a reference. weir_node_wake() wakes the worker.
 */
bool weir_node_begin(struct weir_node *node);
void weir_node_stop(struct weir_node *node);
void weir_node_serve(struct weir_node *node);
void weir_node_wake(struct weir_node *node);

/*
 * leave.c: with hub->lock held. weir_leave_input(): the other end has said @what. -EPROTO; -ENOMEM.
 * weir_leaves_look(): asks for the end of nodes that have had no connection for long enough, and
 * ends those for which it is agreed. Return: when it is to be called again, at the latest.
 */
int weir_leave_input(struct weir_lane *lane, enum wire_mux_type what);
uint64_t weir_leaves_look(struct weir_hub *hub, uint64_t now_ns);

/* stake.c: with hub->lock held. -ENOMEM. */
int weir_stake_take(struct weir_circuit *conn);
void weir_stake_give(struct weir_circuit *conn);
/* The connection is one that is asked for here: its party may be who holds the node. */
void weir_stake_asks(struct weir_circuit *conn);
/*
 * The worker's, without hub->lock. weir_stake_follow(): the connection is of its owner's party, as
 * that is now; if there is no memory for that, of the last one. weir_stake_idle(): it has nothing
 * to send, or may not. weir_stake_is_early(): whether it has to wait, and all of its stake, since
 * its party has sent so much. weir_stakes_pace(): who may send again has his turn. Return: when the
 * next may, or UINT64_MAX.
 */
void weir_stake_follow(struct weir_circuit *conn);
void weir_stake_idle(struct weir_circuit *conn);
bool weir_stake_is_early(struct weir_circuit *conn, uint64_t now_ns);
uint64_t weir_stakes_pace(struct weir_node *node, uint64_t now_ns);

#endif
