/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/donor/view/holdings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/conn/encryption.h"
#include "lib/donor/client.h"
#include "lib/donor/conn.h"
#include "lib/donor/donor.h"

static size_t list_length(const struct weir_list *list)
{
	size_t length = 0;

	for (const struct weir_list *link = list->next; link != list; link = link->next)
		length++;
	return length;
}

static enum weir_holding_kind kind_of(const struct weir_lent_region *lent)
{
	if (lent->state == WEIR_LENT_FREED)
		return WEIR_HOLDING_ZEROING;
	if (lent->is_owned)
		return WEIR_HOLDING_APPLICATION;
	return lent->payer ? WEIR_HOLDING_CLIENT : WEIR_HOLDING_LEFT;
}

static void copy_regions(struct weir_holdings *holdings, const struct weir_donor *donor,
			 const struct weir_list *list)
{
	for (struct weir_list *link = list->next; link != list; link = link->next) {
		const struct weir_lent_region *lent =
			weir_list_entry(link, struct weir_lent_region, link);
		struct weir_holding *extent = &holdings->extent[holdings->nr_extents];

		if (!lent->extent)
			continue; /* starved */
		*extent = (struct weir_holding){
			.kind = kind_of(lent),
			.tenant = lent->tenant,
			.offset = (uint64_t)(lent->extent->addr - donor->arena.base),
			.bytes = lent->extent->length,
		};
		if (extent->kind == WEIR_HOLDING_CLIENT)
			extent->client =
				container_of(lent->payer, struct weir_peer, account)->id;
		holdings->nr_extents++;
	}
}

static void copy_clients(struct weir_holdings *holdings, const struct weir_donor *donor)
{
	const struct weir_list *list = &donor->clients;

	for (struct weir_list *link = list->next; link != list; link = link->next) {
		const struct weir_peer *peer = weir_list_entry(link, struct weir_peer, link);
		const struct weir_donor_conn *conn = peer->conns[0];
		struct weir_holding_client *client = &holdings->client[holdings->nr_clients++];

		client->id = peer->id;
		client->tenant = peer->tenant;
		snprintf(client->name, sizeof(client->name), "%s", peer->name);
		if (conn && conn->id->qp)
			client->cipher = weir_encryption_cipher(conn->id->qp);
	}
}

int weir_holdings_copy(struct weir_holdings *holdings, struct weir_donor *donor)
{
	const struct weir_region_table *table = &donor->region_table;

	*holdings = (struct weir_holdings){ .bytes = donor->arena.length };
	pthread_mutex_lock(&donor->lock);
	holdings->extent = calloc(table->nr_lent + list_length(&table->freed) + 1,
				  sizeof(*holdings->extent));
	if (holdings->extent) {
		copy_regions(holdings, donor, &table->lent);
		copy_regions(holdings, donor, &table->freed);
	}
	pthread_mutex_unlock(&donor->lock);
	holdings->client = calloc(list_length(&donor->clients) + 1, sizeof(*holdings->client));
	if (!holdings->extent || !holdings->client) {
		weir_holdings_free(holdings);
		return -ENOMEM;
	}
	copy_clients(holdings, donor);
	return 0;
}

void weir_holdings_free(struct weir_holdings *holdings)
{
	free(holdings->extent);
	free(holdings->client);
	*holdings = (struct weir_holdings){ 0 };
}
