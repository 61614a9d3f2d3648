/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of a node that nobody uses. At either end it costs queue pairs and a thread; so once it
 * has had no connection for options.idle_ns, this end asks the other, on the lane of class 0:
 *
 *	LEAVE -> <- LEFT	there is none there either: nothing more is sent, and all ends
 *	LEAVE -> <- STAY	there is one, or is about to be: all is as before
 *	LEAVE -> <- LEAVE	both have asked, and take it for LEFT
 *
 * Who has asked lets nobody connect by that node before he knows; who has said LEFT, or has heard
 * it, never again. Who wants to connect waits so long, or dials anew: no OPEN comes to an end that
 * is gone. What was opened over there before LEAVE came is answered by STAY.
 *
 * The last FIN of a connection goes by another lane, and LEFT can overtake it. So who hears LEFT
 * has the queue pairs end when the last of his connections is over; and who says it leaves that to
 * him, for a while. Whose LEAVE is not answered in as long ends them alone: the other end is
 * stopped, or has lost its way. tests/model/leave.pml has all but that in every interleaving.
 */
#include <errno.h>

#include "lib/mux/local/local.h"

#define PATIENCE_NS WEIR_HANDSHAKE_NS /* of who has said LEFT, or LEAVE and hears nothing */

/* The mux's own reference is the only one. */
static bool is_deserted(const struct weir_node *node)
{
	return node->refs == 1;
}

static void node_left(struct weir_node *node, uint64_t part_ns)
{
	node->leave = WEIR_LEAVE_LEFT;
	node->part_ns = part_ns;
	pthread_cond_broadcast(&node->hub->changed);
	weir_fd_ring(node->hub->bell);
}

static int asked(struct weir_node *node)
{
	bool may_leave = is_deserted(node);
	int rc = weir_circuit_say(node, may_leave ? WIRE_MUX_LEFT : WIRE_MUX_STAY);

	if (!rc && may_leave)
		node_left(node, weir_now_ns() + PATIENCE_NS);
	return rc;
}

static void stays(struct weir_node *node)
{
	node->leave = WEIR_LEAVE_NONE;
	node->quiet_ns = 0;
	pthread_cond_broadcast(&node->hub->changed);
	weir_fd_ring(node->hub->bell);
}

int weir_leave_input(struct weir_lane *lane, enum wire_mux_type what)
{
	struct weir_node *node = lane->node;

	if (lane->class || node->leave == WEIR_LEAVE_LEFT)
		return -EPROTO;
	if (node->leave == WEIR_LEAVE_NONE)
		return what == WIRE_MUX_LEAVE ? asked(node) : -EPROTO;
	if (what == WIRE_MUX_STAY)
		stays(node);
	else
		node_left(node, 0);
	return 0;
}

static uint64_t ask(struct weir_node *node, uint64_t now_ns)
{
	node->leave = WEIR_LEAVE_ASKED;
	if (!weir_circuit_say(node, WIRE_MUX_LEAVE)) {
		node->part_ns = now_ns + PATIENCE_NS;
		return node->part_ns;
	}
	/* No memory, or the other end takes in nothing: later. */
	node->leave = WEIR_LEAVE_NONE;
	node->quiet_ns = now_ns;
	return weir_after_ns(now_ns, node->hub->options.idle_ns);
}

static uint64_t part(struct weir_node *node, uint64_t now_ns)
{
	if (node->part_ns > now_ns)
		return node->part_ns;
	weir_node_fail(node, -ECONNRESET);
	return UINT64_MAX;
}

/* Nobody is there, but who says that it leaves. */
static bool may_look(const struct weir_node *node)
{
	if (!node->lanes[0] || __atomic_load_n(&node->status, __ATOMIC_ACQUIRE))
		return false;
	return is_deserted(node) ||
	       (node->leave == WEIR_LEAVE_ASKED && node->refs == 1 + node->nr_refusals);
}

static uint64_t look(struct weir_node *node, uint64_t now_ns)
{
	uint64_t due_ns;

	if (node->leave != WEIR_LEAVE_NONE)
		return part(node, now_ns);
	if (!node->quiet_ns)
		node->quiet_ns = now_ns;
	due_ns = weir_after_ns(node->quiet_ns, node->hub->options.idle_ns);
	if (due_ns > now_ns)
		return due_ns;
	return ask(node, now_ns);
}

uint64_t weir_leaves_look(struct weir_hub *hub, uint64_t now_ns)
{
	uint64_t due_ns, next_ns = UINT64_MAX;
	struct weir_list *at;

	for (at = hub->nodes.next; at != &hub->nodes; at = at->next) {
		struct weir_node *node = weir_list_entry(at, struct weir_node, link);

		if (!may_look(node))
			continue;
		due_ns = look(node, now_ns);
		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}
