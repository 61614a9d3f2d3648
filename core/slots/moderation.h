/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to read the peer's bits again. A read should find many changes at high rates, and a lone
 * change should not wait. HiPower (section 3.1) uses a fixed threshold; this module adapts to the
 * observed rate.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SLOTS_MODERATION_H
#define WEIR_CORE_SLOTS_MODERATION_H

#include "core/base/platform.h"

#define WEIR_MODERATION_NS \
	32000 /* longest delay of a read, to find more changes, while a caller
				  * waits */
#define WEIR_MODERATION_COUNT_MIN 4 /* changes worth such a delay, at least */

/**
 * struct weir_moderation - moderation of reads for one kind of change
 * @batch: changes that a read should find at high rates
 * @gap_ns_max: longest time between reads at low rates
 * @backs_off: no caller needs changes one by one: reads that find nothing become rarer
 * @read_ns: time of the last read
 * @found_ns: time of the last read that found a change
 * @interval_ns: mean time between changes
 * @gap_ns: time between reads
 */
struct weir_moderation {
	uint32_t batch;
	bool backs_off;
	uint64_t gap_ns_max;
	uint64_t read_ns;
	uint64_t found_ns;
	uint64_t interval_ns;
	uint64_t gap_ns;
};

/* Starts without history: the first read is due at once. */
void weir_moderation_init(struct weir_moderation *p, uint32_t batch, uint64_t gap_ns_max,
			  bool backs_off);

/* A read is done and has found @news changes. */
void weir_moderation_polled(struct weir_moderation *p, uint32_t news, uint64_t now_ns);

/* Whether a read is due. */
static inline bool weir_moderation_is_due(const struct weir_moderation *p, uint64_t now_ns)
{
	return now_ns - p->read_ns >= p->gap_ns;
}

#endif
