/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a page of a volume lies: which extent, and where in it.
 *
 * Consecutive units of a volume go round over @width extents, which lie in different groups of
 * donors. So a long transfer uses several donors at once. A set is @width extents; the next set
 * begins when this one is full.
 *
 *	unit     0 1 2 3 4 5 ...      width 2, 2 units in an extent
 *	extent   0 1 0 1 2 3 ...
 *
 * Context of all: any; never sleeps.
 */
#ifndef WEIR_CORE_VOLUME_STRIPE_H
#define WEIR_CORE_VOLUME_STRIPE_H

#include "core/base/platform.h"

/**
 * struct weir_stripe - how a volume is laid over extents
 * @unit: consecutive pages in one extent, at least 1
 * @width: extents of a set, at least 1
 * @extent: pages of an extent, a multiple of @unit
 */
struct weir_stripe {
	uint32_t unit, width, extent;
};

/**
 * struct weir_stripe_place - a run of pages
 * @extent: number of the extent
 * @page: first page in it
 * @pages: consecutive pages there, up to the end of the unit
 */
struct weir_stripe_place {
	uint32_t extent, page, pages;
};

/* The number of extents of a volume with this many pages. */
static inline uint64_t weir_stripe_extents(const struct weir_stripe *s, uint64_t pages)
{
	uint64_t set = (uint64_t)s->width * s->extent;

	return (pages + set - 1) / set * s->width;
}

/* The place of a page of the volume, whose extents are fewer than 2^32. */
static inline struct weir_stripe_place weir_stripe_at(const struct weir_stripe *s, uint64_t page)
{
	uint64_t unit = page / s->unit, row = unit / s->width;
	uint32_t rows = s->extent / s->unit, rest = (uint32_t)(page % s->unit);

	return (struct weir_stripe_place){
		.extent = (uint32_t)(row / rows * s->width + unit % s->width),
		.page = (uint32_t)(row % rows) * s->unit + rest,
		.pages = s->unit - rest,
	};
}

/* The page of the volume at a page of an extent. */
static inline uint64_t weir_stripe_page(const struct weir_stripe *s, uint32_t extent, uint32_t page)
{
	uint64_t row = (uint64_t)(extent / s->width) * (s->extent / s->unit) + page / s->unit;

	return (row * s->width + extent % s->width) * s->unit + page % s->unit;
}

#endif
