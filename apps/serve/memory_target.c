/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When less is available than is to be, so much less is lent; what clients give back is available
 * then. More is lent again only when an eighth more than that is available, so that it does not go
 * up and down.
 */
#include "apps/serve/memory_target.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/log.h"

#include <weir/donor.h>

#define STEP (2ull << 20) /* no client is bothered for less */

void amount_init(struct amount *amount, struct weir_donor *donor, uint64_t memory, uint64_t spare)
{
	*amount = (struct amount){
		.donor = donor,
		.memory = memory,
		.told = memory,
		.spare = spare,
		.spared = memory,
		.limit = memory,
	};
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void set(struct amount *amount, uint64_t limit)
{
	if (limit == amount->limit)
		return;
	if (weir_donor_limit(amount->donor, limit))
		log_event(WEIR_LOG_ERROR, "out of memory");
	else
		amount->limit = limit;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* In whole steps, so that what comes and goes is not worth a word. */
static uint64_t can_spare(const struct amount *amount, uint64_t left)
{
	uint64_t missing, surplus = left > amount->spare ? left - amount->spare : 0;
	struct weir_donor_info info;

	weir_donor_info(amount->donor, &info);
	if (surplus > amount->spare / 8) {
		surplus = lesser(surplus, amount->memory) / STEP * STEP;
		return greater(amount->spared, lesser(info.lent_bytes + surplus, amount->memory));
	}
	if (left >= amount->spare)
		return amount->spared;
	missing = (amount->spare - left + STEP - 1) / STEP * STEP;
	return lesser(amount->spared, info.lent_bytes > missing ? info.lent_bytes - missing : 0);
}

void amount_look(struct amount *amount)
{
	if (amount->spare)
		amount->spared = can_spare(amount, available_memory(""));
	set(amount, lesser(amount->spared, amount->told));
}

void amount_tell(struct amount *amount, uint64_t bytes)
{
	amount->told = lesser(bytes, amount->memory);
	amount_look(amount);
}
