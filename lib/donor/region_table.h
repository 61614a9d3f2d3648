/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor's regions: extents lent, their names and holders.
 *
 * A region is registered in its tenant's PD only while held. The last holder's close revokes the
 * rkeys: a late write of an earlier holder reaches neither the next holder nor reused memory. A
 * region without a name is freed with the last hold: deregistered, zeroed, given back.
 *
 * The worker of memory_worker.h populates a new region, and zeroes a freed one. Until a region is
 * ready, the calls that want it wait in its list: first its creator's, then those that open it. So
 * does the call that frees a region, until the memory can be lent again.
 * A region waits for an extent while dirty memory would make room.
 *
 * The owner serialises, with struct weir_donor's lock.
 */
#ifndef WEIR_LIB_DONOR_REGION_TABLE_H
#define WEIR_LIB_DONOR_REGION_TABLE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/region.h>
#include "core/base/list.h"
#include "core/unload/umtt.h"
#include "lib/donor/arena.h"
#include "lib/donor/memory_worker.h"
#include "wire/control.h"

#define WEIR_REGION_TABLE_MAX 16384 /* regions of a donor */
#define WEIR_REGION_HOLDS_MAX 1024 /* regions that one session holds or is charged for */

/* Bytes of the regions that clients of one of a tenant's keys created, and their limit. */
struct weir_region_budget {
	uint64_t bytes, bytes_max;
};

/**
 * struct weir_region_key - one tenant
 * @pd_read: of clients that may not write
 * @bytes: of its regions, the application's too
 * @left_bytes: part of @bytes that no account is charged for: its creator has gone
 */
struct weir_region_key {
	struct ibv_pd *pd, *pd_read;
	uint64_t bytes, left_bytes;
};

/**
 * struct weir_region_table - all regions of a donor
 * @keys: one for each tenant
 * @key_bytes_max: limit of each key's @bytes
 * @lent, @nr_lent: regions, by id
 * @starved: regions without an extent, the eldest first
 * @freed: regions whose memory is being zeroed
 * @umtt: rkeys that clients may write by, for unloaded writes
 */
struct weir_region_table {
	struct weir_arena *arena;
	struct weir_memory_worker *worker;
	struct weir_region_key *keys;
	uint64_t key_bytes_max;
	struct weir_list lent, starved, freed;
	unsigned int nr_lent;
	uint64_t ids;
	struct weir_umtt umtt;
};

/**
 * struct weir_region_account - one session's account
 * @quota: limit of @charged, bytes
 * @charged: bytes of existing regions that the session created
 * @movable: part of @charged that the client gives back on request
 * @keep: last limit sent for @movable, or WIRE_CONTROL_KEEP_ALL
 * @holds, @nr_holds: the session's holds
 * @budget: of the session's key
 * @reads_only: the session is in the tenant's @pd_read
 */
struct weir_region_account {
	struct weir_region_budget *budget;
	bool reads_only;
	unsigned int tenant;
	uint64_t quota;
	uint64_t charged;
	uint64_t movable;
	uint64_t keep;
	unsigned int nr_charged;
	struct weir_list holds;
	unsigned int nr_holds;
};

enum weir_lent_state {
	WEIR_LENT_STARVED, /* no extent yet */
	WEIR_LENT_GROWING, /* being populated, for its creator */
	WEIR_LENT_READY,
	WEIR_LENT_FREED, /* being zeroed */
};

/**
 * struct weir_lent_region - one region
 * @starved_link: while without an extent
 * @payer: the account charged, or NULL; @is_left: it has gone
 * @budget: charged for the region, also after @payer has gone; or NULL
 * @mr: while held, or owned; @mr_read: from the first read-only hold on; @mr_guest: the same, for
 *	sessions that may not write
 * @waits: of struct weir_region_wait, until the region is ready, or zeroed
 * @holds: of struct weir_region_hold
 * @status: the negative errno that ends a region that is not ready
 * @epoch: the latest of a fenced hold; 0: none
 * @is_exclusive: one holder, and no other is admitted
 * @is_owned: by the donor's application
 * @is_movable: the payer gives the region back on request
 */
struct weir_lent_region {
	struct weir_list link, starved_link;
	enum weir_lent_state state;
	uint64_t id;
	uint64_t length;
	unsigned int tenant;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct weir_arena_extent *extent;
	struct weir_memory_job job;
	struct weir_region_account *payer;
	struct weir_region_budget *budget;
	struct ibv_mr *mr, *mr_read, *mr_guest;
	struct weir_list waits, holds;
	int status;
	unsigned int holders;
	uint64_t epoch;
	bool is_exclusive;
	bool is_owned;
	bool is_left;
	bool is_movable;
};

struct weir_call;

