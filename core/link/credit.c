/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/link/credit.h"

int weir_credit_init(struct weir_credit *credit, uint16_t ours, uint16_t theirs)
{
	if (ours < WEIR_CREDITS_MIN || theirs < WEIR_CREDITS_MIN)
		return -EPROTO;
	*credit = (struct weir_credit){
		.ours = ours,
		.theirs = theirs,
		.spendable = theirs,
		.open = ours,
	};
	return 0;
}

bool weir_credit_has_room(const struct weir_credit *credit)
{
	return credit->spendable > 1;
}

bool weir_credit_is_due(const struct weir_credit *credit)
{
	return credit->owed >= credit->ours / 2 && weir_credit_may_send_bare(credit);
}

bool weir_credit_may_send_bare(const struct weir_credit *credit)
{
	return credit->spendable > 0;
}

uint16_t weir_credit_spend(struct weir_credit *credit)
{
	uint16_t owed = credit->owed;

	credit->spendable--;
	credit->open += owed;
	credit->owed = 0;
	return owed;
}

int weir_credit_received(struct weir_credit *credit, uint16_t credits)
{
	if (!credit->open || credits > credit->theirs - credit->spendable)
		return -EPROTO;
	credit->open--;
	credit->owed++;
	credit->spendable += credits;
	return 0;
}
