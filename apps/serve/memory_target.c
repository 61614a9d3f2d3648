/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * If less memory is available than --spare, the donor lends less by the difference, and memory that
 * clients give back becomes available. The donor lends more again only once an eighth more than
 * --spare is available, so that the target does not oscillate.
 */
#include "apps/common/number.h"
#include "apps/serve/memory_target.h"
#include "apps/serve/available_memory.h"
#include "apps/log/log.h"

#include <inttypes.h>
#include <weir/donor.h>

#define STEP (2ull << 20) /* clients are not asked for less */

void memory_target_init(struct memory_target *target, struct weir_donor *donor, uint64_t memory,
			uint64_t spare)
{
	uint64_t available = spare ? available_memory("") : 0;

	*target = (struct memory_target){
		.donor = donor,
		.memory = memory,
		.told = memory,
		.spare = spare,
		.spared = memory,
		.limit = memory,
	};
	if (spare && available <= spare)
		log_event(WEIR_LOG_WARNING,
			  "lends nothing available=%" PRIu64 " spare=%" PRIu64
			  " id=W201: less is available than to be spared",
			  available, spare);
}

static void apply_limit(struct memory_target *target, uint64_t limit)
{
	if (limit == target->limit)
		return;
	if (weir_donor_limit(target->donor, limit))
		log_event(WEIR_LOG_ERROR, "limit unchanged id=W202: out of memory");
	else
		target->limit = limit;
}

/* Rounds to whole steps, so that small changes cause no messages. */
static uint64_t can_spare(const struct memory_target *target, uint64_t left)
{
	uint64_t missing, surplus = left > target->spare ? left - target->spare : 0;
	struct weir_donor_info info;

	weir_donor_info(target->donor, &info, sizeof(info));
	if (surplus > target->spare / 8) {
		surplus = lesser(surplus, target->memory) / STEP * STEP;
		return greater(target->spared, lesser(info.lent_bytes + surplus, target->memory));
	}
	if (left >= target->spare)
		return target->spared;
	missing = (target->spare - left + STEP - 1) / STEP * STEP;
	return lesser(target->spared, info.lent_bytes > missing ? info.lent_bytes - missing : 0);
}

void memory_target_update(struct memory_target *target)
{
	if (target->spare)
		target->spared = can_spare(target, available_memory(""));
	apply_limit(target, lesser(target->spared, target->told));
}

void memory_target_set(struct memory_target *target, uint64_t bytes)
{
	if (bytes > target->memory)
		log_event(WEIR_LOG_WARNING,
			  "clamped asked=%" PRIu64 " bytes=%" PRIu64
			  " id=W203: no more than at the start",
			  bytes, target->memory);
	target->told = lesser(bytes, target->memory);
	memory_target_update(target);
}
