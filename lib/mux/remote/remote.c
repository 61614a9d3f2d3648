/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A node, from the first word with another mux to the end. One QP that breaks is the end of all
 * that goes to that mux: connections of a class would not outlive those of another for long.
 *
 * It ends in this order: somebody finds it broken; the poller moves its QPs to error, so that all
 * that is posted completes; the worker waits for that, and lets go of the connections; the
 * poller destroys the QPs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/mux/local/local.h"
#include "lib/base/thread.h"

static int queues_open(struct weir_node *node)
{
	struct weir_hub *hub = node->hub;
	int depth = WEIR_LANE_DEPTH + WEIR_LANE_CONTROLS + WEIR_LANE_HANDSHAKES;

	node->completions = ibv_create_comp_channel(hub->device);
	if (!node->completions)
		return -ENOMEM;
	fcntl(node->completions->fd, F_SETFL, O_NONBLOCK);
	node->cq = ibv_create_cq(hub->device, depth * (int)hub->options.nr_classes, node,
				 node->completions, 0);
	node->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return node->cq && node->bell >= 0 ? 0 : -ENOMEM;
}

static void queues_close(struct weir_node *node)
{
	if (node->cq) {
		ibv_ack_cq_events(node->cq, node->cq_events);
		ibv_destroy_cq(node->cq);
		node->cq = NULL;
	}
	if (node->completions)
		ibv_destroy_comp_channel(node->completions);
	node->completions = NULL;
}

int weir_node_new(struct weir_hub *hub, const char *name, struct weir_node **out)
{
	struct weir_node *node = calloc(1, sizeof(*node));
	int rc;

	if (!node)
		return -ENOMEM;
	node->hub = hub;
	node->refs = 1;
	node->bell = -1;
	snprintf(node->name, sizeof(node->name), "%s", name);
	weir_list_init(&node->link);
	weir_list_init(&node->conns);
	weir_list_init(&node->stakes);
	weir_list_init(&node->askers);
	weir_list_init(&node->control_waits);
	weir_list_init(&node->paced);
	weir_inbox_init(&node->inbox);
	rc = weir_sched_init(&node->sched, hub->configs, (uint8_t)hub->options.nr_classes,
			     hub->options.low_bytes_max);
	if (!rc)
		rc = queues_open(node);
	if (rc) {
		queues_close(node);
		weir_node_put(node);
		return rc;
	}
	weir_list_add_tail(&hub->nodes, &node->link);
	*out = node;
	return 0;
}

int weir_node_start(struct weir_node *node)
{
	int rc = weir_thread_create(&node->worker, "weir-worker", weir_node_worker, node, NULL);

	node->has_worker = !rc;
	return rc;
}

void weir_node_fail(struct weir_node *node, int status)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&node->status, &none, status, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return;
	weir_node_wake(node);
	weir_fd_ring(node->hub->bell);
}

void weir_node_put(struct weir_node *node)
{
	/* Nobody is there any more: the poller is to look when that was. */
	if (--node->refs == 1)
		weir_fd_ring(node->hub->bell);
	if (node->refs)
		return;
	if (node->bell >= 0)
		close(node->bell);
	free(node);
}

void weir_node_uncharge(struct weir_node *node)
{
	if (node->party)
		node->party->nr_nodes--;
	node->party = NULL;
}

/* Nobody waits for those: who dials a node himself sees that it is lost. */
static void orphans_fail(struct weir_node *node)
{
	struct weir_list *at;

	for (at = node->hub->lanes.next; at != &node->hub->lanes; at = at->next) {
		struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		if (lane->node == node && lane->is_orphan && lane->state == WEIR_LANE_PROVING)
			weir_lane_fail(lane, -ECONNRESET);
	}
}

/* So that what is posted completes, and the other end hears of it. */
void weir_lanes_break(struct weir_node *node)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	unsigned int i;

	orphans_fail(node);
	for (i = 0; i < node->hub->options.nr_classes; i++) {
		struct weir_lane *lane = node->lanes[i];

		if (!lane || lane->state == WEIR_LANE_FAILED)
			continue;
		lane->state = WEIR_LANE_FAILED;
		ibv_modify_qp(lane->id->qp, &error, IBV_QP_STATE);
		rdma_disconnect(lane->id);
	}
}

/* Also those that were to be of it, and are not proven yet. */
static void lanes_destroy(struct weir_node *node)
{
	struct weir_hub *hub = node->hub;
	struct weir_list *at;

	for (at = hub->lanes.next; at != &hub->lanes;) {
		struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		at = at->next;
		if (lane->node == node)
			weir_lane_destroy(lane);
	}
}

static void node_end(struct weir_node *node)
{
	if (node->has_worker)
		pthread_join(node->worker, NULL);
	lanes_destroy(node);
	queues_close(node);
	weir_node_uncharge(node);
	weir_list_del(&node->link);
	weir_node_put(node);
}

/* A node that failed; or one to which nobody came: it was to be connected to, and was not. */
static void node_reap(struct weir_node *node)
{
	if (!__atomic_load_n(&node->status, __ATOMIC_ACQUIRE))
		return;
	weir_lanes_break(node);
	if (node->is_dialing || (node->has_worker && !node->is_over))
		return;
	node_end(node);
}

/* Lanes that were not proven; those of an application's thread are its own. */
static void lanes_reap(struct weir_hub *hub)
{
	struct weir_list *at = hub->lanes.next;

	while (at != &hub->lanes) {
		struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		at = at->next;
		if (lane->state == WEIR_LANE_FAILED && (!lane->cm || lane->is_orphan) &&
		    lane->node->lanes[lane->class] != lane)
			weir_lane_destroy(lane);
	}
}

void weir_nodes_reap(struct weir_hub *hub)
{
	struct weir_list *at;

	lanes_reap(hub);
	for (at = hub->nodes.next; at != &hub->nodes;) {
		struct weir_node *node = weir_list_entry(at, struct weir_node, link);

		at = at->next;
		node_reap(node);
	}
}
