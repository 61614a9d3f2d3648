/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of its time a target's CPU may spend on unloaded writes. Time is cut into periods; when
 * those of one period have taken their share, initiators are told to leave the CPU alone until it ends.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_CEILING_H
#define WEIR_CORE_CEILING_H

#include "core/platform.h"

#define WEIR_CEILING_PERIOD_NS 10000000ull

/**
 * struct weir_ceiling - one CPU's
 * @percent: of its time, 1 to 100: with 100 there is no ceiling
 * @began_ns: the period did
 * @spent_ns: in it
 */
struct weir_ceiling {
	uint32_t percent;
	uint64_t began_ns;
	uint64_t spent_ns;
};

static inline void weir_ceiling_init(struct weir_ceiling *c, uint32_t percent)
{
	*c = (struct weir_ceiling){ .percent = percent };
}

/**
 * weir_ceiling_spent() - unloaded writes have taken time
 * @c: the ceiling
 * @from_ns, @to_ns: from when until when
 *
 * Return: for how long they are not wanted, ns; 0 when they are.
 */
static inline uint64_t weir_ceiling_spent(struct weir_ceiling *c, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns - c->began_ns >= WEIR_CEILING_PERIOD_NS) {
		c->began_ns = to_ns;
		c->spent_ns = 0;
	}
	c->spent_ns += to_ns - from_ns;
	if (c->percent >= 100 || c->spent_ns * 100 <= c->percent * WEIR_CEILING_PERIOD_NS)
		return 0;
	return c->began_ns + WEIR_CEILING_PERIOD_NS - to_ns;
}

#endif
