/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/link/credit.h"

int wire_credit_init(struct wire_credit_balance *credit, uint16_t ours, uint16_t theirs)
{
	if (ours < WIRE_CREDITS_MIN || theirs < WIRE_CREDITS_MIN)
		return -EPROTO;
	*credit = (struct wire_credit_balance){
		.ours = ours,
		.theirs = theirs,
		.spendable = theirs,
		.open = ours,
	};
	return 0;
}

bool wire_credit_has_room(const struct wire_credit_balance *credit)
{
	return credit->spendable > 1;
}

bool wire_credit_is_due(const struct wire_credit_balance *credit)
{
	return credit->owed >= credit->ours / 2 && credit->spendable > 0;
}

uint16_t wire_credit_spend(struct wire_credit_balance *credit)
{
	uint16_t owed = credit->owed;

	credit->spendable--;
	credit->open += owed;
	credit->owed = 0;
	return owed;
}

int wire_credit_received(struct wire_credit_balance *credit, uint16_t credits)
{
	if (!credit->open || credits > credit->theirs - credit->spendable)
		return -EPROTO;
	credit->open--;
	credit->owed++;
	credit->spendable += credits;
	return 0;
}
