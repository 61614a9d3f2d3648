/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stakes: the connections of a party share with those of others as one, so that a user with many,
 * of however many processes, has no more than a user with one.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/mux/hub.h"

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

int weir_stake_take(struct weir_circuit *conn)
{
	struct weir_stake *stake = stake_find(conn->node, conn->owner->party, conn->class);

	if (!stake) {
		stake = calloc(1, sizeof(*stake));
		if (!stake)
			return -ENOMEM;
		stake->party = conn->owner->party;
		weir_list_init(&stake->pace_link);
		weir_bundle_init(&stake->bundle, conn->class, weir_owner_weight(conn->owner));
		weir_list_add(&conn->node->stakes, &stake->link);
	}
	stake->refs++;
	conn->stake = stake;
	return 0;
}

void weir_stake_give(struct weir_circuit *conn)
{
	struct weir_stake *stake = conn->stake;

	if (!stake || --stake->refs)
		return;
	weir_list_del(&stake->link);
	free(stake);
}
