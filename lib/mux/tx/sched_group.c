/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stakes: the connections of a party share with those of others as one, so that a user with many,
 * of however many processes, has no more than a user with one. An owner who is of another party
 * from now on takes his connections along, with what is in flight of them, and what they have spent
 * of a round.
 *
 * A node counts as a party's whose connect has begun it, but not for as long as others like: when
 * that has no connection there any more, it is a party's who has, and has connected himself.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/mux/tx/post.h"

static struct weir_stake *stake_find(const struct weir_node *node, const struct weir_party *party,
				      uint8_t class)
{
	struct weir_list *at;

	for (at = node->stakes.next; at != &node->stakes; at = at->next) {
		struct weir_stake *stake = weir_list_entry(at, struct weir_stake, link);

		if (stake->party == party && stake->bundle.class == class)
			return stake;
	}
	return NULL;
}

/* Its owner's, found or made, and referenced. NULL: no memory. With hub->lock held. */
static struct weir_stake *stake_get(const struct weir_circuit *conn)
{
	struct weir_stake *stake = stake_find(conn->node, conn->owner->party, conn->class);

	if (!stake) {
		stake = calloc(1, sizeof(*stake));
		if (!stake)
			return NULL;
		stake->party = conn->owner->party;
		weir_list_init(&stake->pace_link);
		weir_bundle_init(&stake->bundle, conn->class, weir_owner_weight(conn->owner));
		weir_list_add(&conn->node->stakes, &stake->link);
	}
	stake->refs++;
	return stake;
}

static void stake_put(struct weir_stake *stake)
{
	if (--stake->refs)
		return;
	weir_list_del(&stake->link);
	free(stake);
}

/* The last party to have a connection keeps it, until the node ends or somebody else connects. */
static void node_charge(struct weir_node *node)
{
	struct weir_party *heir = NULL;
	struct weir_list *at;

	if (!node->party || weir_list_is_empty(&node->stakes))
		return;
	for (at = node->stakes.next; at != &node->stakes; at = at->next) {
		struct weir_stake *stake = weir_list_entry(at, struct weir_stake, link);

		if (stake->party == node->party)
			return;
		if (stake->nr_ours)
			heir = stake->party;
	}
	weir_node_uncharge(node);
	if (!heir)
		return;
	node->party = heir;
	heir->nr_nodes++;
}

int weir_stake_take(struct weir_circuit *conn)
{
	conn->stake = stake_get(conn);
	return conn->stake ? 0 : -ENOMEM;
}

void weir_stake_give(struct weir_circuit *conn)
{
	if (!conn->stake)
		return;
	conn->stake->nr_ours -= conn->is_ours;
	stake_put(conn->stake);
	node_charge(conn->node);
}

void weir_stake_asks(struct weir_circuit *conn)
{
	conn->is_ours = true;
	conn->stake->nr_ours++;
	node_charge(conn->node);
}

/* Nobody of a stake that has nothing to send waits for its party's ceiling. */
static void stake_rest(struct weir_stake *stake)
{
	if (!weir_bundle_is_wanted(&stake->bundle))
		weir_list_del(&stake->pace_link);
}

void weir_stake_follow(struct weir_circuit *conn)
{
	struct weir_hub *hub = conn->hub;
	struct weir_stake *from = conn->stake, *to;

	if (from->party == weir_owner_party(conn->owner))
		return;
	pthread_mutex_lock(&hub->lock);
	to = stake_get(conn);
	if (to) {
		weir_flow_move(&conn->node->sched, &conn->flow, &to->bundle);
		stake_rest(from);
		conn->stake = to;
		from->nr_ours -= conn->is_ours;
		to->nr_ours += conn->is_ours;
		stake_put(from);
		node_charge(conn->node);
	}
	pthread_mutex_unlock(&hub->lock);
}

void weir_stake_idle(struct weir_circuit *conn)
{
	weir_sched_idle(&conn->node->sched, &conn->flow);
	stake_rest(conn->stake);
}

bool weir_stake_is_early(struct weir_circuit *conn, uint64_t now_ns)
{
	struct weir_stake *stake = conn->stake;
	struct weir_node *node = conn->node;

	if (weir_rate_due_ns(&stake->party->rate) <= now_ns)
		return false;
	weir_sched_pause(&node->sched, &stake->bundle);
	weir_list_del(&stake->pace_link);
	weir_list_add_tail(&node->paced, &stake->pace_link);
	return true;
}

uint64_t weir_stakes_pace(struct weir_node *node, uint64_t now_ns)
{
	uint64_t due_ns, next_ns = UINT64_MAX;
	struct weir_list *at;

	for (at = node->paced.next; at != &node->paced;) {
		struct weir_stake *stake = weir_list_entry(at, struct weir_stake, pace_link);

		at = at->next;
		due_ns = weir_rate_due_ns(&stake->party->rate);
		if (due_ns <= now_ns) {
			weir_list_del(&stake->pace_link);
			weir_sched_resume(&node->sched, &stake->bundle);
		} else if (due_ns < next_ns) {
			next_ns = due_ns;
		}
	}
	return next_ns;
}