/* A call that waits for a region, and the flags of its hold. */
struct weir_region_wait {
	struct weir_list link;
	struct weir_call *call;
	struct weir_region_account *account;
	uint32_t flags;
};

/* Return: 0; -ENOMEM. */
int weir_region_table_init(struct weir_region_table *region_table, struct weir_arena *arena,
			   struct weir_memory_worker *worker, struct weir_region_key *keys,
			   uint64_t key_bytes_max);

/*
 * Frees the remaining regions, named or the application's, after all accounts have left. The worker
 * has stopped.
 */
void weir_region_table_fini(struct weir_region_table *region_table);

void weir_region_account_init(struct weir_region_account *account, unsigned int tenant,
			      uint64_t quota);

/* Regions charged to a budget are charged to none: its key goes. */
void weir_region_table_forget_budget(struct weir_region_table *region_table,
				     const struct weir_region_budget *budget);

/* Frees a tenant's regions but the application's. The tenant has no client. */
void weir_region_table_purge(struct weir_region_table *region_table, unsigned int tenant);

/* Whether an account is charged for a named region. */
bool weir_region_table_is_own(const struct weir_region_table *region_table,
			      const struct weir_region_account *account, const char *name);

/**
 * weir_region_table_leave() - end a session's account, after the QPs
 *
 * Gives all holds back and frees nameless regions. Named regions stay, charged to no session.
 * Regions that are not ready are given up.
 */
void weir_region_table_leave(struct weir_region_table *region_table,
			     struct weir_region_account *account);

/**
 * weir_region_table_create() - begin to create a region
 * @name: "" for a nameless one
 * @lent: receives the region, for the creator's wait
 *
 * Return: -EINPROGRESS; -EINVAL; -EEXIST; -EDQUOT; -ENOSPC; -ENOMEM.
 */
int weir_region_table_create(struct weir_region_table *region_table,
			     struct weir_region_account *account, const char *name, uint64_t length,
			     uint32_t flags, struct weir_lent_region **lent,
			     struct weir_error *error);

/* As weir_region_table_open(), of a ready region. */
int weir_region_table_hold(struct weir_region_table *region_table,
			   struct weir_region_account *account, struct weir_lent_region *lent,
			   uint32_t flags, struct wire_control_region *out,
			   struct weir_error *error);

/**
 * weir_region_table_open() - hold a named region
 * @lent: receives a region that is not ready, for a wait
 *
 * Return: 0; -EINPROGRESS; -EINVAL; -ENOENT; -EBUSY; -EDQUOT too many held; -ENOMEM.
 */
int weir_region_table_open(struct weir_region_table *region_table,
			   struct weir_region_account *account, const char *name, uint32_t flags,
			   struct weir_lent_region **lent, struct wire_control_region *out,
			   struct weir_error *error);

/**
 * weir_region_table_fence() - revoke the holds of a named region, for a client at @epoch
 *
 * On return no earlier holder can reach the memory. A region that is not ready, or does not exist,
 * has no holder.
 *
 * Return: 0; -EBUSY the region was fenced at a later epoch.
 */
int weir_region_table_fence(struct weir_region_table *region_table, unsigned int tenant,
			    const char *name, uint64_t epoch, struct weir_error *error);

/**
 * weir_region_table_close() - give a hold back
 * @lent: receives a region that the call has freed, for a wait until the memory can be lent again
 *
 * Return: 0; -EINPROGRESS; -ENOENT the session has no such hold.
 */
int weir_region_table_close(struct weir_region_table *region_table,
			    struct weir_region_account *account, uint64_t hold,
			    struct weir_lent_region **lent);

/**
 * weir_region_table_delete() - take the name away
 * @lent: as for weir_region_table_close()
 *
 * Return: 0; -EINPROGRESS; -ENOENT; -EBUSY another session holds the region exclusively.
 */
int weir_region_table_delete(struct weir_region_table *region_table,
			     struct weir_region_account *account, const char *name,
			     struct weir_lent_region **lent, struct weir_error *error);

/**
 * weir_region_table_list() - list the tenant's named regions
 * @from: 0, or the last call's @list->next
 * @entries: room for WIRE_CONTROL_ENTRIES_MAX
 */
void weir_region_table_list(const struct weir_region_table *region_table, unsigned int tenant,
			    uint64_t from, struct wire_control_list *list,
			    struct wire_control_entry *entries);

/* Creates a region of the donor's application: charged to no session, reachable by token. */
int weir_region_table_own(struct weir_region_table *region_table, unsigned int tenant,
			  uint64_t length, struct weir_region_token *token, void **addr,
			  struct weir_error *error);
/* Return: 0; -ENOENT the application has no such region. */
int weir_region_table_disown(struct weir_region_table *region_table,
			     const struct weir_region_token *token);

#endif
