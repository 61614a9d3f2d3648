/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory that a donor lends: one mapping, divided into extents. Free memory is zero: an extent
 * given back is dirty, and owned by its zeroing, until weir_arena_free(). The owner serialises all
 * but the functions for slices.
 */
#ifndef WEIR_LIB_DONOR_ARENA_H
#define WEIR_LIB_DONOR_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "core/base/list.h"

#define WEIR_ARENA_PAGE 4096u

/**
 * struct weir_arena_extent - a part of the arena
 * @link: all extents, free or taken, by address; no two free ones in a row
 * @length: bytes, a multiple of WEIR_ARENA_PAGE
 */
struct weir_arena_extent {
	struct weir_list link;
	char *addr;
	uint64_t length;
	bool is_taken;
};

/**
 * struct weir_arena - the mapping
 * @huge: in reserved huge pages
 * @is_reserved: all pages are present, and zeroing keeps them; atomic
 * @fd: of the mapped file, or -1
 * @length: bytes; @taken of these are in extents given out, @dirty in extents to be zeroed
 * @limit: upper bound of @taken and @dirty for new extents; @length at first
 */
struct weir_arena {
	char *base;
	uint64_t length;
	uint64_t taken;
	uint64_t dirty;
	uint64_t limit;
	bool huge;
	bool is_reserved;
	int fd;
	struct weir_list extents;
};

/**
 * weir_arena_init() - map memory, untouched
 * @length: bytes, at least one page; rounded up to pages
 * @want_huge: try reserved huge pages first, then transparent ones; otherwise prefer a memory file,
 *	which a software device can map elsewhere
 *
 * Return: 0; -ENOMEM.
 */
int weir_arena_init(struct weir_arena *arena, uint64_t length, bool want_huge,
		    struct weir_error *error);
void weir_arena_fini(struct weir_arena *arena);

/* Makes all pages present, before any extent is taken. Return: 0; -ENOMEM. */
int weir_arena_reserve(struct weir_arena *arena, struct weir_error *error);

/* Ends the reservation: returns the free pages of a slice of the mapping to the system. */
void weir_arena_release(struct weir_arena *arena, uint64_t offset, uint64_t length);

/**
 * weir_arena_take() - take an extent of zeroes, untouched
 * @length: bytes, above 0, rounded up to pages
 *
 * Return: 0; -EAGAIN perhaps once the dirty extents are free; -ENOSPC no free extent is long
 * enough, or the limit is reached; -ENOMEM.
 */
int weir_arena_take(struct weir_arena *arena, uint64_t length, struct weir_arena_extent **extent);

/* Gives an extent back, dirty. No peer may still write there. Cannot fail. */
void weir_arena_give(struct weir_arena *arena, struct weir_arena_extent *extent);

/* Makes a dirty extent free, when all of it is zeroed. */
void weir_arena_free(struct weir_arena *arena, struct weir_arena_extent *extent);

/**
 * weir_arena_populate() - make pages of a taken extent present, as in memory registered with a NIC
 *
 * Context: any thread, beside all others. Return: 0; -ENOMEM.
 */
int weir_arena_populate(char *addr, uint64_t length);

/* Zeroes a part of a dirty extent. Context: any thread, beside all others. */
void weir_arena_zero(const struct weir_arena *arena, char *addr, uint64_t length);

#endif
