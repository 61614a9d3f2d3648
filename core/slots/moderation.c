/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mean interval between changes tells when a read will find a full batch. Patient reads that
 * find nothing back off exponentially.
 */
#include "core/slots/moderation.h"

#define BACKOFF_NS_MIN 1000
#define BACKOFF_NS_MAX (8 * WEIR_MODERATION_NS)

void weir_moderation_init(struct weir_moderation *p, uint32_t batch, uint64_t gap_ns_max,
			  bool backs_off)
{
	memset(p, 0, sizeof(*p));
	p->batch = batch;
	p->backs_off = backs_off;
	p->gap_ns_max = gap_ns_max;
	p->interval_ns = gap_ns_max;
}

static uint64_t idle_gap_ns(const struct weir_moderation *p)
{
	if (!p->backs_off)
		return 0;
	if (p->gap_ns < BACKOFF_NS_MIN)
		return BACKOFF_NS_MIN;
	return p->gap_ns < BACKOFF_NS_MAX / 2 ? 2 * p->gap_ns : BACKOFF_NS_MAX;
}

/* Time for a full batch, or for as much of a batch as arrives in time. */
static uint64_t next_gap_ns(const struct weir_moderation *p)
{
	if (p->interval_ns * p->batch <= p->gap_ns_max)
		return p->interval_ns * p->batch;
	if (p->backs_off || p->interval_ns * WEIR_MODERATION_COUNT_MIN <= p->gap_ns_max)
		return p->gap_ns_max;
	return 0;
}

void weir_moderation_polled(struct weir_moderation *p, uint32_t news, uint64_t now_ns)
{
	uint64_t each;

	p->read_ns = now_ns;
	if (!news) {
		p->gap_ns = idle_gap_ns(p);
		return;
	}
	each = (now_ns - p->found_ns) / news;
	if (each > p->gap_ns_max)
		each = p->gap_ns_max;
	p->interval_ns = (p->interval_ns + each) / 2;
	p->found_ns = now_ns;
	p->gap_ns = next_gap_ns(p);
}
