/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory that a donor lends: one mapping, from which extents are taken and to which they
 * are given back. What is free is zero: giving back zeroes, before anybody can take it again.
 *
 * The owner serialises.
 */
#ifndef WEIR_LIB_DONOR_ARENA_H
#define WEIR_LIB_DONOR_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "core/base/list.h"

#define WEIR_ARENA_PAGE 4096u
#define WEIR_ARENA_HUGE (2u << 20)

/**
 * struct weir_arena_extent - a piece of the arena
 * @link: all pieces, free or not, in order of address: no two free ones in a row
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
 * @huge: it lies in reserved huge pages
 * @fd: of the file that it lies in, or -1
 * @length: bytes; @taken of them are out
 * @limit: no more are given out while so many are; @length at first
 */
struct weir_arena {
	char *base;
	uint64_t length;
	uint64_t taken;
	uint64_t limit;
	bool huge;
	int fd;
	struct weir_list extents;
};

/**
 * weir_arena_init() - map memory, untouched
 * @length: bytes, at least one page; rounded up to pages
 * @want_huge: try reserved huge pages first, then transparent ones; otherwise a file in memory,
 *	which a software device can map elsewhere, if there can be one
 *
 * Return: 0; -ENOMEM.
 */
int weir_arena_init(struct weir_arena *arena, uint64_t length, bool want_huge,
		    struct weir_error *error);
void weir_arena_fini(struct weir_arena *arena);

/**
 * weir_arena_take() - claim an extent of zeroes
 * @length: bytes, above 0, rounded up to pages
 *
 * Of a file all pages are there from then on, as they are of memory that a NIC has registered.
 *
 * Return: 0; -ENOSPC no gap is that long, or the limit is reached; -ENOMEM.
 */
int weir_arena_take(struct weir_arena *arena, uint64_t length, struct weir_arena_extent **extent);

/* Zeroes and gives back. Nobody may still write to it. Cannot fail. */
void weir_arena_give(struct weir_arena *arena, struct weir_arena_extent *extent);

#endif
