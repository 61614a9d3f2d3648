// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/tap/peers.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for new entries */

static struct softnic_peer *find_peer(const union ibv_gid *gid)
{
	uint32_t i, nr = load_acquire(&nic.pub->nr_peers);

	for (i = 0; i < nr; i++)
		if (!memcmp(nic.pub->peers[i].gid, gid, sizeof(nic.pub->peers[i].gid)))
			return &nic.pub->peers[i];
	return nr == SOFTNIC_PEERS_MAX ? &nic.pub->peers[nr - 1] : NULL;
}

static struct softnic_peer *add(const union ibv_gid *gid)
{
	uint32_t nr = nic.pub->nr_peers;
	struct softnic_peer *peer = &nic.pub->peers[nr];

	if (nr + 1 < SOFTNIC_PEERS_MAX)
		memcpy(peer->gid, gid, sizeof(peer->gid));
	store_release(&nic.pub->nr_peers, nr + 1);
	return peer;
}

struct softnic_peer_counters *peers_get(const union ibv_gid *gid)
{
	struct softnic_peer *peer = find_peer(gid);

	if (peer)
		return &peer->counters;
	pthread_mutex_lock(&lock);
	peer = find_peer(gid);
	if (!peer)
		peer = add(gid);
	pthread_mutex_unlock(&lock);
	return &peer->counters;
}

static void grow(uint64_t *counter, uint64_t before, uint64_t now)
{
	if (now != before)
		__atomic_fetch_add(counter, now - before, __ATOMIC_RELAXED);
}

void peers_count(struct softnic_peer_counters *peer, const struct roce_counters *before,
		 const struct roce_counters *now)
{
#define GROW(name) grow(&peer->name, before->name, now->name)
	grow(&peer->packets_in, before->refused[ROCE_ACCEPTED], now->refused[ROCE_ACCEPTED]);
	GROW(packets_out);
	GROW(bytes_out);
	GROW(bytes_in);
	GROW(retransmitted);
	GROW(duplicates);
	GROW(gaps);
	GROW(timeouts);
	GROW(naks_out);
	GROW(naks_in);
	GROW(rnr_out);
	GROW(rnr_in);
#undef GROW
}
