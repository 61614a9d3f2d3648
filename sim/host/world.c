/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Builds the machines of a run, connects them, and runs receiver threads where messages arrive. */
#include <errno.h>
#include <stdlib.h>

#include "sim/host/world.h"

#define RECV_BATCH 16

struct sim_connection {
	struct sim_connection *next;
	struct sim_qp near, far;
};

static int node_init(struct sim_node *node, struct sim_world *world)
{
	int rc = sim_host_init(&node->host, &world->clock, &world->settings->profile);

	if (!rc)
		rc = sim_nic_init(&node->nic, &node->host);
	if (!rc)
		rc = sim_device_open(&node->device, &node->nic);
	return rc ? rc : sim_cq_init(&node->recv_cq, NULL, SIM_RECVS);
}

static void node_fini(struct sim_node *node)
{
	if (node->has_receiver)
		sim_thread_fini(&node->receiver);
	sim_cq_fini(&node->recv_cq);
	sim_device_close(&node->device);
	sim_nic_fini(&node->nic);
	sim_host_fini(&node->host);
}

int sim_world_init(struct sim_world *world, const struct sim_settings *settings)
{
	uint32_t i;

	*world = (struct sim_world){ .settings = settings };
	sim_clock_init(&world->clock);
	world->nr_nodes = (uint32_t)(settings->clients + (settings->both ? 0 : settings->servers));
	world->nodes = calloc(world->nr_nodes, sizeof(*world->nodes));
	if (!world->nodes)
		return -ENOMEM;
	for (i = 0; i < world->nr_nodes; i++) {
		if (node_init(&world->nodes[i], world))
			return -ENOMEM;
		world->nodes[i].next_peer = i;
	}
	return 0;
}

void sim_world_fini(struct sim_world *world)
{
	uint32_t i;

	while (world->links) {
		struct sim_connection *link = world->links;

		world->links = link->next;
		sim_qp_fini(&link->near);
		sim_qp_fini(&link->far);
		free(link);
	}
	for (i = 0; world->nodes && i < world->nr_nodes; i++)
		node_fini(&world->nodes[i]);
	free(world->nodes);
	sim_clock_fini(&world->clock);
}

/* Receiver thread: takes messages and reposts a receive on each one's QP. */
static void post_receives(void *arg)
{
	struct sim_node *node = arg;
	struct sim_wc wcs[RECV_BATCH];
	uint32_t i, taken;

	for (;;) {
		sim_await_cq(&node->receiver, &node->recv_cq, SIM_NEVER);
		taken = sim_poll_cq(&node->receiver, &node->recv_cq, wcs, RECV_BATCH);
		for (i = 0; i < taken; i++) {
			sim_thread_run(&node->receiver, node->handle_ps);
			sim_post_recv(&node->receiver, wcs[i].qp, 1);
		}
	}
}

static int want_receiver(struct sim_node *node, const struct sim_load_settings *load)
{
	if (node->has_receiver)
		return 0;
	node->handle_ps = load->handle_ps;
	node->has_receiver =
		!sim_thread_init(&node->receiver, &node->host, -1, post_receives, node);
	return node->has_receiver ? 0 : -ENOMEM;
}

struct sim_node *sim_world_next_peer(struct sim_world *world, struct sim_node *node)
{
	const struct sim_settings *s = world->settings;

	if (!s->both)
		return &world->nodes[s->clients + node->next_peer++ % s->servers];
	do {
		node->next_peer = (node->next_peer + 1) % world->nr_nodes;
	} while (&world->nodes[node->next_peer] == node);
	return &world->nodes[node->next_peer];
}

struct sim_qp *sim_world_connect(struct sim_world *world, struct sim_node *node,
				 struct sim_node *peer, struct sim_cq *send_cq,
				 const struct sim_load_settings *load, uint32_t depth)
{
	bool receives = load->op == SIM_OP_SEND || load->op == SIM_OP_WRITE_IMM;
	struct sim_connection *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->next = world->links;
	world->links = link;
	if (sim_qp_init(&link->near, &node->nic, send_cq, &node->recv_cq, depth,
			(uint8_t)load->class) ||
	    sim_qp_init(&link->far, &peer->nic, NULL, &peer->recv_cq, 1, (uint8_t)load->class))
		return NULL;
	sim_qp_connect(&link->near, &link->far);
	if (receives && want_receiver(peer, load))
		return NULL;
	link->far.recvs = receives ? SIM_RECVS : 0;
	return &link->near;
}
