/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to look again: so that a look finds many when many come, and a lone one is not kept waiting
 * (HiPower, section 3.1, asks at a fixed threshold; this adapts to the rate that it observes).
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SLOTS_MODERATION_H
#define WEIR_CORE_SLOTS_MODERATION_H

#include "core/base/platform.h"

#define WEIR_MODERATION_NS 32000 /* how long a look may be put off for company, if somebody waits */
#define WEIR_MODERATION_COUNT_MIN 4 /* and for how many at least: fewer are not worth waiting for */

/**
 * struct weir_moderation - of looks for one kind of news
 * @batch: news that a look is to find, if they come fast enough
 * @gap_ns_max: between looks, at most, if they do not
 * @is_patient: nobody needs them one by one: looks that find nothing become rarer
 * @looked_ns, @found_ns: of the last look, and of the last that found something
 * @interval_ns: between news
 * @gap_ns: between looks
 */
struct weir_moderation {
	uint32_t batch;
	bool is_patient;
	uint64_t gap_ns_max;
	uint64_t looked_ns;
	uint64_t found_ns;
	uint64_t interval_ns;
	uint64_t gap_ns;
};

/* Nothing is known yet: look at once. */
void weir_moderation_init(struct weir_moderation *p, uint32_t batch, uint64_t gap_ns_max,
			  bool is_patient);

/* A look is back, and found @news. */
void weir_moderation_polled(struct weir_moderation *p, uint32_t news, uint64_t now_ns);

/* Whether a look is worth its while now. */
static inline bool weir_moderation_is_due(const struct weir_moderation *p, uint64_t now_ns)
{
	return now_ns - p->looked_ns >= p->gap_ns;
}

#endif
