/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose connections, offers and memory are which: an owner is this program, or a tenant of weir
 * share. And what owners have together: a party, as all processes of a user.
 */
#ifndef WEIR_LIB_MUX_LOCAL_ACCOUNT_H
#define WEIR_LIB_MUX_LOCAL_ACCOUNT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/list.h"
#include "lib/mux/local/rate_limit.h"

struct weir_hub;

#define WEIR_PLOTS_MAX 1024 /* of a party: each is a mapping, of which a process has so many */

/* Counted by many threads, relaxed. */
struct weir_mux_counts {
	_Atomic uint64_t work_requests, doorbells, bytes_sent, bytes_received, credits, sleeps;
	_Atomic uint64_t bytes_written, ahead_bytes_max, waited_ns;
};

static inline void weir_count_most(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t old = atomic_load_explicit(most, memory_order_relaxed);

	while (old < value && !atomic_compare_exchange_weak_explicit(
				      most, &old, value, memory_order_relaxed,
				      memory_order_relaxed))
		;
}

static inline void weir_count(_Atomic uint64_t *counter, uint64_t by)
{
	atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/**
 * struct weir_party - what its owners have between them
 * @link: in hub->parties, until the hub ends; in none: of one owner alone
 * @id: what it is found by
 * @weight: of all connections together, against other parties'; any thread
 * @rate: what all connections together may send; any thread
 * @first_class: the most urgent that they may have, whoever opens them
 * @bytes, @nr_conns, @nr_plots: what the owners have
 * @nr_nodes: that their connects have begun, and that are not gone
 *
 * hub->lock.
 */
struct weir_party {
	struct weir_list link;
	uint64_t id;
	unsigned int weight;
	struct weir_rate rate;
	uint8_t first_class;
	uint64_t bytes, bytes_max;
	unsigned int nr_conns, nr_conns_max, nr_plots, nr_nodes, nr_nodes_max;
};

/**
 * struct weir_owner - whose
 * @own: his party at first, and his alone
 * @party: any thread, by weir_owner_party()
 * @chunks: those with room first; @plots
 * @bytes: of both
 * @nr_plots: at most WEIR_PLOTS_MAX, of all of his party
 * @nr_chunks: counted from the first, and so their numbers
 * @changed: broadcast when a connection of his, or what it refers to, is something else
 * @socket: he is there as long as its other end is; -1: for ever
 * @is_shared: his rings are memfds
 * @is_making: somebody makes a chunk for him, without the lock
 * @openings: what others have asked of him, and has to wait for that; @has_mason: a thread sees to
 *	it
 *
 * hub->lock.
 */
struct weir_owner {
	struct weir_hub *hub;
	struct weir_party own, *party;
	struct weir_list chunks, plots, openings;
	pthread_cond_t changed;
	int socket;
	uint32_t last_plot;
	uint64_t bytes;
	unsigned int nr_chunks, nr_conns, nr_plots;
	bool is_shared, is_making, has_mason;
	struct weir_mux_counts counts;
};

/* An owner of nothing, with no bounds. Context: any. */
void weir_owner_init(struct weir_owner *owner, struct weir_hub *hub);

/* A condition whose deadlines are of CLOCK_MONOTONIC. */
void weir_cond_init(pthread_cond_t *cond);

/*
 * Waits for @changed on his behalf, with hub->lock held; also for nothing now and then.
 * Return: 0; -ETIMEDOUT; -ECONNRESET he is gone, and nobody wants to know any more.
 */
int weir_owner_wait(struct weir_owner *owner, pthread_cond_t *changed, uint64_t deadline_ns);

/* Whether he is; and for how long, at most, somebody who waits does not look. */
#define WEIR_OWNER_LOOK_MS 20
bool weir_owner_is_gone(const struct weir_owner *owner);

/*
 * Waits until nobody does anything for him any more: he has no connections, and nobody finds him.
 * What is his memory's goes. Context: without hub->lock.
 */
void weir_owner_fini(struct weir_owner *owner);

/*
 * The party of that number: found, or made without bounds. It stays as long as the hub: so many
 * users and cgroups there are not. NULL: no memory. With hub->lock held.
 */
struct weir_party *weir_party_get(struct weir_hub *hub, uint64_t id);

/* From now on it has this weight and this ceiling; 0: none. With hub->lock held. */
void weir_party_limit(struct weir_hub *hub, struct weir_party *party, unsigned int weight,
		      uint64_t bytes_s);

/* He is of this party, with all that he has. With hub->lock held. */
void weir_owner_join(struct weir_owner *owner, struct weir_party *party);

/*
 * Memory, a region of memory, and a connection, that he is to have, and has had. With hub->lock
 * held.
 * Return: 0; -EDQUOT his party has as much as it may.
 */
int weir_owner_take_bytes(struct weir_owner *owner, uint64_t bytes);
void weir_owner_give_bytes(struct weir_owner *owner, uint64_t bytes);
int weir_owner_take_plot(struct weir_owner *owner, uint64_t bytes);
void weir_owner_give_plot(struct weir_owner *owner, uint64_t bytes);
int weir_owner_take_conn(struct weir_owner *owner);
void weir_owner_give_conn(struct weir_owner *owner);

/* What he has closed, and is still to be sent, is not sent any more. With hub->lock held. */
void weir_owner_cut(struct weir_owner *owner);

static inline struct weir_party *weir_owner_party(const struct weir_owner *owner)
{
	return __atomic_load_n(&owner->party, __ATOMIC_ACQUIRE);
}

static inline uint16_t weir_owner_weight(const struct weir_owner *owner)
{
	return (uint16_t)__atomic_load_n(&weir_owner_party(owner)->weight, __ATOMIC_RELAXED);
}

#endif
