/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor that lends less from now on: clients who can are asked to give back what is beyond.
 * Nobody is waited for: what nobody gives back stays lent, and nothing new is until there is room.
 */
#include <errno.h>

#include "lib/donor/donor.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

static struct weir_peer *peer_at(struct weir_list *link)
{
	return weir_list_entry(link, struct weir_peer, link);
}

void weir_recall_again(struct weir_peer *peer)
{
	const struct wire_recall recall = { .keep_bytes = peer->account.keep };

	if (recall.keep_bytes != WIRE_KEEP_ALL)
		weir_mail_recall(peer, &recall);
}

/*
 * What a session may keep of what it has that is movable, of @movable bytes of all: each gives
 * alike.
 */
static uint64_t keeps(const struct weir_account *account, const struct weir_arena *arena,
		      uint64_t movable)
{
	uint64_t excess, share;

	if (arena->taken <= arena->limit || !account->movable)
		return WIRE_KEEP_ALL;
	/* In pages, so that the product of two sizes fits; rounded up, so that it is enough. */
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

	for (link = donor->peers.next; link != &donor->peers; link = link->next)
		bytes += peer_at(link)->account.movable;
	return bytes;
}

/* In the donor's thread. */
static void recall(void *arg)
{
	struct weir_donor *donor = arg;
	uint64_t movable, taken, limit;
	struct weir_list *link;

	pthread_mutex_lock(&donor->lock);
	movable = movable_bytes(donor);
	taken = donor->arena.taken;
	limit = donor->arena.limit;
	for (link = donor->peers.next; link != &donor->peers; link = link->next) {
		struct weir_account *account = &peer_at(link)->account;
		struct wire_recall told = { .keep_bytes = account->keep };

		account->keep = keeps(account, &donor->arena, movable);
		if (account->keep == told.keep_bytes)
			continue;
		told.keep_bytes = account->keep;
		weir_mail_recall(peer_at(link), &told);
	}
	pthread_mutex_unlock(&donor->lock);
	weir_donor_log(donor, WEIR_LOG_INFO, "limit bytes=%llu lent=%llu movable=%llu",
		       (unsigned long long)limit, (unsigned long long)taken,
		       (unsigned long long)movable);
}

int weir_donor_limit(struct weir_donor *donor, uint64_t bytes)
{
	if (bytes > donor->arena.length)
		return -EINVAL;
	pthread_mutex_lock(&donor->lock);
	donor->arena.limit = bytes;
	pthread_mutex_unlock(&donor->lock);
	return weir_donor_after(donor, 0, recall, donor);
}
