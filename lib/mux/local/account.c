/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Owners, and the parties that they are of: whatever is bounded is bounded for the party, so that
 * a user with many processes has no more than one with a single one.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"

static void party_init(struct weir_party *party, uint64_t id)
{
	*party = (struct weir_party){ .id = id, .weight = 1, .bytes_max = UINT64_MAX,
				      .nr_conns_max = UINT_MAX, .nr_nodes_max = UINT_MAX };
	weir_list_init(&party->link);
}

void weir_owner_init(struct weir_owner *owner, struct weir_hub *hub)
{
	*owner = (struct weir_owner){ .hub = hub, .party = &owner->own, .socket = -1 };
	party_init(&owner->own, 0);
	weir_cond_init(&owner->changed);
	weir_list_init(&owner->chunks);
	weir_list_init(&owner->plots);
	weir_list_init(&owner->openings);
}

void weir_owner_fini(struct weir_owner *owner)
{
	struct weir_hub *hub = owner->hub;

	pthread_mutex_lock(&hub->lock);
	while (owner->is_making || owner->has_mason)
		pthread_cond_wait(&owner->changed, &hub->lock);
	pthread_mutex_unlock(&hub->lock);
	while (!weir_list_is_empty(&owner->chunks))
		weir_chunk_free(weir_list_entry(owner->chunks.next, struct weir_chunk, link));
	while (!weir_list_is_empty(&owner->plots))
		weir_plot_free(weir_list_entry(owner->plots.next, struct weir_plot, link));
	pthread_cond_destroy(&owner->changed);
}

void weir_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool weir_owner_is_gone(const struct weir_owner *owner)
{
	struct pollfd fd = { .fd = owner->socket };

	return owner->socket >= 0 && poll(&fd, 1, 0) == 1 && fd.revents & (POLLHUP | POLLERR);
}

/*
 * The kernel tells of an end on the socket, and others on the condition: it looks at one in turn.
 */
int weir_owner_wait(struct weir_owner *owner, pthread_cond_t *changed, uint64_t deadline_ns)
{
	uint64_t now_ns = weir_now_ns(), until_ns = deadline_ns;
	struct timespec until;

	if (deadline_ns <= now_ns)
		return -ETIMEDOUT;
	if (weir_owner_is_gone(owner))
		return -ECONNRESET;
	if (owner->socket >= 0 && deadline_ns - now_ns > WEIR_OWNER_LOOK_MS * WEIR_NS_PER_MS)
		until_ns = now_ns + WEIR_OWNER_LOOK_MS * WEIR_NS_PER_MS;
	until = weir_timespec(until_ns);
	pthread_cond_timedwait(changed, &owner->hub->lock, &until);
	return 0;
}

struct weir_party *weir_party_get(struct weir_hub *hub, uint64_t id)
{
	struct weir_party *party;
	struct weir_list *at;

	for (at = hub->parties.next; at != &hub->parties; at = at->next) {
		party = weir_list_entry(at, struct weir_party, link);
		if (party->id == id)
			return party;
	}
	party = malloc(sizeof(*party));
	if (!party)
		return NULL;
	party_init(party, id);
	weir_list_add_tail(&hub->parties, &party->link);
	return party;
}

/* Those of its connections that may wait for their turn look again. */
static void tell_conns(const struct weir_party *party, struct weir_node *node)
{
	struct weir_list *at;

	for (at = node->conns.next; at != &node->conns; at = at->next) {
		struct weir_circuit *conn = weir_list_entry(at, struct weir_circuit, node_link);

		if (conn->owner->party == party && !conn->is_detached &&
		    __atomic_load_n(&conn->is_open, __ATOMIC_ACQUIRE))
			weir_circuit_news(conn);
	}
}

static void tell_all(const struct weir_party *party, struct weir_hub *hub)
{
	struct weir_list *at;

	for (at = hub->nodes.next; at != &hub->nodes; at = at->next)
		tell_conns(party, weir_list_entry(at, struct weir_node, link));
}

void weir_party_limit(struct weir_hub *hub, struct weir_party *party, unsigned int weight,
		      uint64_t bytes_s)
{
	if (party->weight == weight &&
	    __atomic_load_n(&party->rate.bytes_s, __ATOMIC_RELAXED) == bytes_s)
		return;
	__atomic_store_n(&party->weight, weight, __ATOMIC_RELAXED);
	weir_rate_set(&party->rate, bytes_s);
	tell_all(party, hub);
}

void weir_owner_join(struct weir_owner *owner, struct weir_party *party)
{
	if (owner->party == party)
		return;
	owner->party->bytes -= owner->bytes;
	owner->party->nr_conns -= owner->nr_conns;
	owner->party->nr_plots -= owner->nr_plots;
	party->bytes += owner->bytes;
	party->nr_conns += owner->nr_conns;
	party->nr_plots += owner->nr_plots;
	__atomic_store_n(&owner->party, party, __ATOMIC_RELEASE);
	tell_all(party, owner->hub);
}

int weir_owner_take_bytes(struct weir_owner *owner, uint64_t bytes)
{
	struct weir_party *party = owner->party;

	/* It may have more than it may: once it was allowed to. */
	if (party->bytes > party->bytes_max || bytes > party->bytes_max - party->bytes)
		return -EDQUOT;
	party->bytes += bytes;
	owner->bytes += bytes;
	return 0;
}

void weir_owner_give_bytes(struct weir_owner *owner, uint64_t bytes)
{
	owner->party->bytes -= bytes;
	owner->bytes -= bytes;
}

int weir_owner_take_plot(struct weir_owner *owner, uint64_t bytes)
{
	int rc = owner->party->nr_plots < WEIR_PLOTS_MAX ? weir_owner_take_bytes(owner, bytes) :
							    -EDQUOT;

	if (rc)
		return rc;
	owner->party->nr_plots++;
	owner->nr_plots++;
	return 0;
}

void weir_owner_give_plot(struct weir_owner *owner, uint64_t bytes)
{
	weir_owner_give_bytes(owner, bytes);
	owner->party->nr_plots--;
	owner->nr_plots--;
}

int weir_owner_take_conn(struct weir_owner *owner)
{
	if (owner->party->nr_conns >= owner->party->nr_conns_max)
		return -EDQUOT;
	owner->party->nr_conns++;
	owner->nr_conns++;
	return 0;
}

void weir_owner_give_conn(struct weir_owner *owner)
{
	owner->party->nr_conns--;
	owner->nr_conns--;
}

void weir_owner_cut(struct weir_owner *owner)
{
	struct weir_hub *hub = owner->hub;
	unsigned int i;

	for (i = 0; i < hub->options.connections_max; i++)
		if (hub->table[i] && hub->table[i]->owner == owner && hub->table[i]->is_closed)
			weir_circuit_abort(hub->table[i]);
}
