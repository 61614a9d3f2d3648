/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The machines of a run, how they are connected, and what is counted of them. */
#ifndef WEIR_SIM_HOST_WORLD_H
#define WEIR_SIM_HOST_WORLD_H

#include "sim/run/settings.h"
#include "sim/nic/verbs.h"

#define SIM_RECVS 4096 /* receives that a server has posted */

/**
 * struct sim_node - one machine
 * @mux: what its connections share, once a load has begun one, or NULL
 * @host, @nic, @device: of it
 * @recv_cq: what comes in, of all its QPs
 * @receiver: takes it, and posts receives again
 * @has_receiver: there is one
 * @handle_ps: CPU for each
 * @next_peer: whom its next connection goes to
 */
struct sim_node {
	struct sim_mux *mux;
	struct sim_host host;
	struct sim_nic nic;
	struct sim_device device;
	struct sim_cq recv_cq;
	struct sim_thread receiver;
	bool has_receiver;
	uint64_t handle_ps;
	uint32_t next_peer;
};

/**
 * struct sim_world - all of a run
 * @settings: kept
 * @clock: the time of all
 * @nodes, @nr_nodes: clients first, then servers
 * @links: the connections, newest first
 */
struct sim_world {
	const struct sim_settings *settings;
	struct sim_clock clock;
	struct sim_node *nodes;
	uint32_t nr_nodes;
	struct sim_connection *links;
};

/* Machines without connections and threads. Return: 0, or -ENOMEM. */
int sim_world_init(struct sim_world *world, const struct sim_settings *settings);

/* Frees what it holds; threads on it were finished before. */
void sim_world_fini(struct sim_world *world);

/* Whom a client's next connection goes to: each server in turn. */
struct sim_node *sim_world_next_peer(struct sim_world *world, struct sim_node *node);

/**
 * sim_world_connect() - a connection
 * @world: the machines
 * @node, @peer: the client, and the server
 * @send_cq: where completions go
 * @load: says the traffic class, and whether messages need receives
 * @depth: of the send queue
 *
 * Return: the client's end, which lives as long as the world, or NULL: no memory.
 */
struct sim_qp *sim_world_connect(struct sim_world *world, struct sim_node *node,
				 struct sim_node *peer, struct sim_cq *send_cq,
				 const struct sim_load_settings *load, uint32_t depth);

#endif
