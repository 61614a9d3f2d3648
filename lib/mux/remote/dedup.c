/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which mux is which. An address is not a mux: it may have several, and it connects to us as well
 * as we to it. What is fair holds within a node, so two muxes have one between them. Each mux has a
 * random id, which it tells in the handshake, under the proof of the key: nobody without it speaks
 * for another.
 *
 * The first lane decides, and first who was connected to. If he has a node with that mux, the lane
 * is spare, and he names the session of that node: the client finds the node by that, and lets the
 * lane go. If the client has no such node, it was lost, which the other end has not seen: the
 * client dials again, and names the session as ended. It may be that he does not have it yet, since
 * he is to be welcomed on that lane only now: he waits for that first.
 *
 * When both dial at once, both may be welcomed before they are told so. Then each has been
 * connected to by who welcomes him: the lane that was dialled by the mux with the lower id stays,
 * and the other lets its go. It has not been used: who dialled it knows first. Where something had
 * come by the node that would stay, before this end proved itself, the other end had it by then,
 * and would have known it: it has lost it. tests/model/meet.pml has all that in every interleaving.
 *
 * Further lanes of a node either end dials, too, and where both do so at once, that of the lower id
 * stays.
 *
 * A mux that connects to itself has two nodes, as two muxes have, which are of one session: that
 * which dialled, and that which was dialled.
 *
 * Who has the key and claims another's id is taken for that mux. He ends what we have with it when
 * he connects; and if he connected first, and then says nothing, the lane by which we reach the
 * other is taken for the one of two that goes, where our id is the higher, and what is meant for
 * the other goes to him. All who have the key are trusted not to claim another's id.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/mux/local/local.h"

static const uint8_t nobody[WIRE_MUX_ID];

/* < 0: our id is the lower; 0: it is this mux itself. */
static int compare(const struct weir_hub *hub, const uint8_t id[static WIRE_MUX_ID])
{
	return memcmp(hub->id, id, WIRE_MUX_ID);
}

bool weir_node_is_there(const struct weir_node *node)
{
	return node->leave != WEIR_LEAVE_LEFT && !__atomic_load_n(&node->status, __ATOMIC_ACQUIRE);
}

static bool has_name(const struct weir_node *node, const char *name)
{
	unsigned int i;

	for (i = 0; i < node->nr_names && i < WEIR_NODE_NAMES_MAX; i++)
		if (!strcmp(node->names[i], name))
			return true;
	return false;
}

struct weir_node *weir_node_named(struct weir_hub *hub, const char *name)
{
	struct weir_list *at;

	for (at = hub->nodes.next; at != &hub->nodes; at = at->next) {
		struct weir_node *node = weir_list_entry(at, struct weir_node, link);

		if (weir_node_is_there(node) && has_name(node, name))
			return node;
	}
	return NULL;
}

void weir_node_name(struct weir_node *node, const char *name)
{
	if (has_name(node, name))
		return;
	snprintf(node->names[node->nr_names++ % WEIR_NODE_NAMES_MAX], sizeof(node->name), "%s",
		 name);
}

struct weir_node *weir_node_of_session(struct weir_hub *hub, uint64_t session_id, bool is_client)
{
	struct weir_list *at;

	for (at = hub->nodes.next; at != &hub->nodes; at = at->next) {
		struct weir_node *node = weir_list_entry(at, struct weir_node, link);

		if (node->session_id != session_id || !node->lanes[0] || !weir_node_is_there(node))
			continue;
		if (compare(hub, node->id) || node->is_ours == is_client)
			return node;
	}
	return NULL;
}

/* While both ends have dialled there may be two: that of the lower id's is the one that stays. */
struct weir_node *weir_node_of_mux(struct weir_hub *hub, const uint8_t id[static WIRE_MUX_ID])
{
	const bool ours_stays = compare(hub, id) < 0;
	struct weir_node *found = NULL;
	struct weir_list *at;

	for (at = hub->nodes.next; at != &hub->nodes; at = at->next) {
		struct weir_node *node = weir_list_entry(at, struct weir_node, link);

		if (!node->lanes[0] || memcmp(node->id, id, WIRE_MUX_ID) ||
		    !weir_node_is_there(node))
			continue;
		if (node->is_ours == ours_stays)
			return node;
		if (compare(hub, id))
			found = node;
	}
	return found;
}

bool weir_hub_expects_welcome(const struct weir_hub *hub)
{
	const struct weir_list *at;

	for (at = hub->lanes.next; at != &hub->lanes; at = at->next) {
		const struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		if (!lane->class && lane->state == WEIR_LANE_PROVING &&
		    lane->handshake.state == WEIR_HANDSHAKE_WELCOME)
			return true;
	}
	return false;
}

/* A further lane: of the mux that has proven itself on the first; and whether both ends dial it. */
static int further_met(const struct weir_lane *lane)
{
	const struct weir_node *node = lane->node;

	if (memcmp(node->id, lane->handshake.hello.mux, WIRE_MUX_ID))
		return -EPROTO;
	if (node->lanes[lane->class] || weir_lane_is_coming(node, lane->class))
		return -EALREADY;
	if (node->is_dialing && node->dialing == lane->class && compare(node->hub, node->id) < 0)
		return -EALREADY;
	return 0;
}

int weir_lane_met_client(struct weir_lane *lane, struct wire_welcome *welcome)
{
	const struct wire_hello *hello = &lane->handshake.hello;
	struct weir_hub *hub = lane->node->hub;
	struct weir_node *known;

	welcome->session_id = lane->node->session_id;
	memcpy(welcome->mux, hub->id, WIRE_MUX_ID);
	if (lane->class)
		return further_met(lane);
	if (!memcmp(hello->mux, nobody, WIRE_MUX_ID))
		return -EPROTO;
	known = weir_node_of_mux(hub, hello->mux);
	while (known && known->session_id == hello->ended) {
		weir_node_fail(known, -ECONNRESET);
		known = weir_node_of_mux(hub, hello->mux);
	}
	if (!known) {
		memcpy(lane->node->id, hello->mux, WIRE_MUX_ID);
		return 0;
	}
	welcome->session_id = known->session_id;
	welcome->is_known = 1;
	return 1;
}

/* The node by which the other end has reached us meanwhile, if that is the one that stays. */
static const struct weir_node *rival_of(const struct weir_lane *lane)
{
	const struct weir_node *node = lane->node, *rival = weir_node_of_mux(node->hub, node->id);

	if (compare(node->hub, node->id) <= 0 || !rival || rival->is_ours ||
	    (rival->heard && rival->heard < lane->proved))
		return NULL;
	return rival;
}

int weir_lane_met_donor(struct weir_lane *lane)
{
	struct wire_welcome *welcome = &lane->handshake.welcome;
	struct weir_node *node = lane->node;
	const struct weir_node *rival;

	if (lane->class)
		return memcmp(node->id, welcome->mux, WIRE_MUX_ID) || node->lanes[lane->class] ?
			       -EPROTO : 0;
	if (!memcmp(welcome->mux, nobody, WIRE_MUX_ID) || welcome->is_known > 1)
		return -EPROTO;
	if (welcome->is_known)
		return 1;
	memcpy(node->id, welcome->mux, WIRE_MUX_ID);
	node->session_id = welcome->session_id;
	rival = rival_of(lane);
	if (!rival)
		return 0;
	welcome->session_id = rival->session_id;
	return 1;
}
