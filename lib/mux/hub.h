/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mux from the inside.
 *
 * hub		one of a process: device, SRQ and CQ of what arrives, its poller
 * node		another mux, as this one knows it: one QP a class, the worker that posts on them
 * lane		one of these QPs
 * circuit	a connection: two rings of bytes, and a flow of its node's scheduler
 * stake	what owners of a party have of a node's scheduler in a class: a bundle of flows
 * offer	a service that somebody listens for
 * owner	whose circuits and offers they are: this program, or a tenant of weir share
 *
 * Threads. The poller takes in all that arrives, drives handshakes, and ends nodes. A node's
 * worker alone posts on its lanes and knows its scheduler. Applications' threads touch a
 * connection's rings, and leave it in the worker's inbox when there is news.
 *
 * hub->lock guards the tables, the lists, and the life of everything; what is touched without it
 * says so. The poller holds it while it deals with a batch of what has arrived, a worker only
 * to let go of a connection.
 *
 * A circuit is gone when three have let go of it: the application (is_closed), the other end,
 * whose FIN is the last that it sends (is_finished), and the worker (is_detached), which does
 * so once its own FIN is sent, and after which nobody leaves it in the inbox.
 */
#ifndef WEIR_LIB_MUX_HUB_H
#define WEIR_LIB_MUX_HUB_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <weir/mux.h>

#include "core/inbox.h"
#include "core/list.h"
#include "core/sched.h"
#include "lib/address.h"
#include "lib/handshake.h"
#include "lib/mux/handle.h"
#include "lib/mux/rate.h"
#include "wire/mux.h"

#define WEIR_LANE_DEPTH 256 /* WRs of streams on a lane */
#define WEIR_LANE_CONTROLS 64 /* control messages besides */
#define WEIR_LANE_HANDSHAKES 3 /* and those of the handshake */
#define WEIR_LANE_CHAIN 16 /* WRs with one doorbell */
#define WEIR_UNPROVEN_LANES_MAX 64
#define WEIR_REFUSALS_MAX 1024 /* to be sent, of all nodes */
#define WEIR_GRANTS_MAX 16 /* of a connection, either way */
#define WEIR_READS_MAX 16 /* of a lane in flight */
#define WEIR_CHUNK_CONNS 16 /* connections whose rings are mapped and registered together */

/* What the worker is to send for a connection: bits. */
#define WEIR_CHORE_OPEN 1u
#define WEIR_CHORE_ACCEPT 2u
#define WEIR_CHORE_REFUSE 4u
#define WEIR_CHORE_CREDIT 8u
#define WEIR_CHORE_GRANTS 16u

/* Counted by many threads, relaxed. */
struct weir_mux_counts {
	_Atomic uint64_t work_requests, doorbells, bytes_sent, bytes_received, credits, sleeps;
	_Atomic uint64_t ahead_bytes_max, waited_ns;
};

/**
 * struct weir_owner - whose
 * @link: in hub->owners
 * @chunks: those with room first; @plots
 * @party: owners of the same have one share between them; at first he is one of his own
 * @weight: of all connections of his party together, against other parties'; any thread
 * @nr_chunks: counted from the first, and so their numbers
 * @is_shared: his rings are memfds
 * @rate: what all his connections may send
 *
 * hub->lock.
 */
struct weir_owner {
	struct weir_list link;
	struct weir_hub *hub;
	struct weir_list chunks, plots;
	uint32_t last_plot;
	uint64_t bytes, bytes_max; /* of both */
	uint64_t party;
	unsigned int nr_chunks, nr_conns, nr_conns_max, weight;
	bool is_shared;
	struct weir_rate rate;
	struct weir_mux_counts counts;
};

/*
 * Memory of WEIR_CHUNK_CONNS connections: rings out first, which the device reads, then rings in,
 * then the doors.
 */
struct weir_chunk {
	struct weir_list link;
	unsigned int number; /* among its owner's */
	int fd; /* the memfd, or -1 */
	char *base;
	size_t length;
	struct ibv_mr *mr; /* of the rings out */
	uint32_t taken; /* bit i: connection i's are */
};

/* A region of the application's. @refs: grants of it, and orders to or from it. hub->lock. */
struct weir_plot {
	struct weir_list link;
	struct weir_owner *owner;
	uint32_t number;
	unsigned int refs;
	int fd; /* the memfd, or -1 */
	char *base;
	size_t length;
	struct ibv_mr *mr;
};

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

/*
 * An order that has been taken: what is left of it to be posted, and what is in flight. Of the
 * worker. @plot: NULL: there is none.
 */
struct weir_errand {
	struct weir_plot *plot;
	struct weir_reach *reach;
	bool is_read;
	int status;
	uint64_t local, remote, left;
	uint32_t wrs;
};

