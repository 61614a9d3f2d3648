/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes of a handle to the same block take turns: each needs the generation of the one before, and
 * a write of a part of a block must not lose another part. A range waits only for ranges that
 * arrived earlier, so no two wait for each other.
 */
#include "lib/sealed/sealed.h"

static bool must_wait(const struct weir_sealed *sealed, const struct weir_sealed_range *range)
{
	const struct weir_list *at;

	for (at = sealed->ranges.next; at != &range->link; at = at->next) {
		const struct weir_sealed_range *earlier =
			weir_list_entry(at, struct weir_sealed_range, link);

		if (earlier->first <= range->last && range->first <= earlier->last)
			return true;
	}
	return false;
}

void weir_sealed_range_enter(struct weir_sealed *sealed, struct weir_sealed_range *range)
{
	pthread_mutex_lock(&sealed->range_lock);
	weir_list_add_tail(&sealed->ranges, &range->link);
	while (must_wait(sealed, range))
		pthread_cond_wait(&sealed->range_left, &sealed->range_lock);
	pthread_mutex_unlock(&sealed->range_lock);
}

void weir_sealed_range_leave(struct weir_sealed *sealed, struct weir_sealed_range *range)
{
	pthread_mutex_lock(&sealed->range_lock);
	weir_list_del(&range->link);
	if (!weir_list_is_empty(&sealed->ranges))
		pthread_cond_broadcast(&sealed->range_left);
	pthread_mutex_unlock(&sealed->range_lock);
}
