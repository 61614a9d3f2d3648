/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose connections, offers and memory are which: an account is this program, or a tenant of weir
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

struct weir_mux_local;

#define WEIR_MUX_MRS_MAX 1024 /* of a party: each is a mapping, of which a process has so many */

/* Counted by many threads, relaxed. */
struct weir_mux_counters {
	_Atomic uint64_t work_requests, doorbells, bytes_sent, bytes_received, credits, sleeps;
	_Atomic uint64_t bytes_written, ahead_bytes_max, waited_ns;
};

static inline void weir_mux_counter_max(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t old = atomic_load_explicit(most, memory_order_relaxed);

	while (old < value &&
	       !atomic_compare_exchange_weak_explicit(most, &old, value, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static inline void weir_mux_counter_add(_Atomic uint64_t *counter, uint64_t by)
{
	atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/**
 * struct weir_mux_account_group - what its owners have between them
 * @link: in mux->parties, until the mux ends; in none: of one account alone
 * @id: what it is found by
 * @weight: of all connections together, against other parties'; any thread
 * @rate: what all connections together may send; any thread
 * @first_class: the most urgent that they may have, whoever opens them
 * @bytes, @nr_conns, @nr_mrs: what the owners have
 * @nr_remotes: that their connects have begun, and that are not gone
 *
 * mux->lock.
 */
struct weir_mux_account_group {
	struct weir_list link;
	uint64_t id;
	unsigned int weight;
	struct weir_mux_rate_limit rate;
	uint8_t first_class;
	uint64_t bytes, bytes_max;
	unsigned int nr_conns, nr_conns_max, nr_mrs, nr_remotes, nr_remotes_max;
};

/**
 * struct weir_mux_account - whose
 * @own: his party at first, and his alone
 * @party: any thread, by weir_mux_account_current_group()
 * @slabs: those with room first; @mrs
 * @bytes: of both
 * @nr_mrs: at most WEIR_MUX_MRS_MAX, of all of his party
 * @nr_slabs: counted from the first, and so their numbers
 * @changed: broadcast when a connection of his, or what it refers to, is something else
 * @socket: he is there as long as its other end is; -1: for ever
 * @is_shared: his rings are memfds
 * @is_adding_slab: somebody makes a chunk for him, without the lock
 * @pending_opens: what others have asked of him, and has to wait for that; @has_open_thread: a thread sees to
 *	it
 *
 * mux->lock.
 */
struct weir_mux_account {
	struct weir_mux_local *mux;
	struct weir_mux_account_group own, *party;
	struct weir_list slabs, mrs, pending_opens;
	pthread_cond_t changed;
	int socket;
	uint32_t last_mr;
	uint64_t bytes;
	unsigned int nr_slabs, nr_conns, nr_mrs;
	bool is_shared, is_adding_slab, has_open_thread;
	struct weir_mux_counters counts;
};

/* An account of nothing, with no bounds. Context: any. */
void weir_mux_account_init(struct weir_mux_account *account, struct weir_mux_local *mux);

/* A condition whose deadlines are of CLOCK_MONOTONIC. */
void weir_cond_init(pthread_cond_t *cond);

/*
 * Waits for @changed on his behalf, with mux->lock held; also for nothing now and then.
 * Return: 0; -ETIMEDOUT; -ECONNRESET he is gone, and nobody wants to know any more.
 */
int weir_mux_account_wait(struct weir_mux_account *account, pthread_cond_t *changed,
			  uint64_t deadline_ns);

/* Whether he is; and for how long, at most, somebody who waits does not look. */
#define WEIR_MUX_ACCOUNT_CHECK_MS 20
bool weir_mux_account_is_gone(const struct weir_mux_account *account);

/*
 * Waits until nobody does anything for him any more: he has no connections, and nobody finds him.
 * What is his memory's goes. Context: without mux->lock.
 */
void weir_mux_account_fini(struct weir_mux_account *account);

/*
 * The party of that number: found, or made without bounds. It stays as long as the mux: so many
 * users and cgroups there are not. NULL: no memory. With mux->lock held.
 */
struct weir_mux_account_group *weir_mux_account_group_get(struct weir_mux_local *mux, uint64_t id);

/* From now on it has this weight and this ceiling; 0: none. With mux->lock held. */
void weir_mux_account_group_limit(struct weir_mux_local *mux, struct weir_mux_account_group *party,
				  unsigned int weight, uint64_t bytes_s);

/* He is of this party, with all that he has. With mux->lock held. */
void weir_mux_account_set_group(struct weir_mux_account *account,
				struct weir_mux_account_group *party);

/*
 * Memory, a region of memory, and a connection, that he is to have, and has had. With mux->lock
 * held.
 * Return: 0; -EDQUOT his party has as much as it may.
 */
int weir_mux_account_take_bytes(struct weir_mux_account *account, uint64_t bytes);
void weir_mux_account_give_bytes(struct weir_mux_account *account, uint64_t bytes);
int weir_mux_account_take_mr(struct weir_mux_account *account, uint64_t bytes);
void weir_mux_account_give_mr(struct weir_mux_account *account, uint64_t bytes);
int weir_mux_account_take_conn(struct weir_mux_account *account);
void weir_mux_account_give_conn(struct weir_mux_account *account);

/* What he has closed, and is still to be sent, is not sent any more. With mux->lock held. */
void weir_mux_account_abort_closed(struct weir_mux_account *account);

static inline struct weir_mux_account_group *
weir_mux_account_current_group(const struct weir_mux_account *account)
{
	return __atomic_load_n(&account->party, __ATOMIC_ACQUIRE);
}

static inline uint16_t weir_mux_account_weight(const struct weir_mux_account *account)
{
	return (uint16_t)__atomic_load_n(&weir_mux_account_current_group(account)->weight,
					 __ATOMIC_RELAXED);
}

#endif
