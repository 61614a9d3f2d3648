/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The machines of a run and their connections. */
#ifndef WEIR_SIM_HOST_WORLD_H
#define WEIR_SIM_HOST_WORLD_H

#include "sim/run/settings.h"
#include "sim/nic/verbs.h"

#define SIM_RECVS 4096 /* receives posted by a server */

/**
 * struct sim_node - one machine
 * @mux: the mux of its connections, once a load has started one, or NULL
 * @host, @nic, @device: of this machine
 * @recv_cq: completions of receives on all QPs
 * @receiver: takes the receives' completions and reposts receives
 * @has_receiver: @receiver runs
 * @handle_ps: CPU for each message
 * @next_peer: index of the next connection's peer
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
 * struct sim_world - all machines of a run
 * @settings: *kept*
 * @clock: the time
 * @nodes, @nr_nodes: clients first, then servers
 * @links: connections, newest first
 */
struct sim_world {
	const struct sim_settings *settings;
	struct sim_clock clock;
	struct sim_node *nodes;
	uint32_t nr_nodes;
	struct sim_connection *links;
};

/* Initialises machines without connections and threads. Return: 0, or -ENOMEM. */
int sim_world_init(struct sim_world *world, const struct sim_settings *settings);

/* Frees all memory. The caller has finished the threads. */
void sim_world_fini(struct sim_world *world);

/* Peer of a client's next connection: the servers in turn. */
struct sim_node *sim_world_next_peer(struct sim_world *world, struct sim_node *node);

/**
 * sim_world_connect() - connect two machines
 * @world: the machines
 * @node, @peer: the client, and the server
 * @send_cq: for the client's completions
 * @load: gives the traffic class, and whether messages need receives
 * @depth: of the send queue
 *
 * Return: the client's end, which lives as long as the world, or NULL: no memory.
 */
struct sim_qp *sim_world_connect(struct sim_world *world, struct sim_node *node,
				 struct sim_node *peer, struct sim_cq *send_cq,
				 const struct sim_load_settings *load, uint32_t depth);

#endif