enum weir_lane_state { WEIR_LANE_PROVING, WEIR_LANE_UP, WEIR_LANE_FAILED };

/* A WR of a lane, until its completion is seen; in the order posted. */
struct weir_posted {
	struct weir_circuit *conn;
	uint32_t bytes;
	bool is_control, is_errand;
};

/**
 * struct weir_stake - what a party's connections to a node have in a class, together
 * @link: in node->stakes
 * @refs: connections; hub->lock
 * @bundle: the worker's
 */
struct weir_stake {
	struct weir_list link;
	uint64_t party;
	unsigned int refs;
	struct weir_bundle bundle;
};

/**
 * struct weir_lane - one QP
 * @link: in hub->lanes
 * @id: the connection manager's; its context is this
 * @cm: its own event channel, where this end has connected; NULL where it was connected to
 * @state, @status: hub->lock; @status says why it failed
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
	struct weir_handshake handshake;
	uint64_t deadline_ns;
	bool is_counted; /* among the unproven */

	struct wire_mux *controls;
	struct ibv_mr *mr;

	struct weir_posted posted[WEIR_LANE_DEPTH + WEIR_LANE_CONTROLS];
	unsigned int first, count, nr_controls, next_control, nr_handshakes;
	struct ibv_send_wr chain[WEIR_LANE_CHAIN];
	struct ibv_sge sges[WEIR_LANE_CHAIN];
	unsigned int nr_chain;
};

/**
 * struct weir_node - another mux
 * @link: in hub->nodes
 * @name: as connected to; or where it connected from
 * @session_id: names it to further lanes
 * @refs: connections that know it, and one of the mux's; hub->lock
 * @lanes: by class; NULL where there is none yet. Set once with hub->lock held, and read without
 *	it after an acquire
 * @stakes: of parties who have connections; hub->lock
 * @dialing: an application's thread connects
 * @status: why it is lost, or 0; any thread
 * @inbox, @asleep, @bell: how the worker gets news
 * @control_waits: connections with something to say, for which there was no room; @paced: those
 *	that have something to send, and may not yet, since their owner has sent so much; the worker's
 */
struct weir_node {
	struct weir_list link;
	struct weir_hub *hub;
	char name[WEIR_ADDRESS_MAX];
	uint64_t session_id;
	unsigned int refs;
	struct weir_lane *lanes[WEIR_MUX_CLASSES_MAX];
	bool is_ours, is_dialing, has_worker, is_over;
	int status;
	struct weir_list conns, stakes;

	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	pthread_t worker;
	struct weir_inbox inbox;
	uint32_t asleep;
	int bell;

	struct weir_sched sched;
	struct weir_list control_waits, paced;
	uint32_t posted; /* WRs whose completion has not been seen, over all lanes */
	unsigned int cq_events;
};

/**
 * struct weir_circuit - a connection
 * @app: the application's end, where it is in this process
 * @owner: whose
 * @id, @remote_id: ours, and, once it is open, theirs
 * @status: 0, or why it no longer works; any thread
 * @granted: the peer allows the stream up to here; written by the poller, read by the worker
 * @received: of the stream, so far; written by the poller, read by the worker
 * @told: what the peer has been told that was read; written by the worker, read by all
 * @chores, @has_news: any thread
 * @fd, @room_fd: rung when a ring is told and somebody waits so; -1: nobody does; any thread
 * @nr: what a tenant calls it
 * @slot, @nr_slots: of its chunk; NULL: a refusal, which has no rings and no @stake
 * @leaving: as @out; its position is what has been sent, completions seen
 */
struct weir_circuit {
	struct weir_conn app;
	struct weir_hub *hub;
	struct weir_owner *owner;
	struct weir_node *node;
	struct weir_stake *stake;
	struct weir_list node_link, offer_link;
	uint8_t class;
	uint32_t id, remote_id, service;
	bool is_open, is_closed, is_finished, is_detached; /* hub->lock; is_* also read without */
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

