/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mux on simulated threads: many connections share few queue pairs, as in lib/mux and Avatar,
 * with the core's scheduler.
 *
 * A mux leads from one machine to another. It has a QP for each traffic class and one worker
 * thread. Only the worker posts, so neither the QPs nor the scheduler need a lock. Applications put
 * a connection with new messages into the worker's inbox. The worker sends its messages a segment a
 * turn, in the scheduler's order. An idle worker sleeps; the next application with news wakes it.
 *
 * At the peer, messages consume receives of a shared queue, which the peer's receiver thread
 * reposts.
 */
#ifndef WEIR_SIM_HOST_MUX_H
#define WEIR_SIM_HOST_MUX_H

#include "core/base/inbox.h"
#include "core/poll/poll.h"
#include "core/sched/sched.h"
#include "sim/host/world.h"

#define SIM_MUX_QP_DEPTH 256 /* capacity of a QP in WRs */
#define SIM_MUX_QP_CHAIN 16 /* WRs with one doorbell */

/* A WR in flight, in the order posted. */
struct sim_mux_wr {
	struct sim_mux_message *message;
	uint32_t bytes;
};

/**
 * struct sim_mux_qp - one QP
 * @qp: the near end
 * @posted, @first, @count: WRs in flight, a ring
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
 * struct sim_mux - connections from one machine to another
 * @node: the near machine
 * @settings: *kept*; of the load that started the mux
 * @sched: the scheduler; @bundles: by class, over all connections
 * @qps: QPs by class
 * @cq, @events: for all QPs
 * @inbox: connections with news
 * @worker: the posting thread
 * @is_asleep: the worker needs a wake-up
 * @poll, @idle_time: adaptive polling
 * @sge: memory of the messages
 */
struct sim_mux {
	struct sim_node *node;
	const struct sim_load_settings *settings;
	struct weir_sched sched;
	struct weir_bundle bundles[SIM_CLASSES];
	struct sim_mux_qp qps[SIM_CLASSES];
	struct sim_cq cq;
	struct sim_channel events;
	struct weir_inbox inbox;
	struct sim_thread worker;
	bool is_asleep;
	struct weir_poll poll;
	struct weir_idle_time idle_time;
	struct sim_sge sge;
};

/**
 * struct sim_mux_conn - a connection
 * @mux: the mux
 * @flow: the scheduler's
 * @news: in the inbox, while @has_news
 * @messages: not fully posted, by link
 */
struct sim_mux_conn {
	struct sim_mux *mux;
	struct weir_flow flow;
	struct weir_inbox_node news;
	bool has_news;
	struct weir_list messages;
};

/**
 * struct sim_mux_message - a message; belongs to the caller except while in flight
 * @conn: the connection
 * @link: in @conn's messages
 * @bytes: length, at least 1
 * @posted, @sent: bytes posted, and bytes completed
 * @done: called by the worker when all bytes are sent; takes no time. Returns whether a thread was
 *	woken; the worker pays for waking
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
 * @world, @node, @settings: *kept*; the settings configure the scheduler's classes
 *
 * Return: 0, -ENOMEM, or -EINVAL: the scheduler refuses the configuration.
 */
int sim_mux_init(struct sim_mux *mux, struct sim_world *world, struct sim_node *node,
		 const struct sim_load_settings *settings);

/* Frees all memory of the mux. The clock must not run afterwards. */
void sim_mux_fini(struct sim_mux *mux);

/* A connection of @class; both *kept*. */
void sim_mux_conn_init(struct sim_mux_conn *conn, struct sim_mux *mux, uint8_t class);

/* Sends a message with conn, bytes and done set; *kept until* done. */
void sim_mux_send(struct sim_thread *self, struct sim_mux_message *message);

#endif
