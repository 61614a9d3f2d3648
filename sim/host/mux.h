/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mux on simulated threads: connections that share few queue pairs, as lib/mux and Avatar have
 * them, with the scheduler that ships.
 *
 * A mux leads from one machine to another. It has a QP for each traffic class, and a worker, who
 * alone posts, so that neither the QPs nor the scheduler need a lock. Applications leave a
 * connection with news in the worker's inbox; what it has to send goes as the scheduler says, a
 * segment a turn. The worker sleeps when there has been nothing to do for a while; who leaves
 * news then wakes it.
 *
 * At the other end messages take receives of one queue, which that machine's receiver gives back.
 */
#ifndef WEIR_SIM_HOST_MUX_H
#define WEIR_SIM_HOST_MUX_H

#include "core/base/inbox.h"
#include "core/poll/poll.h"
#include "core/sched/sched.h"
#include "sim/host/world.h"

#define SIM_MUX_QP_DEPTH 256 /* WRs on a QP */
#define SIM_MUX_QP_CHAIN 16 /* WRs with one doorbell */

/* A WR until its completion is seen; in the order posted. */
struct sim_mux_wr {
	struct sim_mux_message *message;
	uint32_t bytes;
};

/**
 * struct sim_mux_qp - one QP
 * @qp: its near end
 * @posted, @first, @count: WRs on it, a ring
 * @chain, @nr_chain: WRs that wait for the doorbell
 */
struct sim_mux_qp {
	struct sim_qp *qp;
	struct sim_mux_wr posted[SIM_MUX_QP_DEPTH];
	uint32_t first, count;
	struct sim_wr chain[SIM_MUX_QP_CHAIN];
	uint32_t nr_chain;
};

/**
 * struct sim_mux - connections of one machine to another
 * @node: from where
 * @settings: kept; of who began it
 * @sched: whose turn it is; @bundles: by class, of all its connections
 * @lanes: by class
 * @cq, @events: of all lanes
 * @inbox: connections with news
 * @worker: who posts
 * @is_asleep: it is to be woken
 * @poll, @gaps: when it sleeps
 * @sge: where messages lie
 */
struct sim_mux {
	struct sim_node *node;
	const struct sim_load_settings *settings;
	struct weir_sched sched;
	struct weir_bundle bundles[SIM_CLASSES];
	struct sim_mux_qp lanes[SIM_CLASSES];
	struct sim_cq cq;
	struct sim_channel events;
	struct weir_inbox inbox;
	struct sim_thread worker;
	bool is_asleep;
	struct weir_poll poll;
	struct weir_idle_time gaps;
	struct sim_sge sge;
};

/**
 * struct sim_mux_conn - a connection
 * @mux: where
 * @flow: the scheduler's
 * @news: in the inbox, when @has_news
 * @messages: not all posted yet, by link
 */
struct sim_mux_conn {
	struct sim_mux *mux;
	struct weir_flow flow;
	struct weir_inbox_node news;
	bool has_news;
	struct weir_list messages;
};

/**
 * struct sim_mux_message - a message; the caller's but while it is under way
 * @conn: on which
 * @link: among those of @conn
 * @bytes: of it, at least 1
 * @posted, @sent: bytes that were posted, and of which the completion was seen
 * @done: called when all is sent, by the worker; takes no time. Returns whether it woke a thread,
 *	which costs the worker
 */
struct sim_mux_message {
	struct sim_mux_conn *conn;
	struct weir_list link;
	uint64_t bytes;
	uint64_t posted, sent;
	bool (*done)(struct sim_mux_message *message);
};

/**
 * sim_mux_init() - a mux from @node to its next peer, and its worker
 * @mux: *kept* until sim_mux_fini()
 * @world, @node, @settings: *kept*; the settings say how the classes share
 *
 * Return: 0, -ENOMEM, or -EINVAL: what the scheduler does not take.
 */
int sim_mux_init(struct sim_mux *mux, struct sim_world *world, struct sim_node *node,
		 const struct sim_load_settings *settings);

/* Frees what it holds; the clock runs no more. */
void sim_mux_fini(struct sim_mux *mux);

/* A connection of @class; both *kept*. */
void sim_mux_conn_init(struct sim_mux_conn *conn, struct sim_mux *mux, uint8_t class);

/* Sends a message, whose conn, bytes and done are set; *kept until* done. */
void sim_mux_send(struct sim_thread *self, struct sim_mux_message *message);

#endif