	/* the worker's */
	struct weir_inbox_node news;
	uint32_t has_news, chores;
	uint64_t told;
	struct weir_ring_end leaving;
	uint64_t posted; /* of the stream */
	uint32_t todo; /* chores taken, and not done for want of room */
	struct weir_flow flow;
	struct weir_list wait_link, pace_link;
	uint32_t controls; /* in flight */
	bool fin_sent;
	struct weir_errand errand;
	bool errand_was_last; /* of its turns: those of an errand and of the stream alternate */
	uint64_t waits_ns; /* since when what it has to send waits for a turn */
	uint64_t sent; /* bytes, for who looks; written by the worker, read by all */
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

/**
 * struct weir_hub - a process's end
 * @self: the program's own connections
 * @options: with the defaults filled in
 * @table: connections by index, the lower half of an id; @generations: the upper half of the
 *	last that had that place, so that an id is not met again soon
 * @changed: broadcast when a lane or a connection has become something else
 * @recv_memory: the SRQ's buffers, options.buffers of WIRE_PIECE_MAX bytes
 * @recv_wrs, @nr_recv_wrs: buffers that are free and not posted yet; the poller's
 */
struct weir_hub {
	struct weir_mux mux;
	struct weir_owner self;
	struct weir_mux_options options;
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	struct weir_sched_config configs[WEIR_MUX_CLASSES_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list nodes, lanes, offers, owners;
	struct weir_circuit **table;
	uint16_t *generations;
	unsigned int nr_conns, next_index, nr_refusals, nr_unproven;
	bool is_stopping;

	char address[WEIR_ADDRESS_MAX];
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *listener;
	struct ibv_srq *srq;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	unsigned int cq_events;
	char *recv_memory;
	struct ibv_mr *recv_mr;
	struct ibv_recv_wr *recv_wrs;
	struct ibv_sge *recv_sges;
	unsigned int nr_recv_wrs;
	uint8_t reads_max;

	int epoll, bell;
	pthread_t poller;
	bool has_poller;
	struct weir_mux_counts counts;
};

static inline void weir_count_most(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t old = atomic_load_explicit(most, memory_order_relaxed);

	while (old < value && !atomic_compare_exchange_weak_explicit(
				      most, &old, value, memory_order_relaxed,
				      memory_order_relaxed))
		;
}

static inline void weir_count(_Atomic uint64_t *counter, uint64_t by)
{
	atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/*
 * hub.c. @options: as for weir_mux_open().
 * weir_hub_close() as weir_mux_close(); owners but its own are gone.
 */
int weir_hub_open(const struct weir_mux_options *options, struct weir_hub **hub,
		  struct weir_error *error);
void weir_hub_close(struct weir_hub *hub);
/* Cuts all off, and lets nobody in; once no connection is left to an owner he may go. */
void weir_hub_stop(struct weir_hub *hub);
void weir_hub_info(struct weir_hub *hub, struct weir_mux_info *info);
/* Waits until what has been closed has been sent, of @owner; up to the timeout. */
void weir_hub_linger(struct weir_hub *hub, const struct weir_owner *owner);

/* device.c: the verbs objects of a mux. */
int weir_hub_device_open(struct weir_hub *hub, struct weir_error *error);
void weir_hub_device_close(struct weir_hub *hub);

/*
 * chunk.c: rings of a connection, which are empty then. With hub->lock held. @slots: how many
 * times options.ring_bytes they are long, a power of two up to WEIR_CHUNK_CONNS.
 */
int weir_chunk_take(struct weir_owner *owner, struct weir_circuit *conn, unsigned int slots);
void weir_chunk_give(struct weir_circuit *conn);
/* Memory that a tenant maps too, if the owner has one: @fd; -1: none. NULL: none is left. */
void *weir_owner_map(const struct weir_owner *owner, size_t length, int *fd);
/* How a chunk with slots of @size bytes lies in memory, and a ring of @length; without lock. */
size_t weir_chunk_length(uint32_t size);
struct weir_door *weir_chunk_door(char *base, unsigned int slot, uint32_t size);
void weir_chunk_ends(char *base, unsigned int slot, uint32_t size, uint32_t length,
		     struct weir_ring_end *out, struct weir_ring_end *in);

/* plot.c: regions, with hub->lock held. Free: nobody refers to it. */
int weir_plot_new(struct weir_owner *owner, size_t length, struct weir_plot **plot);
void weir_plot_free(struct weir_plot *plot);
struct weir_plot *weir_plot_find(const struct weir_owner *owner, uint32_t number);
/* Without it: as weir_mux_region_close(). -EINVAL: there is no such region. */
int weir_plot_close(struct weir_owner *owner, uint32_t number);

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
 * errand.c: the worker's. weir_errand_take() looks for an order; weir_errand_end(): no more of it is
 * posted; weir_errand_done(): a WR of it is in flight no longer.
 */
void weir_errand_take(struct weir_circuit *conn);
void weir_errand_end(struct weir_circuit *conn, int status);
void weir_errand_done(struct weir_circuit *conn);
/* With hub->lock held: nothing of it is in flight. */
void weir_errand_drop(struct weir_circuit *conn, int status);

/*
 * And whose they are: an owner without connections. weir_owner_fini() wants him to have none.
 * With hub->lock held, but for that of the hub's own.
 */
void weir_owner_init(struct weir_owner *owner, struct weir_hub *hub);
void weir_owner_fini(struct weir_owner *owner);
/* From now on he has this weight, and this ceiling; 0: none. */
void weir_owner_limit(struct weir_owner *owner, unsigned int weight, uint64_t bytes_s);
/* Memory for another process to map: sealed, so that it stays as long as it is. -ENOMEM. */
int weir_memfd(const char *name, size_t length);

/* poller.c: the thread. */
void *weir_hub_poller(void *hub);

/*
 * node.c: all with hub->lock held, but weir_node_fail(), which takes none.
 * weir_node_fail() breaks a node for good: its worker sees to the rest.
 */
int weir_node_new(struct weir_hub *hub, const char *name, struct weir_node **node);
int weir_node_start(struct weir_node *node);
void weir_node_fail(struct weir_node *node, int status);
void weir_node_put(struct weir_node *node);
/* Ends what is over: joins its worker, destroys its QPs. The poller's. */
void weir_nodes_reap(struct weir_hub *hub);

/* lane.c: with hub->lock held. */
int weir_lane_new(struct weir_node *node, uint8_t class, struct rdma_cm_id *id,
		  struct weir_lane **lane);
void weir_lane_destroy(struct weir_lane *lane);
struct weir_lane *weir_lane_find(struct weir_hub *hub, uint32_t qpn);
/* Begins the handshake, as who has connected or as who was connected to. */
int weir_lane_hello(struct weir_lane *lane, bool is_client);
void weir_lane_fail(struct weir_lane *lane, int status);
/* A message of the handshake came, from whoever it is. */
void weir_lane_input(struct weir_lane *lane, const void *data, size_t length);

/* admit.c: the connection manager has something to say. The poller's, with hub->lock held. */
void weir_hub_cm_events(struct weir_hub *hub, struct rdma_event_channel *cm);

/* dial.c: finds or makes a node with a lane of @class. Without hub->lock; on success the node is
 * referenced for the caller. */
int weir_hub_dial(struct weir_hub *hub, const char *peer, uint8_t class, struct weir_node **node,
		  struct weir_error *error);

/* control.c: a control message came by @lane. The poller's, with hub->lock held. -EPROTO. */
int weir_control_input(struct weir_lane *lane, const void *data, size_t length);

/* worker.c: the thread of a node, and how it gets news of a connection. */
void *weir_node_worker(void *node);
void weir_node_wake(struct weir_node *node);
void weir_circuit_news(struct weir_circuit *conn);

/* stake.c: with hub->lock held. */
int weir_stake_take(struct weir_circuit *conn);
void weir_stake_give(struct weir_circuit *conn);

/*
 * circuit.c: with hub->lock held, but weir_circuit_fail(), which takes none.
 * @window: what the peer offers, whose rings are as long as ours then; 0: we are the first to say.
 */
int weir_circuit_new(struct weir_owner *owner, struct weir_node *node, uint8_t class,
		     uint16_t weight, uint32_t window, struct weir_circuit **conn);
/* Tells the opener no. -EPROTO: too many have not been sent yet. */
int weir_circuit_refuse(struct weir_node *node, uint8_t class, uint32_t remote_id, int status);
struct weir_circuit *weir_circuit_find(struct weir_hub *hub, uint32_t id);
void weir_circuit_granted(struct weir_circuit *conn, uint32_t remote_id, uint32_t window);
void weir_circuit_fail(struct weir_circuit *conn, int status);
/* The other end sends no more. */
void weir_circuit_finished(struct weir_circuit *conn);
void weir_circuit_tell(struct weir_circuit *conn);
void weir_ring_tell(struct weir_ring *ring, const int *fd);
/* Frees it if all have let go of it. */
void weir_circuit_release(struct weir_circuit *conn);
/* As weir_conn_close(). */
void weir_circuit_shut(struct weir_circuit *conn);
/* The same, and what has not been sent is not sent any more. */
void weir_circuit_abort(struct weir_circuit *conn);

/*
 * offer.c: connecting, and offering a service, on behalf of @owner; without hub->lock. As the
 * functions of weir/mux.h; weir_offer_open() with the descriptor that is rung when somebody has
 * connected, which is the offer's from then on.
 */
int weir_circuit_connect(struct weir_owner *owner, const char *peer, uint32_t service,
			 const struct weir_conn_options *options, struct weir_circuit **conn,
			 struct weir_error *error);
int weir_offer_open(struct weir_owner *owner, uint32_t service, unsigned int backlog, int fd,
		    struct weir_offer **offer);
int weir_offer_accept(struct weir_offer *offer, struct weir_circuit **conn);
void weir_offer_close(struct weir_offer *offer);
/* With hub->lock held. Nobody waits to be accepted. */
void weir_offer_free(struct weir_offer *offer);

/* local.c: what a hub's own program does with it. */
extern const struct weir_mux_host weir_local_host;

#endif
