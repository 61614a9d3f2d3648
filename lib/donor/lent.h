/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One region of region_table.h, from its request for memory to its zeroing.
 *
 *	STARVED -> GROWING -> READY -> FREED
 *
 * A region that cannot be made, or whose creator goes, passes through READY with a status.
 */
#ifndef WEIR_LIB_DONOR_LENT_H
#define WEIR_LIB_DONOR_LENT_H

#include "lib/donor/region_table.h"

/* The memory that a region of @length bytes takes. */
static inline uint64_t weir_lent_whole_pages(uint64_t length)
{
	return (length + WEIR_ARENA_PAGE - 1) / WEIR_ARENA_PAGE * WEIR_ARENA_PAGE;
}

/*
 * Makes a region, whose limits the caller has checked. Return: 0 the region grows or is starved;
 * -ENOSPC; -ENOMEM.
 */
int weir_lent_new(struct weir_region_table *region_table, unsigned int tenant, const char *name,
		  uint64_t length, struct weir_lent_region **out, struct weir_error *error);

/* Describes that no extent of @length bytes can be taken. Return: @rc. */
int weir_lent_explain_no_extent(const struct weir_region_table *region_table, uint64_t length,
				int rc, struct weir_error *error);

/* Registers a region with @access as @mr, one of its two, unless that is done. */
int weir_lent_register(struct weir_region_table *region_table, struct weir_lent_region *lent,
		       int access, struct ibv_mr **mr, struct weir_error *error);

/* On return no peer can reach the memory, and no unloaded write is being copied there. */
void weir_lent_deregister(struct weir_region_table *region_table, struct weir_lent_region *lent);

void weir_lent_charge(struct weir_lent_region *lent, struct weir_region_account *payer);
void weir_lent_uncharge(struct weir_lent_region *lent);

/* Charges a region to its key alone: its creator has gone. */
void weir_lent_leave(struct weir_region_table *region_table, struct weir_lent_region *lent);

/* Ends a region that is not ready early: its creator has gone. */
void weir_lent_give_up(struct weir_region_table *region_table, struct weir_lent_region *lent);

/* Deregisters, and lets the worker zero the extent before its next use. */
void weir_lent_free(struct weir_region_table *region_table, struct weir_lent_region *lent);

/**
 * weir_lent_next() - a region whose waits are due, @lent->status says how
 *
 * The caller empties the waits, then owes a weir_lent_settle().
 * Return: NULL if there is none.
 */
struct weir_lent_region *weir_lent_next(struct weir_region_table *region_table);

/* Frees a region that could not be made, or that nobody holds or can name, or that is zeroed. */
void weir_lent_settle(struct weir_region_table *region_table, struct weir_lent_region *lent);

#endif
