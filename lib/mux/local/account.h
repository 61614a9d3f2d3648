/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accounts: owners of connections, services and memory. An account is the program itself, or a
 * tenant of weir share. An account group shares limits between accounts, such as all processes
 * of a user.
 */
#ifndef WEIR_LIB_MUX_LOCAL_ACCOUNT_H
#define WEIR_LIB_MUX_LOCAL_ACCOUNT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/list.h"
#include "lib/base/counter.h"
#include "lib/mux/local/rate_limit.h"

#include <weir/mux.h>

struct weir_mux_local;

#define WEIR_MUX_MRS_MAX 1024 /* per group; each is a mapping, and a process has few */

/* See lib/base/counter.h. */
struct weir_mux_counters {
	uint64_t work_requests, doorbells, bytes_sent, bytes_received, credits, sleeps;
	uint64_t bytes_written, ahead_bytes_max;
};

/* Traffic of an account's connections in one class; see lib/base/counter.h. */
struct weir_mux_class_counters {
	uint64_t turns, waited_ns, bytes_sent, bytes_received;
};

/**
 * struct weir_mux_account_group - limits shared by its accounts
 * @link: in mux->groups until the mux ends; in no list for a group of one account
 * @id: the key for lookups
 * @weight: scheduler weight of all connections together; any thread
 * @rate: rate limit of all connections together; any thread
 * @first_class: the most urgent class allowed, whichever end opens
 * @bytes, @nr_conns, @nr_mrs: totals of all accounts
 * @nr_remotes: remotes charged to the group
 *
 * Guarded by mux->lock.
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
 * struct weir_mux_account - an owner of connections, services and memory
 * @own: the initial group, with no other member
 * @group: the group; any thread, by weir_mux_account_current_group()
 * @slabs: slabs with room first
 * @bytes: of slabs and MRs
 * @nr_mrs: at most WEIR_MUX_MRS_MAX over the group
 * @nr_slabs: ever added; also the next slab's number
 * @changed: broadcast when any connection of the account changes
 * @socket: the account lives as long as the other end; -1: for ever
 * @is_shared: rings are memfds
 * @is_adding_slab: a thread registers a slab, without the lock
 * @pending_opens: other muxes' OPENs waiting for rings; @has_open_thread: a thread serves
 *	@pending_opens
 * @classes: counters of each class; any thread
 *
 * Guarded by mux->lock.
 */
struct weir_mux_account {
	struct weir_mux_local *mux;
	struct weir_mux_account_group own, *group;
	struct weir_list slabs, mrs, pending_opens;
	pthread_cond_t changed;
	int socket;
	uint32_t last_mr;
	uint64_t bytes;
	unsigned int nr_slabs, nr_conns, nr_mrs;
	bool is_shared, is_adding_slab, has_open_thread;
	struct weir_mux_class_counters classes[WEIR_MUX_CLASSES_MAX];
};

/* Initialises an empty account without limits. Context: any. */
void weir_mux_account_init(struct weir_mux_account *account, struct weir_mux_local *mux);

/* Initialises a condition variable on CLOCK_MONOTONIC. */
void weir_mux_cond_init(pthread_cond_t *cond);

/*
 * Waits for @changed, with mux->lock held; may return early.
 * Return: 0; -ETIMEDOUT; -ECONNRESET the account's process is gone.
 */
int weir_mux_account_wait(struct weir_mux_account *account, pthread_cond_t *changed,
			  uint64_t deadline_ns);

/* Whether the account's process is gone. Waiters check every WEIR_MUX_ACCOUNT_CHECK_MS. */
#define WEIR_MUX_ACCOUNT_CHECK_MS 20
bool weir_mux_account_is_gone(const struct weir_mux_account *account);

/*
 * Waits until no thread works for the account, then frees the memory. The account has no
 * connections and cannot be found any more. Context: without mux->lock.
 */
void weir_mux_account_fini(struct weir_mux_account *account);

/*
 * Finds the group @id, or creates it without limits. Groups live as long as the mux: there are
 * only so many users and cgroups. NULL: no memory. With mux->lock held.
 */
struct weir_mux_account_group *weir_mux_account_group_get(struct weir_mux_local *mux, uint64_t id);

/* Sets weight and rate limit; 0: no limit. With mux->lock held. */
void weir_mux_account_group_limit(struct weir_mux_local *mux, struct weir_mux_account_group *group,
				  unsigned int weight, uint64_t bytes_s);

/* Moves the account with all possessions to @group. With mux->lock held. */
void weir_mux_account_set_group(struct weir_mux_account *account,
				struct weir_mux_account_group *group);

/*
 * Charge and uncharge memory, an MR, a connection. With mux->lock held.
 * Return: 0; -EDQUOT the group is at its limit.
 */
int weir_mux_account_take_bytes(struct weir_mux_account *account, uint64_t bytes);
void weir_mux_account_give_bytes(struct weir_mux_account *account, uint64_t bytes);
int weir_mux_account_take_mr(struct weir_mux_account *account, uint64_t bytes);
void weir_mux_account_give_mr(struct weir_mux_account *account, uint64_t bytes);
int weir_mux_account_take_conn(struct weir_mux_account *account);
void weir_mux_account_give_conn(struct weir_mux_account *account);

/* Drops the unsent bytes of the account's closed connections. With mux->lock held. */
void weir_mux_account_abort_closed(struct weir_mux_account *account);

static inline struct weir_mux_account_group *
weir_mux_account_current_group(const struct weir_mux_account *account)
{
	return __atomic_load_n(&account->group, __ATOMIC_ACQUIRE);
}

static inline uint16_t weir_mux_account_weight(const struct weir_mux_account *account)
{
	return (uint16_t)__atomic_load_n(&weir_mux_account_current_group(account)->weight,
					 __ATOMIC_RELAXED);
}

#endif
