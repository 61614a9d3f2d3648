/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions as the donor sees them: what is lent, under which name, and who holds it.
 *
 * A region is registered in its tenant's PD while somebody holds it, no longer: when the last
 * holder gives it back its rkeys die with it, so that a late write of an earlier holder reaches
 * neither the next one nor memory that has moved on. A region that nobody can name any
 * more is freed with its last holder: deregistered, zeroed, given back.
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
#include "wire/control.h"

#define WEIR_REGION_TABLE_MAX 16384 /* regions of a donor */
#define WEIR_REGION_HOLDS_MAX 1024 /* regions that one session holds or is charged for */

/**
 * struct weir_region_table - all that a donor lends
 * @pds: one for each tenant
 * @lent: regions, in order of their id; @nr_lent of them
 * @umtt: by whose rkeys clients may write, for what is unloaded
 */
struct weir_region_table {
	struct weir_arena *arena;
	struct ibv_pd **pds;
	struct weir_list lent;
	unsigned int nr_lent;
	uint64_t ids;
	struct weir_umtt umtt;
};

/**
 * struct weir_region_account - one session's part
 * @quota: bytes that it may be charged for; @charged: what it created and what still exists;
 *	@movable: of that, what it gives back when asked to
 * @keep: bytes of what is movable that it was told to have at most, or WIRE_CONTROL_KEEP_ALL
 * @holds: what it holds, @nr_holds of them
 */
struct weir_region_account {
	unsigned int tenant;
	uint64_t quota;
	uint64_t charged;
	uint64_t movable;
	uint64_t keep;
	unsigned int nr_charged;
	struct weir_list holds;
	unsigned int nr_holds;
};

/* Return: 0; -ENOMEM. */
int weir_region_table_init(struct weir_region_table *region_table, struct weir_arena *arena,
			   struct ibv_pd **pds);

/* All accounts have left. Frees what is left: named regions and the application's. */
void weir_region_table_fini(struct weir_region_table *region_table);

void weir_region_account_init(struct weir_region_account *account, unsigned int tenant,
			      uint64_t quota);

/**
 * weir_region_table_leave() - the session has ended: its QPs are gone
 *
 * Gives back what it holds and frees what only it could name. Named regions stay, charged to
 * nobody.
 */
void weir_region_table_leave(struct weir_region_table *region_table,
			     struct weir_region_account *account);

/**
 * weir_region_table_create() - a new region, held by its creator
 * @name: "" for a nameless one
 *
 * Return: 0; -EINVAL; -EEXIST; -EDQUOT; -ENOSPC; -ENOMEM.
 */
int weir_region_table_create(struct weir_region_table *region_table,
			     struct weir_region_account *account, const char *name, uint64_t length,
			     uint32_t flags, struct wire_control_region *out,
			     struct weir_error *error);

/* Return: 0; -EINVAL; -ENOENT; -EBUSY; -EDQUOT too many held; -ENOMEM. */
int weir_region_table_open(struct weir_region_table *region_table,
			   struct weir_region_account *account, const char *name, uint32_t flags,
			   struct wire_control_region *out, struct weir_error *error);

/* Gives a hold back. Return: 0; -ENOENT the session has no such hold. */
int weir_region_table_close(struct weir_region_table *region_table,
			    struct weir_region_account *account, uint64_t hold);

/* Takes the name away. Return: 0; -ENOENT; -EBUSY somebody else holds it exclusively. */
int weir_region_table_delete(struct weir_region_table *region_table,
			     struct weir_region_account *account, const char *name,
			     struct weir_error *error);

/**
 * weir_region_table_list() - the tenant's named regions
 * @from: 0, or what @list->next said before
 * @entries: room for WIRE_CONTROL_ENTRIES_MAX
 */
void weir_region_table_list(const struct weir_region_table *region_table, unsigned int tenant,
			    uint64_t from, struct wire_control_list *list,
			    struct wire_control_entry *entries);

/* The donor's application: a region that no session is charged for, reachable by token. */
int weir_region_table_own(struct weir_region_table *region_table, unsigned int tenant,
			  uint64_t length, struct weir_region_token *token, void **addr,
			  struct weir_error *error);
/* Return: 0; -ENOENT there is no such region of the application's. */
int weir_region_table_disown(struct weir_region_table *region_table,
			     const struct weir_region_token *token);

#endif
