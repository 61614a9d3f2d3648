/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A learner's view of a window: it moves one of the two limits, bytes or work requests, by the same
 * arithmetic. Each work request counts as many parts, so that a limit of a few changes smoothly.
 * Windows of several processes on a NIC share it evenly only if they count bytes: those of work
 * requests come to rest at unequal sizes.
 *
 * Context of all: Any; never sleeps. Serialised with the window.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_UNIT_H
#define WEIR_CORE_SCHED_WINDOW_UNIT_H

#include "core/sched/window.h"

#define WEIR_WINDOW_WR_PARTS 4096

enum weir_window_unit {
	WEIR_WINDOW_BYTES,
	WEIR_WINDOW_WRS, /* in parts: WEIR_WINDOW_WR_PARTS each */
};

/* Limits change by multiples of this. */
static inline uint64_t weir_window_unit_grain(enum weir_window_unit unit)
{
	return unit == WEIR_WINDOW_WRS ? WEIR_WINDOW_WR_PARTS : 1;
}

static inline uint64_t weir_window_unit_limit(const struct weir_window *w,
					      enum weir_window_unit unit)
{
	return unit == WEIR_WINDOW_WRS ? (uint64_t)w->wrs_max * WEIR_WINDOW_WR_PARTS :
					 w->bytes_max;
}

/* The lowest limit. */
static inline uint64_t weir_window_unit_least(const struct weir_window *w,
					      enum weir_window_unit unit)
{
	return unit == WEIR_WINDOW_WRS ? (uint64_t)w->wrs_min * WEIR_WINDOW_WR_PARTS :
					 w->bytes_min;
}

static inline uint64_t weir_window_unit_size(const struct weir_window_success *success,
					     enum weir_window_unit unit)
{
	return unit == WEIR_WINDOW_WRS ? WEIR_WINDOW_WR_PARTS : success->bytes;
}

static inline uint64_t weir_window_unit_in_flight(const struct weir_window_success *success,
						  enum weir_window_unit unit)
{
	return unit == WEIR_WINDOW_WRS ? (uint64_t)success->wrs_in_flight * WEIR_WINDOW_WR_PARTS :
					 success->in_flight;
}

static inline void weir_window_unit_set(struct weir_window_bounds *limits,
					enum weir_window_unit unit, uint64_t limit)
{
	if (unit == WEIR_WINDOW_BYTES)
		limits->bytes = limit;
	else if (limit / WEIR_WINDOW_WR_PARTS < UINT32_MAX)
		limits->wrs = (uint32_t)(limit / WEIR_WINDOW_WR_PARTS);
	else
		limits->wrs = UINT32_MAX;
}

/**
 * weir_window_unit_is_filled_by() - whether the load was enough to judge the limit
 * @w: the window
 * @unit: of the limit
 * @in_flight: the most in flight during the period
 *
 * A load that left the window unfilled gains nothing from more room.
 *
 * Return: true if @in_flight is most of the limit, or the rest may have been too small for one more
 *	WR.
 */
static inline bool weir_window_unit_is_filled_by(const struct weir_window *w,
						 enum weir_window_unit unit, uint64_t in_flight)
{
	uint64_t limit = weir_window_unit_limit(w, unit);
	uint64_t largest = unit == WEIR_WINDOW_WRS ? WEIR_WINDOW_WR_PARTS : w->bytes_min;

	return in_flight >= limit - limit / 4 || in_flight + largest > limit;
}

#endif
