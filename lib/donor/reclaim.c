/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lower limit on lending: the donor asks capable clients to give back the excess, but waits for
 * none. Memory not given back stays lent, and nothing new is lent until there is room.
 */
#include <errno.h>

#include "lib/donor/donor.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

static struct weir_peer *client_of_link(struct weir_list *link)
{
	return weir_list_entry(link, struct weir_peer, link);
}

void weir_donor_reclaim_repeat(struct weir_peer *client)
{
	const struct wire_control_reclaim reclaim_excess = { .keep_bytes = client->account.keep };

	if (reclaim_excess.keep_bytes != WIRE_CONTROL_KEEP_ALL)
		weir_donor_messages_reclaim(client, &reclaim_excess);
}

/* Movable bytes that a session may keep, of @movable in all: each gives the same share. */
static uint64_t keep_bytes_of(const struct weir_region_account *account,
			      const struct weir_arena *arena, uint64_t movable)
{
	uint64_t excess, share;

	if (arena->taken <= arena->limit || !account->movable)
		return WIRE_CONTROL_KEEP_ALL;
	/* In pages, so that the product of two sizes fits; rounded up, so that the sum suffices. */
	excess = (arena->taken - arena->limit + WEIR_ARENA_PAGE - 1) / WEIR_ARENA_PAGE;
	movable /= WEIR_ARENA_PAGE;
	share = (excess * (account->movable / WEIR_ARENA_PAGE) + movable - 1) / movable *
		WEIR_ARENA_PAGE;
	return share < account->movable ? account->movable - share : 0;
}

static uint64_t movable_bytes(struct weir_donor *donor)
{
	struct weir_list *link;
	uint64_t bytes = 0;

	for (link = donor->clients.next; link != &donor->clients; link = link->next)
		bytes += client_of_link(link)->account.movable;
	return bytes;
}

/* In the donor's thread. */
static void reclaim_excess(void *arg)
{
	struct weir_donor *donor = arg;
	uint64_t movable, taken, limit;
	struct weir_list *link;

	pthread_mutex_lock(&donor->lock);
	movable = movable_bytes(donor);
	taken = donor->arena.taken;
	limit = donor->arena.limit;
	for (link = donor->clients.next; link != &donor->clients; link = link->next) {
		struct weir_region_account *account = &client_of_link(link)->account;
		struct wire_control_reclaim reclaim = { .keep_bytes = account->keep };

		account->keep = keep_bytes_of(account, &donor->arena, movable);
		if (account->keep == reclaim.keep_bytes)
			continue;
		reclaim.keep_bytes = account->keep;
		weir_donor_messages_reclaim(client_of_link(link), &reclaim);
	}
	pthread_mutex_unlock(&donor->lock);
	weir_donor_log(donor, WEIR_LOG_INFO, "limit bytes=%llu lent=%llu movable=%llu",
		       (unsigned long long)limit, (unsigned long long)taken,
		       (unsigned long long)movable);
}

/* Works in slices, so that the donor's thread never waits for the whole arena. */
static void release_reserved(struct weir_donor *donor)
{
	uint64_t offset, length;

	for (offset = 0; offset < donor->arena.length; offset += length) {
		length = donor->arena.length - offset;
		length = length < WEIR_MEMORY_SLICE ? length : WEIR_MEMORY_SLICE;
		pthread_mutex_lock(&donor->lock);
		weir_arena_release(&donor->arena, offset, length);
		pthread_mutex_unlock(&donor->lock);
	}
}

int weir_donor_limit(struct weir_donor *donor, uint64_t bytes)
{
	if (bytes > donor->arena.length)
		return -EINVAL;
	pthread_mutex_lock(&donor->lock);
	donor->arena.limit = bytes;
	pthread_mutex_unlock(&donor->lock);
	if (bytes < donor->arena.length &&
	    __atomic_load_n(&donor->arena.is_reserved, __ATOMIC_RELAXED))
		release_reserved(donor);
	return weir_donor_after(donor, 0, reclaim_excess, donor);
}
